package webhook

import (
	"strings"
	"testing"

	"github.com/syncgate/syncgate/plugin/gate"
)

const (
	signedIngress = `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: web, namespace: shop}, spec: {defaultBackend: {service: {name: web, port: {number: 80}}}}}`
	openService   = `{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {ports: [{port: 80}]}}`
	team          = `{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {kubernetes.io/metadata.name: shop}}}`
	claim         = `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: shop}, spec: {volumeName: pv-1}}`
	signing       = `{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {name: csr}, spec: {signerName: example.com/s, request: eA==, usages: [digital signature]}}`
	custom        = `{apiVersion: example.com/v1, kind: Fleet, metadata: {name: f, namespace: shop}, spec: {image: "` + pinned + `"}}`
)

// withMeta is an object with one more label or annotation.
func withMeta(obj map[string]any, part, key, value string) map[string]any {
	meta := obj["metadata"].(map[string]any)
	values, _ := meta[part].(map[string]any)
	if values == nil {
		values = map[string]any{}
		meta[part] = values
	}
	values[key] = value
	return obj
}

func TestAStatusWriteIsJudgedByWhatItChanges(t *testing.T) {
	pod := object("v1", "Pod", "p", pinned, "")
	const snippet = "nginx.ingress.kubernetes.io/configuration-snippet"
	for _, tt := range []struct {
		name, policy, subresource string
		user                      string
		old                       string
		change                    func(map[string]any) map[string]any
		how                       How
		code                      gate.Reason
		text                      string
	}{
		{name: "a snippet on an Ingress", subresource: "status", old: signedIngress, change: func(o map[string]any) map[string]any { return withMeta(o, "annotations", snippet, "x") },
			how: Denied, code: gate.ReceiptMissing, text: `Ingress shop/web: no receipt for network (metadata.annotations["` + snippet + `"]); written by mallory through the subresource status; Fix: change labels and annotations in the manifest`},
		{name: "its address", subresource: "status", old: signedIngress, change: func(o map[string]any) map[string]any { o["status"] = map[string]any{"x": "y"}; return o }, how: Unchanged},
		{name: "a controller's record", subresource: "status", old: signedIngress, change: func(o map[string]any) map[string]any {
			return withMeta(o, "annotations", "example.com/neg-status", "x")
		}, how: Unchanged},
		{name: "with a receipt for it", subresource: "status", old: signedIngress, change: func(o map[string]any) map[string]any {
			return sign(t, withMeta(o, "annotations", snippet, "x"), "release", nil)
		}, how: ByReceipt},
		{name: "a writer who is trusted with it", policy: "trustedWriters:\n- {user: dns, namespaces: [shop], kinds: [Ingress], categories: [network], until: 2028-01-01}\n", user: "dns", subresource: "status", old: signedIngress,
			change: func(o map[string]any) map[string]any { return withMeta(o, "annotations", snippet, "x") }, how: Trusted},
		{name: "an annotation that opens a Service", subresource: "status", old: openService, change: func(o map[string]any) map[string]any {
			return withMeta(o, "annotations", "tailscale.com/expose", "true")
		},
			how: Denied, code: gate.ReceiptMissing, text: "tailscale.com/expose"},
		{name: "networks of a Pod", subresource: "status", old: pod, change: func(o map[string]any) map[string]any {
			return withMeta(o, "annotations", "k8s.v1.cni.cncf.io/networks", "storage")
		},
			how: Denied, code: gate.ReceiptMissing, text: "Pod shop/p"},
		{name: "what a network plugin saw", subresource: "status", old: pod, change: func(o map[string]any) map[string]any {
			return withMeta(o, "annotations", "k8s.v1.cni.cncf.io/network-status", "[]")
		}, how: Unchanged},
		{name: "a rollback", subresource: "status", old: deployment(pinned, ""), change: func(o map[string]any) map[string]any { return withMeta(o, "annotations", rollback, "1") },
			how: Denied, code: gate.ObjectMalformed, text: "makes the deployment controller restore an older image"},
		{name: "a rollback by its controller", user: controller + "deployment-controller", subresource: "status", old: deployment(pinned, ""), change: func(o map[string]any) map[string]any { return withMeta(o, "annotations", rollback, "1") },
			how: Denied, code: gate.ObjectMalformed},
		{name: "force", subresource: "status", old: claim, change: func(o map[string]any) map[string]any { return withMeta(o, "annotations", gate.FluxForce, "enabled") }, how: Denied, code: gate.ForceNotAllowed, text: gate.FluxForce},
		{name: "pod security of a Namespace", subresource: "status", old: team, change: func(o map[string]any) map[string]any {
			return withMeta(o, "labels", "pod-security.kubernetes.io/enforce", "privileged")
		}, how: Denied, code: gate.ReceiptMissing, text: "Namespace shop: no receipt for privilege"},
		{name: "and with its finalizers", subresource: "finalize", old: team, change: func(o map[string]any) map[string]any {
			return withMeta(o, "labels", "pod-security.kubernetes.io/enforce", "privileged")
		}, how: Denied, code: gate.ReceiptMissing, text: "through the subresource finalize; Fix: "},
		{name: "its finalizers", subresource: "finalize", old: team, change: func(o map[string]any) map[string]any { o["spec"] = map[string]any{}; return o }, how: Unchanged},
		{name: "finalize is a Namespace's", subresource: "finalize", old: pod, change: func(o map[string]any) map[string]any { return o }, how: Denied, code: gate.PolicyInvalid},
		{name: "an approval", subresource: "approval", old: signing, change: func(o map[string]any) map[string]any { o["status"] = map[string]any{}; return o }, how: Unchanged},
		{name: "scale is no object of the kind", subresource: "scale", old: deployment(pinned, ""), change: func(o map[string]any) map[string]any { return o }, how: Denied, code: gate.PolicyInvalid},
		{name: "a custom kind whose server takes more than the status", policy: "kinds:\n- {group: example.com, kind: Fleet, path: spec.image, category: x-fleet}\n", subresource: "status", old: custom, change: func(o map[string]any) map[string]any {
			o["spec"] = map[string]any{"image": other}
			return o
		}, how: Denied, code: gate.ReceiptMissing, text: "x-fleet (spec.image)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			user := tt.user
			if user == "" {
				user = person
			}
			q := ask("UPDATE", user, tt.change(tree(t, tt.old)), tree(t, tt.old))
			q.Subresource = tt.subresource
			if q.Kind == "Namespace" {
				q.Namespace = q.Name
			}
			v := state(t, tt.policy).decide(q, now)
			if v.How != tt.how || v.Reason != tt.code || !strings.Contains(v.Message, tt.text) {
				t.Errorf("got %s %s %q, want %s %s %q", v.How, v.Reason, v.Message, tt.how, tt.code, tt.text)
			}
		})
	}
}

