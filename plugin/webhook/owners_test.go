package webhook

import (
	"strings"
	"testing"

	"github.com/syncgate/syncgate/plugin/gate"
)

// TestAnOwnerIsAWayToDelete: an object whose deletion is gated gets no owner
// without the receipt that its deletion needs, whoever signed the object.
func TestAnOwnerIsAWayToDelete(t *testing.T) {
	const deny = `{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: deny, namespace: shop%s}, spec: {podSelector: {}%s}}`
	const gated = "gatedDeletes: [NetworkPolicy, Service]\n"
	const a, b = `{apiVersion: v1, kind: ConfigMap, name: a, uid: "1"}`, `{apiVersion: v1, kind: ConfigMap, name: b, uid: "2"}`
	const writers = gated + `trustedWriters:
- {user: operator, namespaces: [shop], kinds: [NetworkPolicy], categories: [network]}
- {user: imager, namespaces: [shop], kinds: [NetworkPolicy], categories: [image]}
`
	owned := func(refs, spec string) map[string]any {
		if refs != "" {
			refs = ", ownerReferences: [" + refs + "]"
		}
		return tree(t, strings.Replace(strings.Replace(deny, "%s", refs, 1), "%s", spec, 1))
	}
	deletion := deletionReceipt(t, "networking.k8s.io/NetworkPolicy/shop/deny", "network")
	signed := func(obj map[string]any) map[string]any { return sign(t, obj, "release", nil) }
	both := func(refs string) map[string]any {
		obj := owned(refs, "")
		return carry(obj, receiptFor(t, obj, "release", nil), deletion)
	}
	leaving := func(refs string) map[string]any {
		obj := tree(t, deployment(pinned, ""))
		meta := obj["metadata"].(map[string]any)
		meta["deletionTimestamp"] = "2027-01-15T00:00:00Z"
		if refs != "" {
			meta["ownerReferences"] = tree(t, "{l: ["+refs+"]}")["l"]
		}
		return obj
	}
	set := func(refs string) map[string]any {
		obj := tree(t, object("apps/v1", "StatefulSet", "db", pinned, ""))
		obj["metadata"].(map[string]any)["ownerReferences"] = tree(t, "{l: ["+refs+"]}")["l"]
		return obj
	}
	service := func(kind string) map[string]any {
		return tree(t, `{apiVersion: v1, kind: Service, metadata: {name: s, namespace: shop, ownerReferences: [`+a+`]}, spec: {type: `+kind+`}}`)
	}
	for _, tt := range []struct {
		name, policy, op, user, sub string
		obj, old                    map[string]any
		how                         How
		code                        gate.Reason
	}{
		{name: "a new owner", op: "UPDATE", obj: owned(a, ""), old: owned("", ""), how: Denied, code: gate.ReceiptMissing},
		{name: "with the receipt of the object", op: "UPDATE", obj: signed(owned(a, "")), old: signed(owned("", "")), how: Denied, code: gate.DigestMismatch},
		{name: "with the receipt of its deletion", op: "UPDATE", obj: carry(owned(a, ""), deletion), old: owned("", ""), how: ByReceipt},
		{name: "which the object of before does not have to carry", op: "UPDATE", obj: owned(a, ""), old: carry(owned("", ""), deletion), how: Denied, code: gate.ReceiptMissing},
		{name: "one for another", op: "UPDATE", obj: owned(b, ""), old: owned(a, ""), how: Denied, code: gate.ReceiptMissing},
		{name: "one that is there no more", op: "UPDATE", obj: owned(strings.Replace(a, `"1"`, `"9"`, 1), ""), old: owned(a, ""), how: Denied, code: gate.ReceiptMissing},
		{name: "one less", op: "UPDATE", obj: owned("", ""), old: owned(a, ""), how: Unchanged},
		{name: "the same", op: "UPDATE", obj: owned(b+", "+a, ""), old: owned(a+", "+b, ""), how: Unchanged},
		{name: "the collector's own bookkeeping", op: "UPDATE", user: controller + "generic-garbage-collector", obj: owned(strings.Replace(a, "uid", "blockOwnerDeletion: false, uid", 1), ""), old: owned(strings.Replace(a, "uid", "blockOwnerDeletion: true, uid", 1), ""), how: Unchanged},
		{name: "the collector gives nobody an owner", op: "UPDATE", user: controller + "generic-garbage-collector", obj: owned(a, ""), old: owned("", ""), how: Denied, code: gate.ReceiptMissing},
		{name: "beside a change that is signed", op: "UPDATE", obj: signed(owned(a, ", egress: [{}]")), old: owned("", ""), how: Denied, code: gate.DigestMismatch},
		{name: "beside one that is not", op: "UPDATE", obj: carry(owned(a, ", egress: [{}]"), deletion), old: owned("", ""), how: Denied, code: gate.DigestMismatch},
		{name: "created with an owner", op: "CREATE", obj: signed(owned(a, "")), how: Denied, code: gate.DigestMismatch},
		{name: "and both receipts", op: "CREATE", obj: both(a), how: ByReceipt},
		{name: "through a subresource", policy: "gatedDeletes: [StatefulSet]\n", op: "UPDATE", sub: "status", obj: set(a), old: set(""), how: Denied, code: gate.ReceiptMissing},
		{name: "what has no gated field may be deleted anyway", op: "UPDATE", obj: service("ClusterIP"), old: tree(t, `{apiVersion: v1, kind: Service, metadata: {name: s, namespace: shop}, spec: {type: ClusterIP}}`), how: Unchanged},

		{name: "by an operator that may write it", policy: writers, op: "CREATE", user: "operator", obj: owned(a, ""), how: Trusted},
		{name: "or gives it an owner later", policy: writers, op: "UPDATE", user: "operator", obj: owned(a, ""), old: owned("", ""), how: Trusted},
		{name: "not by one that may write something else", policy: writers, op: "UPDATE", user: "imager", obj: owned(a, ""), old: owned("", ""), how: Denied, code: gate.ReceiptMissing},
		{name: "kinds whose deletion is free", policy: "gatedDeletes: [Service]\n", op: "UPDATE", obj: owned(a, ""), old: owned("", ""), how: Unchanged},
		{name: "a workload on its way out", policy: "gatedDeletes: [Deployment]\n", op: "UPDATE", obj: leaving(a), old: leaving(""), how: Deleting},
		{name: "a controller's own work", policy: "gatedDeletes: [ReplicaSet]\n", op: "CREATE", user: controller + "deployment-controller", obj: func() map[string]any {
			obj := tree(t, object("apps/v1", "ReplicaSet", "web-1", pinned, ""))
			obj["metadata"].(map[string]any)["ownerReferences"] = []any{map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "1"}}
			return obj
		}(), how: Exempt},
		{name: "in Warn mode", policy: gated + "mode: {admission: Warn}\n", op: "UPDATE", obj: owned(a, ""), old: owned("", ""), how: Warned, code: gate.ReceiptMissing},
	} {
		t.Run(tt.name, func(t *testing.T) {
			settings, user := tt.policy, tt.user
			if settings == "" {
				settings = gated
			}
			if user == "" {
				user = person
			}
			q := ask(tt.op, user, tt.obj, tt.old)
			q.Subresource = tt.sub
			v := state(t, settings).decide(q, now)
			if v.How != tt.how || v.Reason != tt.code || v.Allowed != (tt.how != Denied) {
				t.Fatalf("got %s %s %q, want %s %s", v.How, v.Reason, v.Message, tt.how, tt.code)
			}
			if tt.name == "a new owner" {
				t.Log(v.Message)
				for _, want := range []string{"NetworkPolicy shop/deny: metadata.ownerReferences would have it deleted with ConfigMap a, ", "; Fix: leave that owner out, or else: kubectl get -o yaml --namespace shop networkpolicies deny | syncgate sign - --deletion --policy FILE --key FILE --issuer NAME, and what that prints"} {
					if !strings.Contains(v.Message, want) {
						t.Errorf("message: got %q, want %q", v.Message, want)
					}
				}
			}
			if tt.name == "and both receipts" && len(v.Uses) != 2 {
				t.Errorf("got %d receipts used, want both: %+v", len(v.Uses), v.Uses)
			}
		})
	}
}

// TestARefusedDeletionSaysHowOneIsSigned: an application cannot commit it.
func TestARefusedDeletionSaysHowOneIsSigned(t *testing.T) {
	obj := tree(t, `{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: deny, namespace: shop}, spec: {podSelector: {}}}`)
	for settings, want := range map[string]string{
		"gatedDeletes: [NetworkPolicy]\n":               "; Fix: kubectl get -o yaml --namespace shop networkpolicies deny | syncgate sign - --deletion --policy FILE --key FILE --issuer NAME, and what that prints",
		"gatedDeletes: [NetworkPolicy]\nhelp: ask us\n": "; Fix: ask us",
	} {
		if v := state(t, settings).decide(ask("DELETE", person, nil, obj), now); v.Allowed || !strings.HasSuffix(v.Message, want) {
			t.Errorf("got %q, want %q", v.Message, want)
		}
	}
}
