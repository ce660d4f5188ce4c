package gate_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/projection"
	"github.com/syncgate/syncgate/plugin/receipt"
)

// Each way in which the one receipt of an object can be wrong has its own
// code, and none of them allows.
func TestOneReceiptOneFault(t *testing.T) {
	p := deployment(t, image, "", "")
	moved := deployment(t, other, "", "")
	good := func(change func(*receipt.Claims)) string { return sign(t, "release", p, change) }
	tests := []struct {
		name    string
		rules   func(*gate.Rules)
		receipt string
		want    gate.Reason
	}{
		{"not a JWS", nil, "x", gate.ReceiptMalformed},
		{"algorithm not in the issuer's list", func(r *gate.Rules) {
			is := r.Issuers["release"]
			is.Algorithms = []string{"ES256"}
			r.Issuers["release"] = is
		}, good(nil), gate.AlgorithmNotAllowed},
		{"issuer that policy does not name", func(r *gate.Rules) { delete(r.Issuers, "release") }, good(nil), gate.IssuerUnknown},
		{"key that the issuer does not have", func(r *gate.Rules) {
			is := r.Issuers["release"]
			is.Keys = []receipt.Key{signer(t, "security").Key()}
			r.Issuers["release"] = is
		}, good(nil), gate.KeyUnknown},
		{"signature of another key under the same key ID", func(r *gate.Rules) {
			is := r.Issuers["release"]
			k := signer(t, "security").Key()
			k.ID = "release"
			is.Keys = []receipt.Key{k}
			r.Issuers["release"] = is
		}, good(nil), gate.SignatureInvalid},
		{"issuer limited to other subjects", func(r *gate.Rules) {
			is := r.Issuers["release"]
			is.AllSubjects, is.Subjects = false, []gate.Glob{"*/*/bank/*"}
			r.Issuers["release"] = is
		}, good(nil), gate.IssuerNotAllowed},
		{"issuer limited to other environments", func(r *gate.Rules) {
			is := r.Issuers["release"]
			is.Environments = []string{"test"}
			r.Issuers["release"] = is
		}, good(nil), gate.IssuerNotAllowed},
		{"issuer without any subject", func(r *gate.Rules) {
			is := r.Issuers["release"]
			is.AllSubjects = false
			r.Issuers["release"] = is
		}, good(nil), gate.IssuerNotAllowed},
		{"lifetime beyond the issuer's", nil, good(func(c *receipt.Claims) { c.Expires = c.IssuedAt + 91*day }), gate.IssuerNotAllowed},
		{"another subject", nil, good(func(c *receipt.Claims) { c.Subject = "apps/Deployment/shop/api" }), gate.SubjectMismatch},
		{"the same name in another namespace", nil, good(func(c *receipt.Claims) { c.Subject = "apps/Deployment/bank/web" }), gate.SubjectMismatch},
		{"a prefix that the name happens to have", nil, good(func(c *receipt.Claims) { c.Subject = "apps/Deployment/shop/we"; c.Generated = true }), gate.SubjectMismatch},
		{"another environment", nil, good(func(c *receipt.Claims) { c.Environment = "test" }), gate.EnvironmentMismatch},
		{"another profile", nil, good(func(c *receipt.Claims) { c.Profile = "v2" }), gate.ProfileUnsupported},
		{"a category that the kind does not have", nil, good(func(c *receipt.Claims) {
			c.Covers, c.Digest = []string{"rbac"}, "sha256:"+strings.Repeat("0", 64)
		}), gate.CategoryNotCovered},
		{"signed for another image", nil, sign(t, "release", moved, nil), gate.DigestMismatch},
		{"issued in the future", nil, good(func(c *receipt.Claims) { c.IssuedAt = now + 61; c.Expires = now + 2*day }), gate.ReceiptNotYetValid},
		{"not before a later day", nil, good(func(c *receipt.Claims) { c.NotBefore = now + 600 }), gate.ReceiptNotYetValid},
		{"expired", nil, good(func(c *receipt.Claims) { c.Expires = now - 60 }), gate.ReceiptExpired},
		{"less left than minRemaining", func(r *gate.Rules) { r.MinRemaining = 2 * day }, good(nil), gate.ReceiptExpired},
		{"retired key", func(r *gate.Rules) {
			is := r.Issuers["release"]
			is.Retired = map[string]bool{"release": true}
			r.Issuers["release"] = is
		}, good(nil), gate.KeyRetired},
		{"stale revocation list", func(r *gate.Rules) { r.Revocations = &gate.Revocations{StaleAt: now} }, good(nil), gate.RevocationListStale},
		{"revoked", func(r *gate.Rules) {
			r.Revocations = &gate.Revocations{List: receipt.RevocationList{Entries: []receipt.Revocation{{KeyID: "release"}}}}
		}, good(nil), gate.ReceiptRevoked},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := rules(t)
			if tt.rules != nil {
				tt.rules(r)
			}
			d := evaluate(r, nil, p, tt.receipt)
			if d.Allowed() {
				t.Fatal("allowed")
			}
			if got, want := reasons(d), []gate.Reason{tt.want}; !slices.Equal(got, want) {
				t.Errorf("got %v, want %v: %+v", got, want, d.Findings)
			}
			// A bad receipt beside a good one is reported and decides nothing.
			ok := evaluate(rules(t), nil, p, tt.receipt, sign(t, "security", p, nil))
			if !ok.Allowed() {
				t.Errorf("a good receipt beside it: %+v", ok.Findings)
			}
		})
	}
}

