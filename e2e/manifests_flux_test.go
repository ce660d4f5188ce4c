//go:build e2e

package e2e

// manifests/policies/flux against the real API server with Flux's own CRDs: what
// stands between an owner of Kustomizations and what nobody judged. Flux itself
// does not run here; its writes are made by its accounts.

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

const (
	byFluxObjects        = "syncgate-flux-objects"
	byFluxKustomizations = "syncgate-flux-kustomizations"
	byFluxMetadata       = "syncgate-flux-metadata"
)

// kustomizationIn is a Kustomization; spec is more of its spec.
func kustomizationIn(namespace, name, spec string) string {
	return fmt.Sprintf("{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: %s, namespace: %s}, "+
		"spec: {interval: 1h, prune: true, %s}}", name, namespace, spec)
}

const fluxGit = "sourceRef: {kind: GitRepository, name: shop}"

func fluxArtifact(name string) string {
	return "sourceRef: {kind: ExternalArtifact, name: syncgate-flux-" + name + "}"
}

const fluxAccount = ", serviceAccountName: flux"

func fluxPost(list string) string {
	return fluxGit + fluxAccount + ", postBuild: {substituteFrom: [" + list + "]}"
}

func fluxOwn(name string) string { return "{kind: ConfigMap, name: syncgate-flux-" + name + "}" }

