//go:build e2e

package e2e

// manifests/policies/argocd against the real API server with Argo CD's own
// CRDs: what stands between an owner of Applications and a sync that nobody
// judges. Argo CD itself does not run here; its writes are made by its accounts.

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

const (
	byApplications = "syncgate-argocd-applications"
	byMetadata     = "syncgate-argocd-metadata"
	byOwnProject   = "syncgate-argocd-own-project"
	applied        = "apply --server-side --force-conflicts -f -"
)

// appOf is an Application; spec is more of its spec, and the last is what
// stands beside it.
func appOf(name, project, spec string, beside ...string) string {
	return fmt.Sprintf("{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: %s, namespace: argocd}, "+
		"spec: {project: %q, destination: {server: 'https://prod', namespace: shop}, %s}%s}", name, project, spec, strings.Join(append([]string{""}, beside...), ", "))
}

const (
	gitSource   = "repoURL: https://git.example.com/shop.git, path: apps/web"
	prodPlugin  = "plugin: {name: syncgate, env: [{name: SYNCGATE_ENVIRONMENT, value: prod}]}"
	gatedSource = "source: {" + gitSource + ", " + prodPlugin + "}"

	pluginJSON = `"plugin":{"name":"syncgate","env":[{"name":"SYNCGATE_ENVIRONMENT","value":"prod"}]}`
	// forged says that a sync of another source has begun, which Argo CD 3 would go on with.
	forged = `{"status":{"operationState":{"phase":"Running","startedAt":"2026-01-01T00:00:00Z","operation":{"sync":{"revision":"main"}},` +
		`"syncResult":{"revision":"main","source":{"repoURL":"x","path":"x"}}}}}`
)