func TestAllowed(t *testing.T) {
	p := deployment(t, image, "", "")
	generated := func(c *receipt.Claims) { c.Subject, c.Generated = "batch/Job/shop/migrate-", true }
	tests := []struct {
		name string
		req  gate.Request
	}{
		{"one receipt that covers all", gate.Request{Subject: web, Object: p, Receipts: []string{sign(t, "release", p, nil)}}},
		{"clocks that differ by a minute", gate.Request{Subject: web, Object: p, Receipts: []string{sign(t, "release", p, func(c *receipt.Claims) { c.IssuedAt, c.NotBefore, c.Expires = now+60, now+60, now+day })}}},
		{"expired within the leeway", gate.Request{Subject: web, Object: p, Receipts: []string{sign(t, "release", p, func(c *receipt.Claims) { c.Expires = now - 59 })}}},
		{"categories from two receipts", gate.Request{Subject: web, Object: p, Receipts: []string{
			sign(t, "release", p, covers("command", "identity", "image")), sign(t, "security", p, covers("network", "privilege", "secret"))}}},
		{"an accepted environment", gate.Request{Subject: web, Object: p, Receipts: []string{sign(t, "release", p, func(c *receipt.Claims) { c.Environment = "prod-all" })}}},
		{"generated name, at render", gate.Request{Subject: receipt.Subject{Group: "batch", Kind: "Job", Namespace: "shop", Name: "migrate-", Generated: true}, GenerateName: "migrate-", Object: p, Receipts: []string{sign(t, "release", p, generated)}}},
		{"generated name, at admission", gate.Request{Subject: receipt.Subject{Group: "batch", Kind: "Job", Namespace: "shop", Name: "migrate-x7f"}, GenerateName: "migrate-", Object: p, Receipts: []string{sign(t, "release", p, generated)}}},
		{"a plain ClusterIP Service, because service is not required", gate.Request{Subject: web, Object: project(t, `{"apiVersion":"v1","kind":"Service","metadata":{"name":"x"},"spec":{"selector":{"app":"web"},"ports":[{"port":80}]}}`)}},
		{"no leaf, no receipt", gate.Request{Subject: web, Object: project(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"data":{"a":"b"}}`)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.req.Rules, tt.req.Now = rules(t), now
			tt.req.Rules.Accepts = []string{"prod-all"}
			if d := gate.Evaluate(tt.req); !d.Allowed() {
				t.Errorf("refused: %+v", d.Findings)
			}
		})
	}
}

func TestDenied(t *testing.T) {
	p := deployment(t, image, "", "")
	good := sign(t, "release", p, nil)
	tests := []struct {
		name string
		req  gate.Request
		want gate.Reason
	}{
		{"zero request", gate.Request{}, gate.PolicyInvalid},
		{"no rules", gate.Request{Object: p, Receipts: []string{good}}, gate.PolicyInvalid},
		{"rules without an environment", gate.Request{Rules: &gate.Rules{}, Object: p, Receipts: []string{good}}, gate.PolicyInvalid},
		{"no projection", gate.Request{Rules: rules(t), Receipts: []string{good}}, gate.ObjectMalformed},
		{"a projection that nobody made", gate.Request{Rules: rules(t), Object: &projection.Projection{}, Receipts: []string{good}}, gate.ObjectMalformed},
		{"no receipt", gate.Request{Rules: rules(t), Subject: web, Object: p}, gate.ReceiptMissing},
		{"an empty receipt", gate.Request{Rules: rules(t), Subject: web, Object: p, Receipts: []string{""}}, gate.ReceiptMalformed},
		{"rules that trust nobody", gate.Request{Rules: &gate.Rules{Environment: "prod"}, Subject: web, Object: p, Receipts: []string{good}}, gate.IssuerUnknown},
		{"not all categories covered", gate.Request{Rules: rules(t), Subject: web, Object: p, Receipts: []string{sign(t, "release", p, covers("image"))}}, gate.CategoryNotCovered},
		{"a tag without digest", gate.Request{Rules: rules(t), Subject: web, Object: deployment(t, "web:latest", "", ""), Receipts: []string{sign(t, "release", deployment(t, "web:latest", "", ""), nil)}}, gate.ImageNotPinned},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.req.Now = now
			d := gate.Evaluate(tt.req)
			if d.Allowed() {
				t.Fatal("allowed")
			}
			if len(d.Findings) == 0 || d.Findings[0].Reason != tt.want {
				t.Errorf("got %+v, want %s first", d.Findings, tt.want)
			}
		})
	}
	if (gate.Decision{}).Allowed() {
		t.Error("the zero Decision allows")
	}
}

// More receipts than an object may hold are refused in bounded time, and what
// stands first still counts.
func TestTenThousandReceipts(t *testing.T) {
	p := deployment(t, image, "", "")
	junk := slices.Repeat([]string{sign(t, "release", deployment(t, other, "", ""), nil)}, 10000)
	d := evaluate(rules(t), nil, p, junk...)
	if d.Allowed() || len(d.Ignored) > receipt.MaxPerObject+1 {
		t.Errorf("allowed=%v, %d receipts looked at", d.Allowed(), len(d.Ignored))
	}
	if got := d.Findings[0].Text; !strings.Contains(got, ": more than 16 receipts") {
		t.Errorf("does not say that receipts were not looked at: %q", got)
	}
	if d := evaluate(rules(t), nil, p, append([]string{sign(t, "release", p, nil)}, junk...)...); !d.Allowed() {
		t.Errorf("a good one first: %+v", d.Findings)
	}
}

// A category that did not change needs no receipt, whatever became of its own.
func TestUnchangedCategoriesPass(t *testing.T) {
	old := deployment(t, image, `"hostPID":true,`, "")
	scaled := deployment(t, image, `"hostPID":true,`, `"resources":{"limits":{"cpu":"1"}},`)
	bumped := deployment(t, other, `"hostPID":true,`, "")
	swapped := deployment(t, strings.Replace(other, "acme/web", "evil/web", 1), `"hostPID":true,`, "")
	imageOnly := covers("command", "image")
	tests := []struct {
		name     string
		old, new *projection.Projection
		receipts []string
		allowed  bool
		want     []projection.Category // of the findings
	}{
		{"nothing gated changed, no receipt", old, scaled, nil, true, nil},
		{"nothing gated changed, junk receipt", old, scaled, []string{"x"}, true, nil},
		{"image bumped, image receipt", old, bumped, []string{sign(t, "release", bumped, imageOnly)}, true, nil},
		{"image bumped, no receipt", old, bumped, nil, false, []projection.Category{"image"}},
		{"image bumped, receipt of the old image", old, bumped, []string{sign(t, "release", old, imageOnly)}, false, []projection.Category{"image"}},
		{"another program in the privileged container needs privilege too", old, swapped, []string{sign(t, "release", swapped, imageOnly)}, false, []projection.Category{"privilege"}},
		{"created, image receipt only", nil, bumped, []string{sign(t, "release", bumped, imageOnly)}, false, []projection.Category{"identity", "network", "privilege", "secret"}},
		{"privilege removed", old, deployment(t, image, "", ""), nil, false, []projection.Category{"privilege"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := evaluate(rules(t), tt.old, tt.new, tt.receipts...)
			if d.Allowed() != tt.allowed {
				t.Errorf("allowed=%v, want %v: %+v", d.Allowed(), tt.allowed, d.Findings)
			}
			var got []projection.Category
			for _, f := range d.Findings {
				got = append(got, f.Categories...)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("categories (-want +got):\n%s", diff)
			}
		})
	}
}
