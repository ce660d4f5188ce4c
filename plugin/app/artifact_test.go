package app_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/application"
	"github.com/syncgate/syncgate/plugin/policy"
)

// kustomization is an object as a client of the API server has it.
func kustomization(spec map[string]any) map[string]any {
	spec["path"], spec["prune"] = "./app", true
	spec["sourceRef"] = map[string]any{"kind": "GitRepository", "name": "shop"}
	return map[string]any{
		"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
		"metadata": map[string]any{"name": "shop", "namespace": "flux-system", "generation": int64(3)}, "spec": spec,
	}
}

func TestAnArtifactIsBuilt(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"app/web.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: web}}\n", "app/.github/x.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}\n",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755), os.WriteFile(filepath.Join(root, name), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	e := policy.Defaults("prod")
	source, err := application.FromObject(kustomization(map[string]any{"targetNamespace": "shop"}))
	if err != nil {
		t.Fatal(err)
	}
	o, err := source.Built(root, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := app.New(t.Context(), app.Settings{Render: o, Namespace: source.App.Namespace, Effective: e})
	if err != nil {
		t.Fatal(err)
	}
	// An artifact is what the source has packed: nothing is left out of it here.
	var got []string
	for _, o := range b.Objects {
		got = append(got, o.Subject.String())
	}
	if want := "core/ConfigMap/shop/web core/ConfigMap/shop/x"; strings.Join(got, " ") != want {
		t.Errorf("got %q, want %q", got, want)
	}
	source, err = application.FromObject(kustomization(map[string]any{"postBuild": map[string]any{"substituteFrom": []any{map[string]any{"kind": "Secret", "name": "s"}}}}))
	if err != nil {
		t.Fatal(err)
	}
	if o, err = source.Built(root, nil); err != nil {
		t.Fatal(err)
	}
	var refusal *app.Refusal
	if _, err = app.New(t.Context(), app.Settings{Render: o, Effective: e}); !errors.As(err, &refusal) || !strings.Contains(err.Error(), `Secret "s" is not known here`) {
		t.Errorf("got error %v", err)
	}
	if _, err := application.FromObject(kustomization(map[string]any{"force": true})); err == nil || !strings.Contains(err.Error(), "spec.force would delete objects") {
		t.Errorf("got error %v", err)
	}
}
