package gate_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/projection"
	"github.com/syncgate/syncgate/plugin/receipt"
)

func TestGraceLetsAnExpiredReceiptCountForAWhile(t *testing.T) {
	r := rules(t)
	glass := r.Issuers["security"]
	glass.BreakGlass = true
	r.Issuers["security"] = glass
	p := deployment(t, image, "", "")
	expired := func(c *receipt.Claims) { c.IssuedAt, c.Expires = now-10*day, now-2*day }
	for _, tt := range []struct {
		name     string
		issuer   string
		grace    int64
		revoked  bool
		want     []gate.Reason
		wantUsed bool
	}{
		{name: "no grace refuses", issuer: "release", want: []gate.Reason{gate.ReceiptExpired}},
		{name: "within grace passes and says so", issuer: "release", grace: 3 * day, wantUsed: true},
		{name: "past grace refuses", issuer: "release", grace: day, want: []gate.Reason{gate.ReceiptExpired}},
		{name: "break-glass never has grace", issuer: "security", grace: 3 * day, want: []gate.Reason{gate.ReceiptExpired}},
		{name: "grace does not bring back what is revoked", issuer: "release", grace: 3 * day, revoked: true, want: []gate.Reason{gate.ReceiptRevoked}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rules := *r
			compact := sign(t, tt.issuer, p, expired)
			if tt.revoked {
				u, err := receipt.ParseUnverified(compact)
				if err != nil {
					t.Fatal(err)
				}
				rules.Revocations = &gate.Revocations{List: receipt.RevocationList{Entries: []receipt.Revocation{{ID: u.Claims.ID}}}}
			}
			d := gate.Evaluate(gate.Request{Rules: &rules, Subject: web, Object: p, Receipts: []string{compact}, Now: now, Grace: tt.grace})
			if diff := cmp.Diff(tt.want, reasons(d)); diff != "" {
				t.Errorf("reasons (-want +got):\n%s", diff)
			}
			if got := len(d.Used) == 1 && d.Used[0].Grace; got != tt.wantUsed {
				t.Errorf("used by grace: got %t, want %t (%+v)", got, tt.wantUsed, d.Used)
			}
		})
	}
}

