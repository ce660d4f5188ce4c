package webhook

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/receipt"
)

const (
	person     = "mallory"
	controller = "system:serviceaccount:kube-system:"
)

func TestDecide(t *testing.T) {
	plain := deployment(pinned, "")
	signed := func(text string) map[string]any { return sign(t, tree(t, text), "release", nil) }
	with := func(obj map[string]any, key, value string) map[string]any {
		annotations, _ := obj["metadata"].(map[string]any)["annotations"].(map[string]any)
		if annotations == nil {
			annotations = map[string]any{}
			obj["metadata"].(map[string]any)["annotations"] = annotations
		}
		annotations[key] = value
		return obj
	}
	expired := func(c *receipt.Claims) { c.IssuedAt, c.Expires = now-10*day, now-2*day }
	cron := object("batch/v1", "CronJob", "tick", pinned, "")
	ofCron := receiptFor(t, tree(t, cron), "release", nil)
	ofDeployment := receiptFor(t, tree(t, plain), "release", nil)
	terminating := func(text string, finalizers ...any) map[string]any {
		obj := tree(t, text)
		meta := obj["metadata"].(map[string]any)
		meta["deletionTimestamp"], meta["deletionGracePeriodSeconds"] = "2027-01-15T00:00:00Z", json.Number("0")
		if finalizers != nil {
			meta["finalizers"] = finalizers
		}
		return obj
	}
	waiting := func(obj map[string]any) map[string]any {
		obj["metadata"].(map[string]any)["deletionGracePeriodSeconds"] = json.Number("30")
		return obj
	}
	owned := func(obj map[string]any, owners ...string) map[string]any {
		var list []any
		for _, o := range owners {
			list = append(list, tree(t, o))
		}
		obj["metadata"].(map[string]any)["ownerReferences"] = list
		return obj
	}
	const (
		ofTick = "{apiVersion: batch/v1, kind: CronJob, name: tick, uid: u, controller: true}"
		ofWeb  = "{apiVersion: apps/v1, kind: Deployment, name: web, uid: u, controller: true}"
	)
	job := func(image string) map[string]any { return tree(t, object("batch/v1", "Job", "by-hand", image, "")) }
	set := func() map[string]any { return tree(t, object("apps/v1", "ReplicaSet", "web-1", pinned, "")) }
	binding := `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: b, namespace: shop}, roleRef: {kind: Role, name: r}, subjects: [{kind: User, name: %s}]}`
	malformed := `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {replicas: %s, template: {spec: {containers: [{name: a, image: x, env: [{name: LD_PRELOAD, value: a}, {name: LD_PRELOAD, value: b}]}]}}}}`
	withImage := func(s, image string) string { return strings.Replace(s, pinned, image, 1) }

	for _, tt := range []struct {
		name     string
		policy   string
		op, user string
		obj, old map[string]any
		how      How
		code     gate.Reason
		text     string
	}{
		{name: "a signed object is created", op: "CREATE", obj: signed(plain), how: ByReceipt},
		{name: "an unsigned one is not", op: "CREATE", obj: tree(t, plain), how: Denied, code: gate.ReceiptMissing, text: "Deployment shop/web"},
		{name: "an unpinned one is not, whoever signed it", op: "CREATE", obj: signed(withImage(plain, "ghcr.io/acme/web:latest")), how: Denied, code: gate.ImageNotPinned},
		{name: "an edit of what is free passes", op: "UPDATE", obj: tree(t, deployment(pinned, "hostname: x, ")), old: tree(t, plain), how: Unchanged},
		{name: "another image does not", op: "UPDATE", obj: tree(t, deployment(other, "")), old: tree(t, plain), how: Denied, code: gate.ReceiptMissing, text: "image"},
		{name: "what changed is named, not what was there", op: "UPDATE", obj: tree(t, deployment(pinned, "hostPID: true, shareProcessNamespace: true, ")), old: tree(t, deployment(pinned, "hostPID: true, ")), how: Denied, code: gate.ReceiptMissing, text: "no receipt for privilege (shareProcessNamespace)"},
		{name: "with the receipt of the image before neither", op: "UPDATE", obj: carry(tree(t, deployment(other, "")), ofDeployment), old: tree(t, plain), how: Denied, code: gate.DigestMismatch, text: "containers[web].image"},
		{name: "an expired receipt is no reason against what runs", op: "UPDATE", obj: sign(t, tree(t, plain), "release", expired), old: sign(t, tree(t, plain), "release", expired), how: Unchanged},
		{name: "a Pod has grace", op: "CREATE", obj: sign(t, tree(t, object("v1", "Pod", "p", pinned, "")), "release", expired), how: ByReceipt},
		{name: "a Deployment has none", op: "CREATE", obj: sign(t, tree(t, plain), "release", expired), how: Denied, code: gate.ReceiptExpired},
		{name: "break-glass has none", op: "CREATE", obj: sign(t, tree(t, object("v1", "Pod", "p", pinned, "")), "glass", func(c *receipt.Claims) { c.IssuedAt, c.Expires = now-7200, now-3600 }), how: Denied, code: gate.ReceiptExpired},

		{name: "a Job may use its CronJob's receipt", op: "CREATE", obj: carry(owned(job(pinned), ofTick), ofCron), how: ByReceipt},
		{name: "for what the CronJob runs", op: "CREATE", obj: carry(owned(job(other), ofTick), ofCron), how: Denied, code: gate.DigestMismatch, text: "was signed for another image; written by mallory"},
		{name: "a ReplicaSet may use its Deployment's", op: "CREATE", obj: carry(owned(set(), ofWeb), ofDeployment), how: ByReceipt},
		{name: "not another's", op: "CREATE", obj: carry(owned(set(), strings.Replace(ofWeb, "web", "shop", 1)), ofDeployment), how: Denied, code: gate.SubjectMismatch, text: "is for apps/Deployment/shop/web, which its ownerReferences do not name as its controller; written by mallory"},
		{name: "nor anybody's that has no owner", op: "CREATE", obj: carry(set(), ofDeployment), how: Denied, code: gate.SubjectMismatch},
		{name: "an owner is no controller", op: "CREATE", obj: carry(owned(set(), strings.Replace(ofWeb, "true", "false", 1)), ofDeployment), how: Denied, code: gate.SubjectMismatch},
		{name: "nor is one of that name and another kind", op: "CREATE", obj: carry(owned(set(), strings.Replace(ofWeb, "Deployment", "StatefulSet", 1)), ofDeployment), how: Denied, code: gate.SubjectMismatch},
		{name: "or of another group", op: "CREATE", obj: carry(owned(job(pinned), strings.Replace(ofTick, "batch", "example.com", 1)), ofCron), how: Denied, code: gate.SubjectMismatch},
		{name: "the controller stands anywhere among the owners", op: "CREATE", obj: carry(owned(job(pinned), "{apiVersion: v1, kind: ConfigMap, name: tick, uid: c}", ofTick), ofCron), how: ByReceipt},
		{name: "a Pod may not", op: "CREATE", obj: carry(tree(t, object("v1", "Pod", "web-1", pinned, "")), ofDeployment), how: Denied, code: gate.SubjectMismatch},

		{name: "a controller makes Pods", op: "CREATE", user: controller + "replicaset-controller", obj: tree(t, object("v1", "Pod", "p", "x", "")), how: Exempt},
		{name: "but not Deployments", op: "UPDATE", user: controller + "deployment-controller", obj: tree(t, deployment(other, "")), old: tree(t, plain), how: Denied, code: gate.ReceiptMissing},
		{name: "nor somebody else's kind", op: "CREATE", user: controller + "deployment-controller", obj: tree(t, object("v1", "Pod", "p", pinned, "")), how: Denied, code: gate.ReceiptMissing},
		{name: "a name like a controller's is none", op: "CREATE", user: "system:serviceaccount:shop:replicaset-controller", obj: tree(t, object("v1", "Pod", "p", pinned, "")), how: Denied, code: gate.ReceiptMissing},
		{name: "where controllers share a name it is theirs", policy: "sharedControllerIdentity: system:kube-controller-manager\n", op: "CREATE", user: "system:kube-controller-manager", obj: tree(t, object("v1", "Pod", "p", "x", "")), how: Exempt},
		{name: "a ControllerRevision is its controllers'", op: "CREATE", obj: signed(`{apiVersion: apps/v1, kind: ControllerRevision, metadata: {name: r, namespace: shop}, data: {spec: {template: {spec: {containers: [{name: a, image: "` + pinned + `"}]}}}}}`), how: Denied, code: gate.ObjectMalformed},

		{name: "an excluded namespace is left alone", policy: "scope: {admission: {namespaces: {exclude: [shop]}}}\n", op: "CREATE", obj: tree(t, plain), how: OutOfScope},
		{name: "but not the Namespace itself, whose labels others go by", policy: "scope: {admission: {namespaces: {exclude: [shop]}}}\n", op: "UPDATE", obj: tree(t, `{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {team: payments}}}`), old: tree(t, `{apiVersion: v1, kind: Namespace, metadata: {name: shop}}`), how: Denied, code: gate.ReceiptMissing, text: "Namespace shop"},
		{name: "one that is not included too", policy: "scope: {admission: {namespaces: {include: [other]}}}\n", op: "CREATE", obj: tree(t, plain), how: OutOfScope},
		{name: "Warn lets pass", policy: "mode: {admission: Warn}\n", op: "CREATE", obj: tree(t, plain), how: Warned, code: gate.ReceiptMissing, text: "SYNC WOULD BE REFUSED"},

		{name: "a write that takes the last finalizer is never stored", op: "UPDATE", obj: terminating(deployment(other, "")), old: terminating(plain, "x/y"), how: Deleting},
		{name: "of whatever kind", op: "UPDATE", obj: terminating(strings.Replace(binding, "%s", "mallory", 1)), old: terminating(strings.Replace(binding, "%s", "alice", 1), "x/y"), how: Deleting},
		{name: "one that leaves another is", op: "UPDATE", obj: terminating(deployment(other, ""), "x/y"), old: terminating(plain, "x/y", "x/z"), how: Denied, code: gate.ReceiptMissing},
		{name: "so is that of a Pod which is given time to end", op: "UPDATE", obj: waiting(terminating(object("v1", "Pod", "p", other, ""))), old: waiting(terminating(object("v1", "Pod", "p", pinned, ""))), how: Denied, code: gate.ReceiptMissing},
		{name: "and of an object that nobody deleted", op: "UPDATE", obj: terminating(deployment(other, "")), old: tree(t, plain), how: Denied, code: gate.ReceiptMissing},
		{name: "a terminating RoleBinding still grants", op: "UPDATE", obj: terminating(strings.Replace(binding, "%s", "mallory", 1), "x/y"), old: terminating(strings.Replace(binding, "%s", "alice", 1), "x/y"), how: Denied, code: gate.ReceiptMissing},
		{name: "its finalizers are free", op: "UPDATE", obj: terminating(strings.Replace(binding, "%s", "alice", 1), "x/y"), old: terminating(strings.Replace(binding, "%s", "alice", 1), "x/y", "x/z"), how: Unchanged},
		{name: "an old object that cannot be projected can be scaled", op: "UPDATE", obj: tree(t, strings.Replace(malformed, "%s", "5", 1)), old: tree(t, strings.Replace(malformed, "%s", "1", 1)), how: Unchanged},
		{name: "not changed", op: "UPDATE", obj: tree(t, strings.Replace(strings.Replace(malformed, "%s", "1", 1), "image: x", "image: y", 1)), old: tree(t, strings.Replace(malformed, "%s", "1", 1)), how: Denied, code: gate.ObjectMalformed},
		{name: "one that was asked for before the gate can be taken back", op: "UPDATE", obj: tree(t, plain), old: with(tree(t, plain), rollback, "1"), how: Unchanged},
		{name: "and not carried out", op: "UPDATE", user: controller + "deployment-controller", obj: tree(t, deployment(other, "")), old: with(tree(t, plain), rollback, "1"), how: Denied, code: gate.ReceiptMissing},
		{name: "nor asked for otherwise", op: "UPDATE", obj: with(tree(t, plain), rollback, "2"), old: with(tree(t, plain), rollback, "1"), how: Denied, code: gate.ObjectMalformed},
		{name: "a rollback by annotation is malformed", op: "UPDATE", obj: with(tree(t, plain), "deprecated.deployment.rollback.to", "1"), old: tree(t, plain), how: Denied, code: gate.ObjectMalformed},

		{name: "force is refused when it comes", op: "UPDATE", obj: with(signed(plain), gate.ArgoSyncOptions, "Replace=true"), old: signed(plain), how: Denied, code: gate.ForceNotAllowed},
		{name: "force that was there before the gate is left alone", op: "UPDATE", obj: with(signed(plain), gate.ArgoSyncOptions, "Replace=true"), old: with(signed(plain), gate.ArgoSyncOptions, "Replace=true"), how: Unchanged},

		{name: "DELETE is free", op: "DELETE", old: tree(t, `{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: deny, namespace: shop}, spec: {podSelector: {}}}`), how: OutOfScope},
		{name: "unless policy gates it", policy: "gatedDeletes: [NetworkPolicy]\n", op: "DELETE", old: tree(t, `{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: deny, namespace: shop}, spec: {podSelector: {}}}`), how: Denied, code: gate.ReceiptMissing},
		{name: "a namespace on its way out takes it along", policy: "gatedDeletes: [NetworkPolicy]\n", op: "DELETE", user: controller + "namespace-controller", old: tree(t, `{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: deny, namespace: shop}, spec: {podSelector: {}}}`), how: Exempt},

		{name: "an administrator labels the namespace of the gate", policy: "administrators: {users: [alice]}\n", op: "UPDATE", user: "alice", obj: tree(t, `{apiVersion: v1, kind: Namespace, metadata: {name: syncgate-system, labels: {pod-security.kubernetes.io/enforce: restricted}}}`), old: tree(t, `{apiVersion: v1, kind: Namespace, metadata: {name: syncgate-system}}`), how: Administering},
		{name: "nobody else does", policy: "administrators: {users: [alice]}\n", op: "UPDATE", user: "bob", obj: tree(t, `{apiVersion: v1, kind: Namespace, metadata: {name: syncgate-system, labels: {pod-security.kubernetes.io/enforce: restricted}}}`), old: tree(t, `{apiVersion: v1, kind: Namespace, metadata: {name: syncgate-system}}`), how: Denied, code: gate.ReceiptMissing},
		{name: "nor an administrator another", policy: "administrators: {users: [alice]}\n", op: "UPDATE", user: "alice", obj: tree(t, `{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {pod-security.kubernetes.io/enforce: restricted}}}`), old: tree(t, `{apiVersion: v1, kind: Namespace, metadata: {name: shop}}`), how: Denied, code: gate.ReceiptMissing},
		{name: "CONNECT is nothing we judge", op: "CONNECT", obj: tree(t, plain), how: Denied, code: gate.PolicyInvalid},
		{name: "a CREATE without an object", op: "UPDATE", old: tree(t, plain), how: Denied, code: gate.ObjectMalformed},
		{name: "an UPDATE without the old object", op: "UPDATE", obj: signed(plain), how: Denied, code: gate.ObjectMalformed},
		{name: "an object without gated fields", op: "CREATE", obj: tree(t, `{apiVersion: v1, kind: Service, metadata: {name: s, namespace: shop}, spec: {ports: [{port: 1}]}}`), how: Unchanged},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := state(t, tt.policy)
			user := tt.user
			if user == "" {
				user = person
			}
			q := ask(tt.op, user, tt.obj, tt.old)
			if q.Kind == "Namespace" {
				q.Namespace = q.Name // as the API server has it
			}
			v := s.decide(q, now)
			if v.How != tt.how || v.Reason != tt.code {
				t.Fatalf("got %s %s %q, want %s %s", v.How, v.Reason, v.Message, tt.how, tt.code)
			}
			if want := tt.how != Denied; v.Allowed != want {
				t.Errorf("allowed: got %t, want %t", v.Allowed, want)
			}
			if v.How == Denied && !strings.HasPrefix(v.Message, "SYNC REFUSED [") && !strings.HasPrefix(v.Message, "GATE ERROR [") {
				t.Errorf("message: got %q, which begins with no words of a refusal at admission", v.Message)
			}
			if !strings.Contains(v.Message, tt.text) {
				t.Errorf("message: got %q, want it to contain %q", v.Message, tt.text)
			}
			dry := q
			dry.DryRun = true
			if d := s.decide(dry, now); d.Allowed != v.Allowed || d.Message != v.Message {
				t.Errorf("a dry run is answered otherwise: got %t %q, want %t %q", d.Allowed, d.Message, v.Allowed, v.Message)
			}
			if v.How != Denied || v.Reason == gate.PolicyInvalid {
				return
			}
			warned := state(t, tt.policy+"mode: {admission: Warn}\n").decide(q, now)
			if want := strings.Replace(v.Message, "SYNC REFUSED [", "SYNC WOULD BE REFUSED [", 1); !warned.Allowed || warned.How != Warned || warned.Message != want {
				t.Errorf("Warn: got %t %s %q, want it allowed with %q", warned.Allowed, warned.How, warned.Message, want)
			}
		})
	}
}

