package policy

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/projection"
)

func TestTheGatesOwnNamespaceIsNeverJudged(t *testing.T) {
	for _, tt := range []struct {
		name, text       string
		include, exclude []string
		gated, free      string
	}{
		{"nothing said", "", nil, []string{"kube-system", "syncgate-system"}, "shop", "syncgate-system"},
		{"elsewhere", "namespace: gate\n", nil, []string{"kube-system", "gate"}, "syncgate-system", "gate"},
		{"a list that forgets it", "scope: {admission: {namespaces: {exclude: [a]}}}\n", nil, []string{"a", "syncgate-system"}, "kube-system", "syncgate-system"},
		{"an empty list", "scope: {admission: {namespaces: {exclude: []}}}\n", nil, []string{"syncgate-system"}, "kube-system", "syncgate-system"},
		{"a list with it", "scope: {admission: {namespaces: {exclude: [syncgate-system, a]}}}\n", nil, []string{"syncgate-system", "a"}, "kube-system", "syncgate-system"},
		{"included ones", "scope: {admission: {namespaces: {include: [a]}}}\n", []string{"a"}, nil, "a", "syncgate-system"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := admission(t, tt.text)
			if d := cmp.Diff([][]string{tt.include, tt.exclude}, [][]string{a.Include, a.Exclude}); d != "" {
				t.Error(d)
			}
			if !a.Gated(tt.gated) || a.Gated(tt.free) {
				t.Errorf("gated: %s %t, %s %t; want true, false", tt.gated, a.Gated(tt.gated), tt.free, a.Gated(tt.free))
			}
		})
	}
	for _, text := range []string{"namespace: gate\n", "namespace: gate\nprotected: {namespaces: [a]}\n"} {
		e, err := mustParse(t, minimal+text).For(App{Name: "web"})
		if err != nil || !e.Protected("gate") || e.Protected("syncgate-system") {
			t.Errorf("%q: protected: gate %t, syncgate-system %t (%v); want true, false", text, e.Protected("gate"), e.Protected("syncgate-system"), err)
		}
	}
}

func TestAdministratorsReplaceTheDefaultAndMastersStay(t *testing.T) {
	for _, tt := range []struct {
		text string
		want Administrators
	}{
		{"", Administrators{Groups: []string{"syncgate:administrators", "system:masters"}}},
		{"administrators: {users: [alice]}\n", Administrators{Users: []string{"alice"}, Groups: []string{"system:masters"}}},
		{"administrators: {groups: [system:masters]}\n", Administrators{Groups: []string{"system:masters"}}},
		{"administrators: {users: ['system:serviceaccount:kube-system:robot'], groups: [ops, 'team:ops']}\n", Administrators{Users: []string{"system:serviceaccount:kube-system:robot"}, Groups: []string{"ops", "team:ops", "system:masters"}}},
		{"administrators: {users: ['system:serviceaccount:ops:robot'], acceptImpersonation: true}\n", Administrators{Users: []string{"system:serviceaccount:ops:robot"}, Groups: []string{"system:masters"}}},
	} {
		if d := cmp.Diff(tt.want, admission(t, tt.text).Administrators); d != "" {
			t.Errorf("%q: %s", tt.text, d)
		}
	}
}

func TestKindsOfThePolicyAreJudged(t *testing.T) {
	p := mustParse(t, minimal+`kinds:
- {group: a.io, kind: Mesh, path: spec.image, category: x-a}
- {group: a.io, kind: Mesh, path: spec.other, category: x-a, resource: meshen}
- {group: argoproj.io, kind: Application, path: spec.extra, category: x-a}
- {group: storage.k8s.io, kind: StorageClass, path: extra, category: x-a}
- {group: admissionregistration.k8s.io, kind: ValidatingAdmissionPolicy, path: extra, category: x-a}
- {group: extensions, kind: Ingress, path: extra, category: x-a}
scope: {admission: {clusterScoped: [ClusterRole, Fleet.b.io], kinds: [Endpoints, EndpointSlice.discovery.k8s.io, Mesh.a.io, HelmChart]}}
gatedDeletes: [Mesh, Fleet, StorageClass, Endpoints, ClusterRole, NetworkPolicy]
`)
	a := p.Admission()
	if d := cmp.Diff([]string{"ClusterRole", "Fleet.b.io", "StorageClass.storage.k8s.io"}, a.ClusterScoped); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"Endpoints", "EndpointSlice.discovery.k8s.io", "Mesh.a.io", "HelmChart", "Application.argoproj.io", "Ingress.networking.k8s.io"}, a.Kinds); d != "" {
		t.Error(d)
	}
	want := []projection.Kind{
		{Group: "a.io", Kind: "Mesh", Resource: "meshen"},
		{Group: "argoproj.io", Kind: "Application", Resource: "applications"},
		{Group: "storage.k8s.io", Kind: "StorageClass", Resource: "storageclasses", ClusterScoped: true},
		{Group: "networking.k8s.io", Kind: "Ingress", Resource: "ingresses"},
		{Group: "b.io", Kind: "Fleet", Resource: "fleets", ClusterScoped: true},
	}
	if d := cmp.Diff(want, p.CustomKinds()); d != "" {
		t.Error(d)
	}
	if p.Projector() == nil || mustParse(t, minimal).Projector() != nil {
		t.Error("the projector is not the one of the policy's kinds")
	}
}

