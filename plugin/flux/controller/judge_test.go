package controller

import (
	"errors"
	"testing"

	"github.com/syncgate/syncgate/plugin/app"
)

// TestWhatKustomizeWouldChangeIsNotPublished: Flux builds once more what the gate
// publishes.
func TestWhatKustomizeWouldChangeIsNotPublished(t *testing.T) {
	const (
		plain = `{"apiVersion":"v1","data":{"a":"\u2028 é \"x\" 1.0","b":"yes"},"kind":"ConfigMap","metadata":{"annotations":{"a":"${x}"},"name":"b","namespace":"shop"}}` + "\n"
		local = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"annotations":{"config.kubernetes.io/local-config":"true"},"name":"a","namespace":"shop"}}` + "\n"
		hash  = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"annotations":{"kustomize.config.k8s.io/needs-hash":"true"},"name":"a","namespace":"shop"}}` + "\n"
	)
	for lines, want := range map[string]bool{plain: true, plain + local: false, plain + hash: false} {
		o := outcome{manifests: documents([]byte(lines))}
		err := o.rebuilds(t.Context(), []byte(lines))
		var refusal *app.Refusal
		if (err == nil) != want || err != nil && !errors.As(err, &refusal) {
			t.Errorf("%s: got %v, want it to be the same: %v", lines, err, want)
		}
	}
}