func TestPoliciesForFluxOnARealAPIServer(t *testing.T) {
	e := harness.New(t)
	g := &guarded{binaries: harness.Build(e)}
	g.Cluster = harness.StartCluster(e, g.binaries)
	for _, dir := range []string{g.binaries.FluxSourceCRDs, g.binaries.FluxKustomizeCRDs} {
		files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
		if err != nil || len(files) == 0 {
			t.Fatalf("CRDs in %s: %q, %v", dir, files, err)
		}
		for _, f := range files {
			data, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			g.Apply(data)
		}
	}
	for _, namespace := range []string{"shop", "free", "flux-system"} {
		g.Kubectl(nil, "create", "namespace", namespace)
	}
	const flux, gate = "system:serviceaccount:flux-system:kustomize-controller", "system:serviceaccount:syncgate-system:syncgate-flux"
	const collector = "system:serviceaccount:kube-system:generic-garbage-collector"
	g.Bind("cluster-admin", "", "mallory", "group:syncgate:administrators", flux, gate)
	g.mallory, g.admin = g.As("mallory"), g.As("alice", "syncgate:administrators")
	controller, ours, gc := g.As(flux), g.As(gate), g.As(collector)
	g.Eventually("Flux's kinds", func() (string, bool) {
		r := g.TryKubectl(nil, "get", "kustomizations,externalartifacts", "--namespace", "shop")
		return string(r.Stderr), r.Status == 0
	})
	g.Apply([]byte(kustomizationIn("shop", "old", fluxGit)))
	g.Apply([]byte(kustomizationIn("flux-system", "flux-system", fluxGit)))

	policy := harness.NewPolicy(e, "policy", argoGatePolicy, harness.NewSigner(e, g.binaries, "release"))
	g.Apply(e.Run("", nil, g.binaries.Syncgate, "manifests", "policies", "--flux", "--policy", policy.Path(),
		"--namespaces", "shop,flux-system", "--ungated", "flux-system/flux-system"))
	t.Run("every expression is of the right type", func(t *testing.T) {
		g.typeCheckedOf(t, byFluxObjects, byFluxKustomizations, byFluxMetadata)
	})
	annotated := func(name, spec, annotations string) string {
		return strings.Replace(kustomizationIn("shop", name, spec), "namespace: shop}", "namespace: shop, annotations: {"+annotations+"}}", 1)
	}
	configMap := func(name string) string {
		return "{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + ", namespace: shop}, data: {syncgate_latch: a}}"
	}
	g.mallory.WaitRefused([]byte(configMap("syncgate-flux-probe")), byFluxObjects)
	g.mallory.WaitRefused([]byte(kustomizationIn("shop", "probe", fluxGit)), byFluxKustomizations)
	g.mallory.WaitRefused([]byte(annotated("probe", fluxArtifact("probe"), "syncgate.io/mode: Warn")), byFluxMetadata)

	apply := strings.Fields(applied)
	patch := func(name, text string, more ...string) []string {
		return append([]string{"patch", "kustomization", name, "--namespace", "shop", "--type=merge", "--patch", text}, more...)
	}
	t.Run("the gate in the path", func(t *testing.T) {
		g.try(t, []attempt{
			{"none", g.mallory, kustomizationIn("shop", "web", fluxGit), apply, byFluxKustomizations},
			{"none, by Flux", controller, kustomizationIn("shop", "web", fluxGit), apply, byFluxKustomizations},
			{"none, by an administrator", g.admin, kustomizationIn("shop", "web", fluxGit), apply, byFluxKustomizations},
			{"none, where nothing is gated", g.mallory, kustomizationIn("free", "web", fluxGit), apply, ""},
			{"an artifact of nobody", g.mallory, kustomizationIn("shop", "web", "sourceRef: {kind: ExternalArtifact, name: web}"), apply, byFluxKustomizations},
			{"another's artifact", g.mallory, kustomizationIn("shop", "web", fluxArtifact("api")), apply, byFluxKustomizations},
			{"an artifact of another namespace", g.mallory, kustomizationIn("shop", "web", "sourceRef: {kind: ExternalArtifact, name: syncgate-flux-web, namespace: free}"), apply, byFluxKustomizations},
			{"its artifact", g.mallory, kustomizationIn("shop", "web", fluxArtifact("web")), apply, ""},
			{"another's ConfigMap", g.mallory, kustomizationIn("shop", "post", fluxPost(fluxOwn("web"))), apply, byFluxKustomizations},
			{"a Secret of that name", g.mallory, kustomizationIn("shop", "post", fluxPost("{kind: Secret, name: syncgate-flux-post}")), apply, byFluxKustomizations},
			{"optional", g.mallory, kustomizationIn("shop", "post", fluxPost("{kind: ConfigMap, name: syncgate-flux-post, optional: true}")), apply, byFluxKustomizations},
			{"not the last one", g.mallory, kustomizationIn("shop", "post", fluxPost(fluxOwn("post")+", {kind: ConfigMap, name: vars}")), apply, byFluxKustomizations},
			{"a variable of the gate", g.mallory, kustomizationIn("shop", "post", fluxGit+fluxAccount+", postBuild: {substitute: {syncgate_pin_web: a}, substituteFrom: ["+fluxOwn("post")+"]}"), apply, byFluxKustomizations},
			{"its ConfigMap, with all of Flux's rights", g.mallory, strings.Replace(kustomizationIn("shop", "post", fluxPost(fluxOwn("post"))), fluxAccount, "", 1), apply, byFluxKustomizations},
			{"its ConfigMap", g.mallory, kustomizationIn("shop", "post", fluxPost("{kind: ConfigMap, name: vars}, "+fluxOwn("post"))+", targetNamespace: shop"), apply, ""},
			{"without its account", g.mallory, "", patch("post", `{"spec":{"serviceAccountName":null}}`), byFluxKustomizations},
			{"back to the repository", g.mallory, "", patch("web", `{"spec":{"sourceRef":{"kind":"GitRepository","name":"shop"}}}`), byFluxKustomizations},
			{"without the ConfigMap", g.mallory, "", patch("post", `{"spec":{"postBuild":null}}`), byFluxKustomizations},
		})
	})
	t.Run("fields that change what was approved", func(t *testing.T) {
		var attempts []attempt
		for _, field := range []string{
			`"targetNamespace":"a"`, `"namePrefix":"a"`, `"nameSuffix":"a"`, `"patches":[{"patch":"a"}]`, `"images":[{"name":"a","newTag":"b"}]`, `"components":["a"]`,
			`"ignoreMissingComponents":true`, `"buildMetadata":["originAnnotations"]`, `"commonMetadata":{"labels":{"a":"b"}}`, `"postBuild":{"substitute":{"a":"b"}}`,
			`"force":true`, `"ignore":[{"paths":["/spec/template"]}]`,
		} {
			name, _, _ := strings.Cut(field, ":")
			attempts = append(attempts, attempt{strings.Trim(name, `"`), g.mallory, "", patch("web", "{\"spec\":{"+field+"}}"), byFluxKustomizations})
		}
		g.try(t, append(attempts,
			attempt{"force in postBuild mode", g.mallory, "", patch("post", `{"spec":{"force":true}}`), byFluxKustomizations},
			attempt{"patches in postBuild mode", g.mallory, "", patch("post", `{"spec":{"namePrefix":"a-"}}`), ""},
			attempt{"replicas of others", g.mallory, "", patch("web", `{"spec":{"ignore":[{"paths":["/spec/replicas"]}]}}`), ""},
			attempt{"decryption", g.mallory, "", patch("web", `{"spec":{"decryption":{"provider":"sops"}}}`), ""},
			attempt{"an interval", controller, "", patch("web", `{"spec":{"interval":"5m"}}`), ""},
		))
	})
	t.Run("what is older, and what is not gated", func(t *testing.T) {
		flag := []string{"patch", "kustomization", "flux-system", "--namespace", "flux-system", "--type=merge", "--patch", `{"spec":{"path":"./a"}}`}
		g.try(t, []attempt{
			{"its status", controller, "", patch("old", `{"status":{"observedGeneration":1}}`, "--subresource=status"), ""},
			{"a reconciliation", g.mallory, "", patch("old", `{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":"a"}}}`), ""},
			{"its path", g.mallory, "", patch("old", `{"spec":{"path":"./b"}}`), byFluxKustomizations},
			{"suspended", g.mallory, "", patch("old", `{"spec":{"suspend":true}}`), ""},
			{"changed meanwhile", g.mallory, "", patch("old", `{"spec":{"path":"./b","force":true}}`), ""},
			{"and resumed", g.mallory, "", patch("old", `{"spec":{"suspend":false}}`), byFluxKustomizations},
			{"and resumed with the gate", g.mallory, "", patch("old", `{"spec":{"suspend":false,"force":false,"path":null,"sourceRef":{"kind":"ExternalArtifact","name":"syncgate-flux-old"}}}`), ""},
			{"one that is not gated", g.mallory, "", flag, byFluxKustomizations},
			{"one that is not gated, by an administrator", g.admin, "", flag, ""},
			{"its namesake", g.admin, kustomizationIn("shop", "flux-system", fluxGit), apply, byFluxKustomizations},
		})
	})
	t.Run("annotations", func(t *testing.T) {
		annotate := func(pairs ...string) []string {
			return append([]string{"annotate", "kustomization", "web", "--namespace", "shop", "--overwrite"}, pairs...)
		}
		g.try(t, []attempt{
			{"what is built", g.mallory, "", annotate("syncgate.io/source=GitRepository/shop", "syncgate.io/path=./a"), ""},
			{"and another", g.mallory, "", annotate("syncgate.io/path=./b"), ""},
			{"a receipt", g.mallory, "", annotate("syncgate.io/receipt=a"), ""},
			{"and another", g.mallory, "", annotate("syncgate.io/receipt=b"), ""},
			{"warn only", g.mallory, "", annotate("syncgate.io/mode=Warn"), byFluxMetadata},
			{"warn only, by Flux", controller, "", annotate("syncgate.io/mode=Warn"), byFluxMetadata},
			{"warn only, by an administrator", g.admin, "", annotate("syncgate.io/mode=Warn"), ""},
			{"enforce", g.mallory, "", annotate("syncgate.io/mode=Enforce"), ""},
			{"enforce no more", g.mallory, "", annotate("syncgate.io/mode-"), byFluxMetadata},
			{"warn again", g.mallory, "", annotate("syncgate.io/mode=Warn"), byFluxMetadata},
			{"fewer categories", g.mallory, "", annotate("syncgate.io/categories=service, -pod"), byFluxMetadata},
			{"more categories", g.mallory, "", annotate("syncgate.io/categories=service"), ""},
			{"none", g.mallory, "", annotate("syncgate.io/categories-"), byFluxMetadata},
			{"an environment", g.mallory, "", annotate("syncgate.io/environment=prod"), ""},
			{"another", g.mallory, "", annotate("syncgate.io/environment=stage"), byFluxMetadata},
			{"another, by an administrator", g.admin, "", annotate("syncgate.io/environment=stage"), ""},
			{"beside them", controller, "", annotate("reconcile.fluxcd.io/requestedAt=b"), ""},
		})
	})
	t.Run("what the gate publishes", func(t *testing.T) {
		artifact := func(name string) string {
			return "{apiVersion: source.toolkit.fluxcd.io/v1, kind: ExternalArtifact, metadata: {name: " + name + ", namespace: shop}, spec: {}}"
		}
		forged := func(name string) []string {
			return []string{"patch", "externalartifact", name, "--namespace", "shop", "--subresource=status", "--type=merge", "--patch",
				`{"status":{"artifact":{"digest":"sha256:` + strings.Repeat("0", 64) + `","path":"a","url":"http://evil.example.com/a.tar.gz","revision":"a@sha256:` + strings.Repeat("0", 64) + `","lastUpdateTime":"2026-01-01T00:00:00Z"}}}`}
		}
		gone := func(kind, name string) []string {
			return []string{"delete", kind, name, "--namespace", "shop", "--dry-run=server"}
		}
		create := []string{"create", "-f", "-"}
		g.Bind("cluster-admin", "", collector)
		g.try(t, []attempt{
			{"a ConfigMap", g.mallory, configMap("syncgate-flux-web"), apply, byFluxObjects},
			{"a ConfigMap, by Flux", controller, configMap("syncgate-flux-web"), apply, byFluxObjects},
			{"a ConfigMap, by an administrator", g.admin, configMap("syncgate-flux-web"), apply, byFluxObjects},
			{"a ConfigMap, by the collector", gc, configMap("syncgate-flux-web"), apply, byFluxObjects},
			{"a name that is made up", g.mallory, strings.Replace(configMap("syncgate-flux-"), "name:", "generateName:", 1), create, byFluxObjects},
			{"another ConfigMap", g.mallory, configMap("syncgate-fluxx"), apply, ""},
			{"a ConfigMap, by the gate", ours, configMap("syncgate-flux-web"), apply, ""},
			{"its data", g.mallory, "", []string{"patch", "configmap", "syncgate-flux-web", "--namespace", "shop", "--type=merge", "--patch", `{"data":{"syncgate_latch":"b"}}`}, byFluxObjects},
			{"its end", g.mallory, "", gone("configmap", "syncgate-flux-web"), byFluxObjects},
			{"the end of all", g.mallory, "", []string{"delete", "configmap", "--all", "--namespace", "shop"}, byFluxObjects},
			{"its end, by an administrator", g.admin, "", gone("configmap", "syncgate-flux-web"), ""},
			{"its end, by the collector", gc, "", gone("configmap", "syncgate-flux-web"), ""},
			{"an artifact", g.mallory, artifact("syncgate-flux-web"), apply, byFluxObjects},
			{"an artifact of others", g.mallory, artifact("web"), apply, ""},
			{"an artifact, by the gate", ours, artifact("syncgate-flux-web"), apply, ""},
			{"a forged status", g.mallory, "", forged("syncgate-flux-web"), byFluxObjects},
			{"a forged status, by Flux", controller, "", forged("syncgate-flux-web"), byFluxObjects},
			{"a forged status, by an administrator", g.admin, "", forged("syncgate-flux-web"), byFluxObjects},
			{"a forged status, by the collector", gc, "", forged("syncgate-flux-web"), byFluxObjects},
			{"the status of others", g.mallory, "", forged("web"), ""},
			{"the status, by the gate", ours, "", forged("syncgate-flux-web"), ""},
			{"the artifact's end", g.mallory, "", gone("externalartifact", "syncgate-flux-web"), byFluxObjects},
			{"the artifact's end, by an administrator", g.admin, "", gone("externalartifact", "syncgate-flux-web"), ""},
		})
	})
}