func TestCategoriesThatOneRuleRequiresAreRequiredSomewhere(t *testing.T) {
	p := mustParse(t, minimal+`categories: [{name: command, required: false}, {name: rbac, required: false}]
apps:
- {match: {namespace: a}, categories: [{name: service}, {name: image, required: false}]}
- {match: {project: b}, categories: [{name: rbac, since: 2027-01-15}]}
`)
	var got []string
	for _, c := range projection.Categories() {
		if p.RequiresAnywhere(c) {
			got = append(got, string(c))
		}
	}
	if got, want := strings.Join(got, " "), "admission delivery identity image network privilege rbac secret service"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// The webhook sees objects: it knows their namespace and nothing of
// applications.
func TestANamespaceIsEnoughForTheWebhook(t *testing.T) {
	byNamespace := strings.Replace(minimal, "environment: prod\n", "environments: [{name: eu, match: {namespace: shop-*}}, {name: tools, match: {namespace: tools}}, {name: cluster, match: {namespace: '-'}}, {name: test, match: {namespace: shop-x, name: '*'}}]\n", 1)
	byName := strings.Replace(minimal, "environment: prod\n", "environments: [{name: eu, match: {namespace: shop-*}}, {name: platform, match: {name: platform-*}}, {name: canary, match: {env: {TIER: canary}, namespace: shop-*}}]\n", 1)
	for _, tt := range []struct{ name, policy, namespace, want string }{
		{"one environment", minimal, "any", "prod"},
		{"one environment, cluster-scoped", minimal, "-", "prod"},
		{"its namespace", byNamespace, "shop-a", "eu"},
		{"another", byNamespace, "tools", "tools"},
		{"cluster-scoped", byNamespace, "-", "cluster"},
		{"none", byNamespace, "other", `no environment of the policy matches namespace "other"`},
		{"two", byNamespace, "shop-x", `several environments are possible for namespace "shop-x": eu, test; select one`},
		{"by namespace beside others", byName, "shop-a", "eu"},
		{"by namespace and environment", strings.Replace(byName, "namespace: shop-*", "namespace: other", 1), "shop-b", `no environment of the policy matches namespace "shop-b"; platform, canary may, but more than a namespace is not known here: match on that alone, or name one with --environment`},
		{"by name only", byName, "platform", `no environment of the policy matches namespace "platform"; platform may, but more than a namespace is not known here: match on that alone, or name one with --environment`},
		{"cluster-scoped, by name only", byName, "-", `no environment of the policy matches cluster-scoped objects; platform may, but more than a namespace is not known here: match on that alone, or name one with --environment`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, err := mustParse(t, tt.policy).For(App{Namespace: tt.namespace})
			got := e.Rules.Environment
			if err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestRulesThatMatchOnANamespaceHoldAtTheWebhook(t *testing.T) {
	p := mustParse(t, minimal+`apps:
- {match: {namespace: sandbox-*}, help: by namespace, categories: [{name: command, required: false}, {name: service}], images: {allowUnpinned: [auto]}}
- {match: {name: web, namespace: shop}, help: by name, categories: [{name: image, required: false}]}
- {match: {path: apps/*, namespace: shop}, help: by path, images: {allowUnpinned: [x]}}
- {match: {env: {A: b}, namespace: shop}, help: by environment}
`)
	shop := settingsOf(t, p, App{Namespace: "shop"})
	if d := cmp.Diff(settingsOf(t, mustParse(t, minimal), App{}), shop); d != "" {
		t.Errorf("rules that need more than a namespace: %s", d)
	}
	sandbox := settingsOf(t, p, App{Namespace: "sandbox-1"})
	_, command := sandbox.Required[projection.Command]
	_, service := sandbox.Required[projection.Service]
	if command || !service || sandbox.Help != "by namespace" || !cmp.Equal(sandbox.Unpinned, []gate.Glob{"auto"}) {
		t.Errorf("a rule by namespace is not in %+v", sandbox)
	}
}

func TestTheHashNamesEverythingThatWasRead(t *testing.T) {
	all, err := files()
	if err != nil {
		t.Fatal(err)
	}
	const text = two + "revocations: {file: r.jwt, issuers: [b]}\n"
	hash := func(t *testing.T, text, dir string, changed map[string]string) string {
		t.Helper()
		p, err := Parse([]byte(text), dir+"/policy.yaml", func(path string) ([]byte, error) {
			name := strings.TrimPrefix(path, dir+"/")
			if s, ok := changed[name]; ok {
				return []byte(s), nil
			}
			if s, ok := all["conf/"+name]; ok {
				return []byte(s), nil
			}
			return nil, fs.ErrNotExist
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Hash(); len(got) != 71 || !strings.HasPrefix(got, "sha256:") {
			t.Errorf("got hash %q", got)
		}
		return p.Hash()
	}
	base := hash(t, text, "conf", nil)
	if again := hash(t, text, "/etc/syncgate", nil); again != base {
		t.Errorf("got %s in another directory, want %s", again, base)
	}
	seen := map[string]string{base: "as it was"}
	more, err := jwks("a1", "a2", "a3")
	if err != nil {
		t.Fatal(err)
	}
	for name, other := range map[string]string{
		"a comment":                   hash(t, text+"# x\n", "conf", nil),
		"a key":                       hash(t, text, "conf", map[string]string{"a.json": more}),
		"white space of a key set":    hash(t, text, "conf", map[string]string{"b.json": all["conf/b.json"] + "\n"}),
		"white space of the list":     hash(t, text, "conf", map[string]string{"r.jwt": all["conf/r.jwt"] + "\n"}),
		"no revocation list":          hash(t, two, "conf", nil),
		"the name of a key set":       hash(t, strings.Replace(text, "a.json", "n.json", 1), "conf", map[string]string{"n.json": all["conf/a.json"]}),
		"an empty line at the end":    hash(t, text+"\n", "conf", nil),
		"white space before the list": hash(t, text, "conf", map[string]string{"r.jwt": "\n" + all["conf/r.jwt"]}),
	} {
		if was, taken := seen[other]; taken {
			t.Errorf("%s: the same hash as %s", name, was)
		}
		seen[other] = name
	}
}

func TestWhatIsLoadedIsSaid(t *testing.T) {
	p := mustParse(t, strings.Replace(two, "{name: b,", "{name: b, retired: [b2],", 1)+"revocations: {file: r.jwt, issuers: [b]}\n")
	if d := cmp.Diff([]string{"a1", "a2", "b1", "b2"}, p.KeyIDs()); d != "" {
		t.Error(d)
	}
	if serial, ok := p.RevocationSerial(); serial != 7 || !ok {
		t.Errorf("got serial %d, %t, want 7", serial, ok)
	}
	if serial, ok := mustParse(t, minimal).RevocationSerial(); serial != 0 || ok {
		t.Errorf("got serial %d, %t of no list", serial, ok)
	}
	var zero Policy
	if _, ok := zero.RevocationSerial(); ok || zero.Hash() != "" || zero.KeyIDs() != nil || zero.CustomKinds() != nil || zero.RequiresAnywhere("image") {
		t.Error("the zero Policy says that something is loaded")
	}
}

func TestWritersThatOnlyCarryOutAreWarnedOf(t *testing.T) {
	p := mustParse(t, minimal+`scope: {admission: {kinds: [Rollout.argoproj.io, ScaledJob.keda.sh]}}
trustedWriters:
- {preset: argo-rollouts, namespaces: [shop], acceptImpersonation: true}
- {preset: keda, namespaces: [shop], acceptImpersonation: true}
- {preset: cert-manager, namespaces: [shop], acceptImpersonation: true}
- {user: 'system:serviceaccount:argocd:argocd-application-controller', namespaces: [shop], categories: [image], acceptImpersonation: true}
`)
	want := []string{
		"preset argo-rollouts is trusted with what Experiment.argoproj.io says: name it in scope.admission.kinds, or whoever may write one runs any image",
		"trusted writer system:serviceaccount:argocd:argocd-application-controller applies applications: what it writes within its limits is not judged at admission",
	}
	if d := cmp.Diff(want, p.Warnings()); d != "" {
		t.Error(d)
	}
}