func TestPoliciesForArgoCDOnARealAPIServer(t *testing.T) {
	e := harness.New(t)
	g := &guarded{binaries: harness.Build(e)}
	g.Cluster = harness.StartCluster(e, g.binaries)
	for _, crd := range []string{"application-crd.yaml", "appproject-crd.yaml"} {
		data, err := os.ReadFile(filepath.Join(g.binaries.ArgoCDManifests, "crds", crd))
		if err != nil {
			t.Fatal(err)
		}
		g.Apply(data)
	}
	g.Kubectl(nil, "create", "namespace", "argocd")
	g.Bind("cluster-admin", "", "mallory", "group:syncgate:administrators", "system:serviceaccount:argocd:argocd-application-controller",
		"system:serviceaccount:syncgate-system:syncgate-controller")
	g.mallory, g.admin = g.As("mallory"), g.As("alice", "syncgate:administrators")
	// The controller, whose reconciliation none of this may stop.
	argo := g.As("system:serviceaccount:argocd:argocd-application-controller")
	ours := g.As("system:serviceaccount:syncgate-system:syncgate-controller")
	g.Eventually("Argo CD's kinds", func() (string, bool) {
		r := g.TryKubectl(nil, "get", "applications,appprojects", "--namespace", "argocd")
		return string(r.Stderr), r.Status == 0
	})
	g.Apply([]byte(appOf("old", "shop", "source: {"+gitSource+"}")))
	g.Apply([]byte(appOf("free", "sandbox", "source: {"+gitSource+"}")))
	g.Apply([]byte(appOf("mixed", "shop", "source: {"+gitSource+", "+prodPlugin+", kustomize: {namePrefix: a}}")))

	policy := harness.NewPolicy(e, "policy", argoGatePolicy, harness.NewSigner(e, g.binaries, "release"))
	printed := e.Run("", nil, g.binaries.Syncgate, "manifests", "policies", "--argocd", "--policy", policy.Path(),
		"--projects", "shop,pay", "--destination", "prod=https://prod", "--destination", "stage=https://stage", "--destination", "stage=https://both", "--destination", "prod=https://both")
	g.Apply(printed)
	t.Run("every expression is of the right type", func(t *testing.T) {
		g.typeCheckedOf(t, byApplications, byMetadata, byOwnProject)
	})
	g.mallory.WaitRefused([]byte(appOf("probe", "shop", "source: {"+gitSource+"}")), byApplications)
	g.mallory.WaitRefused([]byte(appOf("probe", "sandbox", "source: {"+gitSource+"}", "metadata: {name: probe, namespace: argocd, annotations: {syncgate.io/a: b}}")), byMetadata)
	g.mallory.WaitRefused([]byte(appOf("probe", "syncgate", "source: {"+gitSource+"}")), byOwnProject)

	apply := strings.Fields(applied)
	patch := func(name, text string) []string {
		return []string{"patch", "application", name, "--namespace", "argocd", "--type=merge", "--patch", text}
	}
	plain := "source: {" + gitSource + "}"
	sources := func(list ...string) string { return "sources: [{" + strings.Join(list, "}, {") + "}]" }
	at := func(server, environment string) string {
		return strings.NewReplacer("'https://prod'", server, "value: prod", "value: "+environment).Replace(appOf("web", "shop", gatedSource))
	}
	t.Run("the plugin on every source", func(t *testing.T) {
		g.try(t, []attempt{
			{"none", g.mallory, appOf("web", "shop", plain), apply, byApplications},
			{"none, by an administrator", g.admin, appOf("web", "shop", plain), apply, byApplications},
			{"another", g.mallory, appOf("web", "shop", "source: {"+gitSource+", plugin: {name: avp}}"), apply, byApplications},
			{"no name", g.mallory, appOf("web", "shop", "source: {"+gitSource+", plugin: {env: []}}"), apply, byApplications},
			{"a native block", g.mallory, appOf("web", "shop", "source: {"+gitSource+", kustomize: {namePrefix: a}}"), apply, byApplications},
			{"the default project is not listed", g.mallory, appOf("free2", "", plain), apply, ""},
			{"another project", g.mallory, appOf("free2", "sandbox", plain), apply, ""},
			{"the plugin", g.mallory, appOf("web", "shop", gatedSource), apply, ""},
			{"one of two sources without", g.mallory, appOf("two", "shop", sources(gitSource+", "+prodPlugin, gitSource)), apply, byApplications},
			{"both in each form", g.mallory, appOf("two", "shop", gatedSource+", "+sources(gitSource)), apply, byApplications},
			{"two sources", g.mallory, appOf("two", "shop", sources(gitSource+", "+prodPlugin, gitSource+", "+prodPlugin)), apply, ""},
			{"a source added", g.mallory, "", patch("two", `{"spec":{"sources":[{"repoURL":"x","ref":"v"}]}}`), byApplications},
			{"the plugin taken out", g.mallory, "", patch("web", `{"spec":{"source":{"plugin":null}}}`), byApplications},
			{"no source", g.mallory, "", patch("web", `{"spec":{"source":null}}`), byApplications},
			{"a hydrator", g.mallory, "", patch("web", `{"spec":{"sourceHydrator":{"drySource":{"repoURL":"x","path":"a","targetRevision":"b"},"syncSource":{"path":"a","targetBranch":"b"}}}}`), byApplications},
			{"into a gated project", g.mallory, "", patch("free", `{"spec":{"project":"pay"}}`), byApplications},
			{"out of it", g.mallory, "", patch("web", `{"spec":{"project":"sandbox"}}`), byApplications},
			{"out of it, by an administrator", g.admin, "", append(patch("two", `{"spec":{"project":"sandbox"}}`), "--dry-run=server"), ""},
		})
	})
	t.Run("the plugin beside something else, which Argo CD does not render", func(t *testing.T) {
		beside := func(block string) string { return "source: {" + gitSource + ", " + prodPlugin + ", " + block + "}" }
		g.try(t, []attempt{
			{"a native block", g.mallory, appOf("web", "shop", beside("helm: {releaseName: a}")), apply, byApplications},
			{"one of two sources", g.mallory, appOf("two", "shop", sources(gitSource+", "+prodPlugin, gitSource+", "+prodPlugin+", directory: {}")), apply, byApplications},
			{"in an operation", g.mallory, "", patch("web", `{"operation":{"sync":{"source":{"repoURL":"x","path":"a","helm":{},`+pluginJSON+`}}}}`), byApplications},
			{"where nothing is gated", g.mallory, appOf("free2", "sandbox", beside("helm: {releaseName: a}")), append(slices.Clone(apply), "--dry-run=server"), ""},
			{"an older one's status", argo, "", patch("mixed", `{"status":{"operationState":{"phase":"Error","startedAt":"2026-01-01T00:00:00Z","operation":{"sync":{"revision":"main"}},`+
				`"syncResult":{"revision":"main","source":{"repoURL":"https://git.example.com/shop.git","path":"apps/web","kustomize":{"namePrefix":"a"},`+pluginJSON+`}}}}}`), ""},
			{"its refresh", g.mallory, "", patch("mixed", `{"metadata":{"annotations":{"argocd.argoproj.io/refresh":"hard"}}}`), ""},
			{"its sync", g.mallory, "", patch("mixed", `{"operation":{"sync":{"revision":"main"}}}`), byApplications},
			{"an empty block, which Argo CD takes away at once", argo, "", patch("mixed", `{"spec":{"source":{"kustomize":null}}}`), ""},
			{"then a sync", g.mallory, "", patch("mixed", `{"operation":{"sync":{"revision":"main"}}}`), ""},
		})
	})
	t.Run("says what to do", func(t *testing.T) {
		for _, c := range []struct{ app, want string }{
			{appOf("web", "shop", "source: {"+gitSource+", "+prodPlugin+", kustomize: {}, directory: {recurse: true}}"),
				"SYNC REFUSED [RenderFailed] Application argocd/web of the gated project shop: a source has kustomize and directory beside plugin, which exclude each other, so that Argo CD renders nothing; Fix: keep plugin alone, "},
			{strings.Replace(appOf("web", "shop", gatedSource), "server: 'https://prod'", "name: in-cluster", 1),
				"environment of its destination in-cluster, which has none; Fix: whoever operates the gate: syncgate manifests policies --argocd with --destination ENVIRONMENT=in-cluster, too, "},
			{at("https://prod", "stage"), "environment of its destination https://prod, which has prod; Fix: ask for that"},
		} {
			if r := g.mallory.TryKubectl([]byte(c.app), apply...); r.Status == 0 || !strings.Contains(string(r.Stderr), c.want) {
				t.Errorf("got status %d, %s; want %q", r.Status, r.Stderr, c.want)
			}
		}
	})
	t.Run("what a sync may bring along", func(t *testing.T) {
		g.try(t, []attempt{
			{"a sync", g.mallory, "", patch("web", `{"operation":{"sync":{"revision":"main"}}}`), ""},
			{"local manifests", g.mallory, "", patch("web", `{"operation":{"sync":{"manifests":["{}"]}}}`), byApplications},
			{"a source from before the gate", g.mallory, "", patch("web", `{"operation":{"sync":{"source":{"repoURL":"x","path":"a"}}}}`), byApplications},
			{"sources from before the gate", g.mallory, "", patch("web", `{"operation":{"sync":{"sources":[{"repoURL":"x","path":"a"}]}}}`), byApplications},
			{"a rollback within it", g.mallory, "", patch("web", `{"operation":{"sync":{"source":{"repoURL":"x","path":"a","plugin":{"name":"syncgate","env":[{"name":"SYNCGATE_ENVIRONMENT","value":"prod"}]}}}}}`), ""},
			{"a forged operation that goes on", g.mallory, "", patch("web",
				`{"status":{"operationState":{"phase":"Running","startedAt":"2026-01-01T00:00:00Z","operation":{"sync":{"manifests":["{}"]}}}}}`), byApplications},
			{"a forged source of one that goes on", g.mallory, "", patch("web", forged), byApplications},
			{"forged sources of one that goes on", g.mallory, "", patch("web", strings.NewReplacer(`"source":{`, `"source":{"repoURL":""},"sources":[{`, `"x"}`, `"x"}]`).Replace(forged)), byApplications},
			{"one forged from the start", g.mallory, appOf("new", "shop", gatedSource, forged[1:len(forged)-1]), apply, byApplications},
			{"one forged where nothing is gated", g.mallory, "", patch("free", forged), ""},
			{"which is then moved", g.mallory, "", patch("free", `{"spec":{"project":"shop","source":{`+pluginJSON+`}}}`), byApplications},
			{"or moved once it is over", g.mallory, "", append(patch("free", `{"status":{"operationState":{"phase":"Failed"}},"spec":{"project":"shop","source":{`+pluginJSON+`}}}`), "--dry-run=server"), ""},
			{"its end", g.mallory, "", patch("free", `{"status":null}`), ""},
			{"a result of what is signed", argo, "", patch("web", strings.Replace(forged, `"x","path":"x"}`, `"x","path":"x",`+pluginJSON+`}`, 1)), ""},
			{"and its end", argo, "", patch("web", `{"operation":null,"status":null}`), ""},
			{"local manifests where nothing is gated", g.mallory, "", patch("free", `{"operation":{"sync":{"manifests":["{}"]}}}`), ""},
			{"live values that win", g.mallory, "", patch("web",
				`{"spec":{"syncPolicy":{"syncOptions":["RespectIgnoreDifferences=true"]},"ignoreDifferences":[{"group":"apps","kind":"Deployment","jqPathExpressions":[".spec.template.spec.containers[0].image"]}]}}`), byApplications},
			{"live replicas", g.mallory, "", patch("web",
				`{"spec":{"syncPolicy":{"syncOptions":["RespectIgnoreDifferences=true"]},"ignoreDifferences":[{"group":"apps","kind":"Deployment","jsonPointers":["/spec/replicas"]}]}}`), ""},
			{"differences that are only not shown", g.mallory, "", patch("web",
				`{"spec":{"syncPolicy":null,"ignoreDifferences":[{"group":"apps","kind":"Deployment","jsonPointers":["/spec/template"]}]}}`), ""},
		})
	})
	t.Run("the environment by destination", func(t *testing.T) {
		g.try(t, []attempt{
			{"its own", g.mallory, at("https://stage", "stage"), apply, ""},
			{"another's", g.mallory, at("https://prod", "stage"), apply, byApplications},
			{"one of two", g.mallory, at("https://both", "prod"), apply, ""},
			{"a destination that nobody listed", g.mallory, at("https://else", "prod"), apply, byApplications},
			{"none asked for", g.mallory, appOf("web", "shop", "source: {"+gitSource+", plugin: {name: syncgate}}"), apply, byApplications},
			{"a variable", g.mallory, at("https://prod", "$ARGOCD_APP_NAMESPACE"), apply, byApplications},
			{"twice", g.mallory, strings.Replace(at("https://prod", "prod"), "env: [", "env: [{name: SYNCGATE_ENVIRONMENT, value: stage}, ", 1), apply, byApplications},
			{"back", g.mallory, at("https://prod", "prod"), apply, ""},
			{"the destination alone", g.mallory, "", patch("web", `{"spec":{"destination":{"server":"https://stage"}}}`), byApplications},
		})
	})
	t.Run("what is older than the policies", func(t *testing.T) {
		g.try(t, []attempt{
			{"its status", argo, "", patch("old", `{"status":{"sync":{"status":"OutOfSync"}}}`), ""},
			{"a refresh", g.mallory, "", patch("old", `{"metadata":{"annotations":{"argocd.argoproj.io/refresh":"hard"}}}`), ""},
			{"a sync", argo, "", patch("old", `{"operation":{"initiatedBy":{"automated":true},"sync":{"revision":"main"}}}`), byApplications},
			{"another path", g.mallory, "", patch("old", `{"spec":{"source":{"path":"b"}}}`), byApplications},
			{"the plugin", g.mallory, "", patch("old", `{"spec":{"source":{"plugin":{"name":"syncgate","env":[{"name":"SYNCGATE_ENVIRONMENT","value":"prod"}]}}}}`), ""},
			{"then a sync", argo, "", patch("old", `{"operation":{"initiatedBy":{"automated":true},"sync":{"revision":"main"}}}`), ""},
			{"and its end", argo, "", patch("old", `{"operation":null,"status":{"operationState":{"phase":"Succeeded","startedAt":"2026-01-01T00:00:00Z","operation":{"sync":{"revision":"main"}}}}}`), ""},
		})
	})
	t.Run("annotations of the gate", func(t *testing.T) {
		annotate := func(pair string) []string {
			return []string{"annotate", "application", "web", "--namespace", "argocd", "--overwrite", pair}
		}
		g.try(t, []attempt{
			{"set", g.mallory, "", annotate("syncgate.io/mode=Warn"), byMetadata},
			{"set, by what applies applications", argo, "", annotate("syncgate.io/mode=Warn"), byMetadata},
			{"of a subdomain", g.mallory, "", annotate("status.syncgate.io/a=b"), byMetadata},
			{"set by an administrator", g.admin, "", annotate("syncgate.io/mode=Warn"), ""},
			{"set by the gate's controller", ours, "", annotate("syncgate.io/status=ok"), ""},
			{"changed", g.mallory, "", annotate("syncgate.io/mode=Off"), byMetadata},
			{"removed", g.mallory, "", annotate("syncgate.io/mode-"), byMetadata},
			{"a label", g.mallory, "", []string{"label", "application", "web", "--namespace", "argocd", "syncgate.io/a=b"}, byMetadata},
			{"others", g.mallory, "", annotate("example.com/notsyncgate.io=b"), ""},
			{"a namesake", g.mallory, "", annotate("mysyncgate.io/a=b"), ""},
			{"beside them", argo, "", patch("web", `{"status":{"sync":{"status":"Synced"}}}`), ""},
			{"through the namespace", g.mallory, "", patch("web", `{"spec":{"syncPolicy":{"managedNamespaceMetadata":{"labels":{"syncgate.io/gated":"false"}}}}}`), byMetadata},
			{"through the namespace's annotations", g.mallory, "", patch("free", `{"spec":{"syncPolicy":{"managedNamespaceMetadata":{"annotations":{"syncgate.io/a":"b"}}}}}`), byMetadata},
			{"the namespace's name", g.mallory, "", patch("web", `{"spec":{"syncPolicy":{"managedNamespaceMetadata":{"labels":{"kubernetes.io/metadata.name":"kube-system"}}}}}`), byMetadata},
			{"other labels of the namespace", g.mallory, "", patch("web", `{"spec":{"syncPolicy":{"managedNamespaceMetadata":{"labels":{"team":"a"}}}}}`), ""},
		})
	})
	t.Run("the gate's own project", func(t *testing.T) {
		project := func(name, spec string) string {
			return fmt.Sprintf("{apiVersion: argoproj.io/v1alpha1, kind: AppProject, metadata: {name: %s, namespace: argocd}, spec: {%s}}", name, spec)
		}
		own := func(project string) string {
			return strings.Replace(appOf("gate", project, gatedSource), "namespace: shop", "namespace: syncgate-system", 1)
		}
		g.try(t, []attempt{
			{"the project", g.mallory, project("syncgate", "sourceRepos: ['*']"), apply, byOwnProject},
			{"another project", g.mallory, project("shop", "sourceRepos: ['*']"), apply, ""},
			{"the project, by an administrator", g.admin, project("syncgate", "sourceRepos: ['*']"), apply, ""},
			{"an Application of it", g.mallory, own("syncgate"), apply, byOwnProject},
			{"one of it, elsewhere", g.mallory, appOf("gate", "syncgate", gatedSource), apply, byOwnProject},
			{"into the gate's namespace", g.mallory, own("sandbox"), apply, byOwnProject},
			{"into the gate's namespace, by an administrator", g.admin, own("sandbox"), apply, byOwnProject},
			{"by an administrator, with no plugin", g.admin, strings.Replace(own("syncgate"), ", "+prodPlugin, "", 1), apply, ""},
			{"its status", argo, "", patch("gate", `{"status":{"sync":{"status":"OutOfSync"}}}`), ""},
			{"its sync", argo, "", patch("gate", `{"operation":{"sync":{"revision":"main"}}}`), ""},
			{"its sync with manifests", g.mallory, "", patch("gate", `{"operation":{"sync":{"manifests":["{}"]}}}`), byOwnProject},
			{"its sync from elsewhere", g.mallory, "", patch("gate", `{"operation":{"sync":{"source":{"repoURL":"x","path":"a"}}}}`), byOwnProject},
			{"a forged source of its sync", g.mallory, "", patch("gate", forged), byOwnProject},
			{"the result of its sync", argo, "", patch("gate", strings.Replace(forged, `"x","path":"x"}`, `"https://git.example.com/shop.git","path":"apps/web"}`, 1)), ""},
			{"its repository", g.mallory, "", patch("gate", `{"spec":{"source":{"repoURL":"x"}}}`), byOwnProject},
			{"taken out of it", g.mallory, "", patch("gate", `{"spec":{"project":"sandbox","destination":{"namespace":"x"}}}`), byOwnProject},
			{"taken into it", g.mallory, "", patch("free", `{"spec":{"project":"syncgate"}}`), byOwnProject},
			{"its end", g.mallory, "", []string{"delete", "application", "gate", "--namespace", "argocd"}, byOwnProject},
			{"the project's end", g.mallory, "", []string{"delete", "appproject", "syncgate", "--namespace", "argocd"}, byOwnProject},
			{"the project's repositories", g.mallory, "", []string{"patch", "appproject", "syncgate", "--namespace", "argocd", "--type=merge", "--patch", `{"spec":{"sourceRepos":["x"]}}`}, byOwnProject},
			{"others end", g.mallory, "", []string{"delete", "application", "free2", "--namespace", "argocd"}, ""},
			{"its end, by an administrator", g.admin, "", []string{"delete", "application", "gate", "--namespace", "argocd"}, ""},
		})
	})
}

const argoGatePolicy = `apiVersion: syncgate.io/v1alpha1
kind: GatePolicy
environments:
- {name: prod, match: {name: web}}
- {name: stage, match: {name: web-stage}}
issuers:
- {name: release, keys: {file: release.jwks.json}}
`