// TestWhatAStatusWriteDidCanBePutRight by whoever applies what was signed.
func TestWhatAStatusWriteDidCanBePutRight(t *testing.T) {
	signed := func() map[string]any { return sign(t, tree(t, signedIngress), "release", nil) }
	touched := withMeta(signed(), "annotations", "nginx.ingress.kubernetes.io/configuration-snippet", "x")
	if v := state(t, "").decide(ask("UPDATE", person, signed(), touched), now); v.How != ByReceipt {
		t.Errorf("back to what was signed: got %s %q", v.How, v.Message)
	}
	q := ask("UPDATE", person, signed(), touched)
	q.Subresource = "status"
	if v := state(t, "").decide(q, now); v.How != ByReceipt {
		t.Errorf("and in the way that it came: got %s %q", v.How, v.Message)
	}
	// A tool that leaves it alone is told what to do: signing again would not help.
	next := strings.Replace(signedIngress, "number: 80", "number: 81", 1)
	release := withMeta(sign(t, tree(t, next), "release", nil), "annotations", "nginx.ingress.kubernetes.io/configuration-snippet", "x")
	const fix = `Fix: take metadata.annotations["nginx.ingress.kubernetes.io/configuration-snippet"] off the live object`
	if v := state(t, "").decide(ask("UPDATE", person, release, touched), now); v.Reason != gate.DigestMismatch || !strings.Contains(v.Message, fix) {
		t.Errorf("a release over it: got %s %q", v.Reason, v.Message)
	}
	if v := state(t, "").decide(ask("UPDATE", person, release, signed()), now); v.Reason != gate.DigestMismatch || strings.Contains(v.Message, "off the live object") {
		t.Errorf("a release that brings it: got %s %q", v.Reason, v.Message)
	}
}

