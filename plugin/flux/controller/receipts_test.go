package controller

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/syncgate/syncgate/plugin/application"
	"github.com/syncgate/syncgate/plugin/receipt"
)

// revoke takes back, by a signed list, all that was signed until now.
func (w *world) revoke() {
	w.t.Helper()
	all := []receipt.Revocation{{Floor: &receipt.Floor{IssuedBefore: w.now.Unix() + 1}}}
	list, err := receipt.SignRevocations(receipt.RevocationList{Issued: w.now.Unix(), Serial: 2, Entries: all}, "release", signer(w.t))
	must(w.t, err)
	must(w.t, os.WriteFile(filepath.Join(filepath.Dir(w.policy), "list.jwt"), []byte(list), 0o600))
	must(w.t, os.WriteFile(w.policy, []byte(prod+"revocations: {file: list.jwt, issuers: [release]}\n"), 0o600))
	w.Loader.Reload() // what has been read once may be half of it
	if !w.Loader.Reload() {
		_, err := w.Loader.Policy()
		w.t.Fatalf("the list changes nothing: %v", err)
	}
}

// inNamespace moves the Pod of the checkout into another namespace.
func (w *world) inNamespace(from, to string) {
	w.t.Helper()
	file := filepath.Join(w.repo, "app/web.yaml")
	data, err := os.ReadFile(file)
	must(w.t, err)
	text := strings.Replace(string(data), "namespace: "+from, "namespace: "+to, 1)
	if text == string(data) {
		w.t.Fatalf("the Pod is not in %s: %s", from, text)
	}
	must(w.t, os.WriteFile(file, []byte(text), 0o600))
}

// TestReceiptsThatDoNotCount: lapsed ones, and ones for something else, let
// nothing new through in either mode; what was approved before stays in artifact
// mode.
func TestReceiptsThatDoNotCount(t *testing.T) {
	anywhere := func(w *world) { // an object keeps the namespace that it names
		u := w.kustomization()
		unstructured.RemoveNestedField(u.Object, "spec", "targetNamespace")
		w.replace(u)
	}
	for name, c := range map[string]struct {
		then   func(*world) // after tag 2 is signed and before it is pushed
		reason string
		want   []string
	}{
		"expired": {func(w *world) { w.now = w.now.Add(31 * 24 * time.Hour) }, "ReceiptExpired", []string{"Pod shop/web", "expired at 2027-01-01T03:00:00Z"}},
		"revoked": {(*world).revoke, "ReceiptRevoked", []string{"Pod shop/web", "is revoked"}},
		"not yet": {func(w *world) { w.now = w.now.Add(-24 * time.Hour) }, "ReceiptNotYetValid", []string{"Pod shop/web"}},
		"of another namespace": {func(w *world) {
			anywhere(w)
			w.inNamespace("shop", "bank")
		}, "ReceiptMissing", []string{"Pod bank/web"}},
		"of another namespace, under the name of this one": {func(w *world) {
			anywhere(w)
			w.inNamespace("shop", "bank")
			dir := filepath.Join(w.repo, "app/.syncgate/prod")
			must(w.t, os.Rename(filepath.Join(dir, "core.Pod.shop.web.release.jwt"), filepath.Join(dir, "core.Pod.bank.web.release.jwt")))
		}, "RenderFailed", []string{"core.Pod.bank.web.release.jwt"}},
	} {
		for _, mode := range modes {
			t.Run(name+" in "+string(mode)+" mode", func(t *testing.T) {
				w := released(t, mode)
				before := w.handedOver()
				w.write("2", nil)
				w.sign()
				c.then(w)
				w.push("main@sha1:2")
				w.reconcile()
				w.is(metav1.ConditionFalse, c.reason, c.want...)
				want := ""
				if mode == application.Artifact {
					want = before
				}
				if got := w.handedOver(); got != want {
					t.Errorf("%q is handed over, want %q", got, want)
				}
			})
		}
	}
}
