package webhook

import (
	"strings"
	"testing"

	"github.com/syncgate/syncgate/plugin/gate"
)

func TestANamespaceThatArgoCDLabelsWithoutAManifestIsToldApart(t *testing.T) {
	const (
		argo     = "system:serviceaccount:argocd:argocd-application-controller"
		labelled = `{apiVersion: v1, kind: Namespace, metadata: {name: shop, annotations: {argocd.argoproj.io/sync-options: ServerSideApply=true}, labels: {pod-security.kubernetes.io/enforce: privileged}}}`
		fix      = "; Fix: remove it from managedNamespaceMetadata of the Application, or commit a Namespace that has it and sign that"
	)
	plain := `{apiVersion: v1, kind: Namespace, metadata: {name: shop}}`
	for _, tt := range []struct {
		name, user string
		object     map[string]any
		told       bool
	}{
		{"by Argo CD", argo, tree(t, labelled), true},
		{"by Argo CD from elsewhere", "system:serviceaccount:kube-system:argocd-manager", tree(t, labelled), true},
		{"by a person", person, tree(t, labelled), false},
		{"by another service account", "system:serviceaccount:argocd:argocd-server", tree(t, labelled), false},
		{"by a user who is called so", "argocd-application-controller", tree(t, labelled), false},
		{"a committed one, tracked by annotation", argo, withMeta(tree(t, labelled), "annotations", "argocd.argoproj.io/tracking-id", "web:/Namespace:shop/shop"), false},
		{"a committed one, tracked by label", argo, withMeta(tree(t, labelled), "labels", "app.kubernetes.io/instance", "web"), false},
		{"a committed one, signed for something else", argo, carry(tree(t, labelled), receiptFor(t, tree(t, plain), "release", nil)), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := ask("UPDATE", tt.user, tt.object, tree(t, plain))
			q.Namespace = q.Name
			v := state(t, "").decide(q, now)
			if v.How != Denied || v.Reason != gate.ReceiptMissing && v.Reason != gate.DigestMismatch {
				t.Fatalf("got %s %s, want it denied for want of a receipt", v.How, v.Reason)
			}
			told := strings.HasSuffix(v.Message, "; written by "+tt.user+" for no manifest of an Application"+fix)
			if told != tt.told || !told && strings.Contains(v.Message, "managedNamespaceMetadata") {
				t.Errorf("got %q, want the next step of managedNamespaceMetadata: %t", v.Message, tt.told)
			}
		})
	}
	created := ask("CREATE", argo, tree(t, labelled), nil)
	created.Namespace = created.Name
	if v := state(t, "").decide(created, now); !strings.HasSuffix(v.Message, fix) {
		t.Errorf("a new one: got %q", v.Message)
	}
	other := ask("CREATE", argo, tree(t, object("apps/v1", "Deployment", "web", pinned, "")), nil)
	if v := state(t, "").decide(other, now); v.How != Denied || strings.Contains(v.Message, "managedNamespaceMetadata") {
		t.Errorf("another kind: got %q", v.Message)
	}
}