func TestABindingBringsNothingThatCounts(t *testing.T) {
	const trusts = "trustedWriters:\n- {user: scheduler, namespaces: [shop], kinds: [Pod], categories: [network], until: 2028-01-01}\n"
	networks := `annotations: {k8s.v1.cni.cncf.io/networks: storage}`
	pod := sign(t, withMeta(tree(t, object("v1", "Pod", "p", pinned, "")), "annotations", "k8s.v1.cni.cncf.io/networks", "storage"), "release", nil)
	signed := pod["metadata"].(map[string]any)["annotations"].(map[string]any)["syncgate.io/receipt"].(string)
	for _, tt := range []struct {
		name, policy, user, meta string
		how                      How
		code                     gate.Reason
		text                     string
	}{
		{name: "nothing", meta: ``, how: Unchanged},
		{name: "what is free", meta: `annotations: {a: b}, labels: {topology.kubernetes.io/zone: a}`, how: Unchanged},
		{name: "networks", meta: networks, how: Denied, code: gate.ReceiptMissing,
			text: `SYNC REFUSED [ReceiptMissing] 1 of 1 gated objects: Pod shop/p: a Binding by mallory would put metadata.annotations["k8s.v1.cni.cncf.io/networks"] on the Pod, for which no receipt can be given there; Fix: bind without it`},
		{name: "with a receipt of the Pod's", meta: `annotations: {k8s.v1.cni.cncf.io/networks: storage, syncgate.io/receipt: ` + signed + `}`, how: Denied, code: gate.ReceiptMissing},
		{name: "a cloud identity", meta: `labels: {azure.workload.identity/use: "true"}`, how: Denied, code: gate.ReceiptMissing, text: "azure.workload.identity/use"},
		{name: "force", meta: `annotations: {kustomize.toolkit.fluxcd.io/force: enabled}`, how: Denied, code: gate.ForceNotAllowed, text: "kustomize.toolkit.fluxcd.io/force"},
		{name: "force by a label", meta: `labels: {kustomize.toolkit.fluxcd.io/force: enabled}`, how: Denied, code: gate.ForceNotAllowed, text: "label kustomize.toolkit.fluxcd.io/force"},
		{name: "labels that are none", meta: `labels: [a]`, how: Denied, code: gate.ObjectMalformed, text: "Pod shop/p"},
		{name: "a scheduler that policy trusts with it", policy: trusts, user: "scheduler", meta: networks, how: Trusted},
		{name: "and with nothing else", policy: trusts, user: "scheduler", meta: `annotations: {iam.amazonaws.com/role: r}`, how: Denied, code: gate.ReceiptMissing},
		{name: "in a namespace that policy leaves alone", policy: "scope: {admission: {namespaces: {exclude: [shop]}}}\n", meta: networks, how: OutOfScope},
		{name: "in Warn mode", policy: "mode: {admission: Warn}\n", meta: networks, how: Warned, code: gate.ReceiptMissing, text: "SYNC WOULD BE REFUSED"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			meta := "name: p, namespace: shop"
			if tt.meta != "" {
				meta += ", " + tt.meta
			}
			user := tt.user
			if user == "" {
				user = person
			}
			for _, subresource := range []string{"", "binding"} { // bindings, pods/binding
				q := ask("CREATE", user, tree(t, `{apiVersion: v1, kind: Binding, metadata: {`+meta+`}, target: {kind: Node, name: node-1}}`), nil)
				q.Subresource = subresource
				v := state(t, tt.policy).decide(q, now)
				if v.How != tt.how || v.Reason != tt.code || !strings.Contains(v.Message, tt.text) || v.Allowed != (tt.how != Denied) {
					t.Errorf("%q: got %s %s %q, want %s %s %q", subresource, v.How, v.Reason, v.Message, tt.how, tt.code, tt.text)
				}
			}
		})
	}
	q := ask("CREATE", person, tree(t, object("v1", "Pod", "p", pinned, "")), nil)
	q.Kind, q.Subresource = "Binding", "binding"
	if v := state(t, "").decide(q, now); v.How != Denied || v.Reason != gate.ObjectMalformed {
		t.Errorf("a Pod sent as a Binding: got %s %s", v.How, v.Reason)
	}
}