func TestTrustedWriters(t *testing.T) {
	const solver = `trustedWriters:
- {user: "cert-manager", namespaces: ["sh*"], kinds: [Pod], names: ["solver-*"], categories: [image, network], images: ["quay.io/jetstack/solver@*"], until: 2028-01-01}
`
	const image = "quay.io/jetstack/solver@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	for _, tt := range []struct {
		name, user, kind, object, image, pod string
		now                                  int64
		want                                 How
	}{
		{"what it is trusted with", "cert-manager", "Pod", "solver-1", image, "", now, Trusted},
		{"another user", "mallory", "Pod", "solver-1", image, "", now, Denied},
		{"another name", "cert-manager", "Pod", "web", image, "", now, Denied},
		{"another image", "cert-manager", "Pod", "solver-1", pinned, "", now, Denied},
		{"another category beside it", "cert-manager", "Pod", "solver-1", image, "hostPID: true, ", now, Denied},
		{"another kind", "cert-manager", "Job", "solver-1", image, "", now, Denied},
		{"too late", "cert-manager", "Pod", "solver-1", image, "", now + 400*day, Denied},
	} {
		t.Run(tt.name, func(t *testing.T) {
			version := "v1"
			if tt.kind == "Job" {
				version = "batch/v1"
			}
			obj := tree(t, object(version, tt.kind, tt.object, tt.image, tt.pod))
			if v := state(t, solver).decide(ask("CREATE", tt.user, obj, nil), tt.now); v.How != tt.want {
				t.Errorf("got %s %q, want %s", v.How, v.Message, tt.want)
			}
		})
	}
}