func TestLossesThatOnlyTakeAwayNeedNoReceipt(t *testing.T) {
	const (
		account = `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"x","namespace":"shop"%s}%s}`
		service = `{"apiVersion":"v1","kind":"Service","metadata":{"name":"x","namespace":"shop"},"spec":{"type":%q,"selector":{"app":"x"},"ports":[{"port":80}]}}`
		token   = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x","namespace":"shop"},"type":%q}`
		policy  = `{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"name":"x","namespace":"shop"},"spec":{"podSelector":{},"ingress":[%s]}}`
	)
	fill := func(format string, args ...string) string {
		for _, a := range args {
			i := strings.Index(format, "%")
			if format[i+1] == 'q' {
				a = `"` + a + `"`
			}
			format = format[:i] + a + format[i+2:]
		}
		return format
	}
	const role = `,"annotations":{"eks.amazonaws.com/role-arn":"arn"}`
	for _, tt := range []struct {
		name, kind, from, to string
		want                 []gate.Reason
	}{
		{"a Service that stops exposing anything", "Service", fill(service, "LoadBalancer"), fill(service, "ClusterIP"), nil},
		{"a Service that exposes less", "Service", fill(service, "LoadBalancer"), fill(service, "NodePort"), []gate.Reason{gate.ReceiptMissing}},
		{"a Service that begins to expose", "Service", fill(service, "ClusterIP"), fill(service, "NodePort"), []gate.Reason{gate.ReceiptMissing}},
		{"the type of a Secret", "Secret", fill(token, "kubernetes.io/service-account-token"), fill(token, "Opaque"), nil},
		{"another type of a Secret", "Secret", fill(token, "kubernetes.io/service-account-token"), fill(token, "bootstrap.kubernetes.io/token"), []gate.Reason{gate.ReceiptMissing}},
		{"a cloud identity", "ServiceAccount", fill(account, role, ""), fill(account, "", ""), nil},
		{"pull secrets beside an identity that stays", "ServiceAccount", fill(account, role, `,"imagePullSecrets":[{"name":"a"}]`), fill(account, role, ""), nil},
		{"automount turned on again", "ServiceAccount", fill(account, "", `,"automountServiceAccountToken":false`), fill(account, "", ""), []gate.Reason{gate.ReceiptMissing}},
		{"a new identity where another goes", "ServiceAccount", fill(account, role, ""), fill(account, strings.Replace(role, "eks.amazonaws.com/role-arn", "iam.gke.io/gcp-service-account", 1), ""), []gate.Reason{gate.ReceiptMissing}},
		{"a rule of a NetworkPolicy", "NetworkPolicy", fill(policy, "{}"), fill(policy, ""), []gate.Reason{gate.ReceiptMissing}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := receipt.Subject{Kind: tt.kind, Namespace: "shop", Name: "x"}
			if tt.kind == "NetworkPolicy" {
				s.Group = "networking.k8s.io"
			}
			d := gate.Evaluate(gate.Request{Rules: rules(t), Subject: s, Object: project(t, tt.to), Old: project(t, tt.from), Now: now})
			if diff := cmp.Diff(tt.want, reasons(d)); diff != "" {
				t.Errorf("reasons (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAFieldThatTheClusterFilledInIsNamed(t *testing.T) {
	const ingress = `{"apiVersion":"networking.k8s.io/v1","kind":"Ingress","metadata":{"name":"x","namespace":"shop"},"spec":{%s"rules":[{"host":%q}]}}`
	class := `"ingressClassName":"nginx",`
	object := func(class, host string) string {
		return strings.Replace(strings.Replace(ingress, "%s", class, 1), "%q", `"`+host+`"`, 1)
	}
	s := receipt.Subject{Group: "networking.k8s.io", Kind: "Ingress", Namespace: "shop", Name: "x"}
	signed := project(t, object("", "a.example"))
	compact := sign(t, "release", signed, func(c *receipt.Claims) { c.Subject, c.Leaves = s.String(), leaves(signed) })
	blind := sign(t, "release", signed, func(c *receipt.Claims) { c.Subject = s.String() })
	for _, tt := range []struct {
		name, object, receipt string
		stored                bool
		want                  gate.Reason
	}{
		{"filled in by the cluster", object(class, "a.example"), compact, true, gate.FieldDefaulted},
		{"and another change beside it", object(class, "b.example"), compact, true, gate.DigestMismatch},
		{"another change alone", object("", "b.example"), compact, true, gate.DigestMismatch},
		{"at render nobody filled it in", object(class, "a.example"), compact, false, gate.DigestMismatch},
		{"without leaf hashes nobody knows", object(class, "a.example"), blind, true, gate.DigestMismatch},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := gate.Evaluate(gate.Request{Rules: rules(t), Subject: s, Object: project(t, tt.object), Receipts: []string{tt.receipt}, Now: now, Stored: tt.stored})
			if diff := cmp.Diff([]gate.Reason{tt.want}, reasons(d)); diff != "" {
				t.Fatalf("reasons (-want +got):\n%s", diff)
			}
			if tt.want == gate.FieldDefaulted && !strings.Contains(d.Findings[0].Text, "set spec.ingressClassName: nginx explicitly") {
				t.Errorf("text: got %q, want the line to add", d.Findings[0].Text)
			}
		})
	}
}

func TestAJobHasTheDigestOfItsCronJob(t *testing.T) {
	const spec = `"template":{"metadata":{"annotations":{"vault.hashicorp.com/role":"x"}},"spec":{"hostPID":true,"containers":[{"name":"a","image":"i","command":["x"]}]}}`
	job := project(t, `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a"},"spec":{`+spec+`}}`)
	cron := project(t, `{"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"a"},"spec":{"jobTemplate":{"spec":{`+spec+`}}}}`)
	got, err := job.AsCronJob().Digest(job.Applies())
	if err != nil {
		t.Fatal(err)
	}
	want, err := cron.Digest(cron.Applies())
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("digest: got %s, want %s", got, want)
	}
	if before, _ := job.Digest(job.Applies()); before == want {
		t.Error("the Job's own digest is the CronJob's: AsCronJob shows nothing")
	}
}

func TestWhatThisChangeTouchesIsNamedFirst(t *testing.T) {
	signed := deployment(t, image, `"hostIPC":true,`, "")
	before := deployment(t, image, `"hostIPC":true,"hostNetwork":true,`, "")
	now := deployment(t, image, `"hostIPC":true,"hostNetwork":true,"hostPID":true,`, "")
	stale := sign(t, "release", signed, func(c *receipt.Claims) { c.Leaves = leaves(signed) })
	for _, tt := range []struct {
		name     string
		old, new *projection.Projection
		receipts []string
		want     string
	}{
		{"no receipt, a field added", before, now, nil, "no receipt for privilege (hostPID)"},
		{"no receipt, a field taken out", now, before, nil, "no receipt for privilege (removed: hostPID)"},
		{"no receipt, nothing was there", nil, before, nil, "privilege (hostIPC and 1 more)"},
		{"an older receipt", before, now, []string{stale}, "hostPID is true, hostNetwork is true; receipt"},
		{"an older receipt, nobody knows what was there", nil, now, []string{stale}, "hostNetwork is true, hostPID is true; receipt"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := evaluate(rules(t), tt.old, tt.new, tt.receipts...)
			if len(d.Findings) != 1 || !strings.Contains(d.Findings[0].Text, tt.want) {
				t.Errorf("got %+v, want one finding with %q", d.Findings, tt.want)
			}
		})
	}
}

// Nothing is rendered at admission, so that nothing says that it failed.
func TestWhatIsMalformedIsRefusedWhereNothingIsRendered(t *testing.T) {
	for _, tt := range []struct {
		reason         gate.Reason
		stored, warned string
	}{
		{gate.ObjectMalformed, "SYNC REFUSED [ObjectMalformed] Role x: no", "SYNC WOULD BE REFUSED [ObjectMalformed] Role x: no"},
		{gate.ReceiptMissing, "SYNC REFUSED [ReceiptMissing] Role x: no", "SYNC WOULD BE REFUSED [ReceiptMissing] Role x: no"},
		{gate.PolicyInvalid, "GATE ERROR [PolicyInvalid] Role x: no", "SYNC WOULD BE REFUSED [PolicyInvalid] Role x: no"},
	} {
		s := gate.Sentence{Stored: true, Items: []gate.Item{{Subject: "Role x", Reason: tt.reason, Text: "no"}}}
		if got := s.String(); got != tt.stored {
			t.Errorf("got %q, want %q", got, tt.stored)
		}
		s.Warn = true
		if got := s.String(); got != tt.warned {
			t.Errorf("Warn: got %q, want %q", got, tt.warned)
		}
	}
}