func TestARefusalNeverMakesFluxDelete(t *testing.T) {
	obj := tree(t, deployment(pinned, ""))
	obj["metadata"].(map[string]any)["annotations"] = map[string]any{gate.ArgoSyncOptions: "Force=true, field is Immutable, immutable field, IMMUTABLE"}
	v := state(t, "").decide(ask("CREATE", person, obj, nil), now)
	if v.Reason != gate.ForceNotAllowed {
		t.Fatalf("got %s %q, want ForceNotAllowed, which quotes the annotation", v.Reason, v.Message)
	}
	if strings.Contains(strings.ToLower(v.Message), "immutable") {
		t.Errorf("message: got %q, which makes Flux delete the live object", v.Message)
	}
}

func TestAGatedDeletionNeedsAReceiptForWhatIsLeft(t *testing.T) {
	const policy = `{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: deny, namespace: shop}, spec: {podSelector: {}}}`
	s := state(t, "gatedDeletes: [NetworkPolicy]\n")
	if v := s.decide(ask("DELETE", person, nil, sign(t, tree(t, policy), "release", nil)), now); v.Allowed || v.Reason != gate.DigestMismatch {
		t.Errorf("with the receipt of the policy itself: got %t %s %q", v.Allowed, v.Reason, v.Message)
	}
	// A policy without a spec is not an empty projection, but selects all Pods.
	empty := receiptFor(t, tree(t, `{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: deny, namespace: shop}}`), "release", func(c *receipt.Claims) { c.Leaves = nil })
	if v := s.decide(ask("DELETE", person, nil, carry(tree(t, policy), empty)), now); v.Allowed {
		t.Error("a NetworkPolicy without a spec selects every Pod, and is not an empty projection")
	}
	gone := deletionReceipt(t, "networking.k8s.io/NetworkPolicy/shop/deny", "network")
	if v := s.decide(ask("DELETE", person, nil, carry(tree(t, policy), gone)), now); !v.Allowed || v.How != ByReceipt {
		t.Errorf("with a receipt for the deletion: got %t %s %q", v.Allowed, v.Reason, v.Message)
	}
	if v := s.decide(ask("UPDATE", person, carry(tree(t, strings.Replace(policy, "podSelector: {}", "podSelector: {}, egress: [{}]", 1)), gone), tree(t, policy)), now); v.Allowed {
		t.Error("a receipt for the deletion lets a change in")
	}
}
