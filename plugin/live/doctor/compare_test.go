package doctor_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/plugin/live/doctor"
)

const generated = `{"metadata":{"name":"syncgate"},"webhooks":[{
	"name":"roles.syncgate.io","clientConfig":{"service":{"namespace":"syncgate-system","name":"syncgate-webhook","path":"/validate"}},
	"rules":[{"apiGroups":["rbac.authorization.k8s.io"],"apiVersions":["*"],"operations":["CREATE","UPDATE"],"resources":["roles","rolebindings"],"scope":"Namespaced"}],
	"failurePolicy":"Fail","matchPolicy":"Equivalent","sideEffects":"None","timeoutSeconds":5,"admissionReviewVersions":["v1"],
	"namespaceSelector":{"matchExpressions":[{"key":"kubernetes.io/metadata.name","operator":"NotIn","values":["kube-system","syncgate-system"]}]},
	"matchConditions":[{"name":"exempt","expression":"!a"},{"name":"update","expression":"b || c"}]}]}`

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	var tree map[string]any
	if err := json.Unmarshal([]byte(text), &tree); err != nil {
		t.Fatal(err)
	}
	return tree
}

// installed is the generated configuration as an API server stores it, with a
// change to its one entry.
func installed(t *testing.T, change func(entry map[string]any)) map[string]any {
	t.Helper()
	tree := parse(t, generated)
	entry := tree["webhooks"].([]any)[0].(map[string]any)
	entry["clientConfig"].(map[string]any)["caBundle"] = "Zm9v"
	entry["objectSelector"] = map[string]any{} // filled in
	if change != nil {
		change(entry)
	}
	return tree
}

func TestWhatCountsInAConfigurationIsCompared(t *testing.T) {
	rule := func(e map[string]any) map[string]any { return e["rules"].([]any)[0].(map[string]any) }
	condition := func(e map[string]any, i int) map[string]any {
		return e["matchConditions"].([]any)[i].(map[string]any)
	}
	for _, tt := range []struct {
		name   string
		change func(map[string]any)
		want   []string
	}{
		{"as it is stored", nil, nil},
		{"rules written in another way", func(e map[string]any) {
			one := func(operation string) map[string]any {
				return map[string]any{"apiGroups": []any{"rbac.authorization.k8s.io"}, "apiVersions": []any{"*"}, "operations": []any{operation}, "resources": []any{"rolebindings", "roles"}, "scope": "Namespaced"}
			}
			e["rules"] = []any{one("UPDATE"), one("CREATE")}
		}, nil},
		{"a URL instead of a Service", func(e map[string]any) {
			e["clientConfig"] = map[string]any{"url": "https://10.0.0.1:8443/validate?timeout=5s", "caBundle": "Zm9v"}
		}, nil},
		{"a selector written in another way", func(e map[string]any) {
			r := e["namespaceSelector"].(map[string]any)["matchExpressions"].([]any)[0].(map[string]any)
			r["values"] = []any{"syncgate-system", "kube-system"}
		}, nil},

		{"failurePolicy Ignore", func(e map[string]any) { e["failurePolicy"] = "Ignore" }, []string{"failurePolicy: got Ignore, want Fail"}},
		{"matchPolicy Exact", func(e map[string]any) { e["matchPolicy"] = "Exact" }, []string{"matchPolicy: got Exact, want Equivalent"}},
		{"another timeout", func(e map[string]any) { e["timeoutSeconds"] = 30 }, []string{"timeoutSeconds: got 30, want 5"}},
		{"side effects", func(e map[string]any) { e["sideEffects"] = "NoneOnDryRun" }, []string{"sideEffects: got NoneOnDryRun, want None"}},
		{"an operation fewer", func(e map[string]any) { rule(e)["operations"] = []any{"CREATE"} },
			[]string{"rules: got also nothing, want also UPDATE rbac.authorization.k8s.io/*/rolebindings (Namespaced), UPDATE rbac.authorization.k8s.io/*/roles (Namespaced)"}},
		{"a resource more", func(e map[string]any) { rule(e)["resources"] = []any{"roles", "rolebindings", "a"} },
			[]string{"rules: got also CREATE rbac.authorization.k8s.io/*/a (Namespaced), UPDATE rbac.authorization.k8s.io/*/a (Namespaced), want also nothing"}},
		{"one version only", func(e map[string]any) {
			rule(e)["apiVersions"], rule(e)["operations"], rule(e)["resources"] = []any{"v1"}, []any{"CREATE"}, []any{"roles"}
		},
			[]string{"rules: got also CREATE rbac.authorization.k8s.io/v1/roles (Namespaced), want also CREATE rbac.authorization.k8s.io/*/rolebindings (Namespaced), CREATE rbac.authorization.k8s.io/*/roles (Namespaced), UPDATE rbac.authorization.k8s.io/*/rolebindings (Namespaced), UPDATE rbac.authorization.k8s.io/*/roles (Namespaced)"}},
		{"a stale condition", func(e map[string]any) { condition(e, 1)["expression"] = "b" }, []string{"matchConditions[update]: got another, want the generated expression"}},
		{"a condition more", func(e map[string]any) {
			e["matchConditions"] = append(e["matchConditions"].([]any), map[string]any{"name": "never", "expression": "false"})
		}, []string{"matchConditions[never]: got there: the webhook may not be asked when it has to be, want missing"}},
		{"a condition fewer", func(e map[string]any) { e["matchConditions"] = e["matchConditions"].([]any)[1:] },
			[]string{"matchConditions[exempt]: got missing: the webhook is asked too often, want there"}},
		{"a namespace left out", func(e map[string]any) {
			e["namespaceSelector"].(map[string]any)["matchExpressions"].([]any)[0].(map[string]any)["values"] = []any{"kube-system", "syncgate-system", "shop"}
		}, []string{"namespaceSelector: got kubernetes.io/metadata.name NotIn [kube-system shop syncgate-system], want kubernetes.io/metadata.name NotIn [kube-system syncgate-system]"}},
		{"an opt-in label", func(e map[string]any) {
			e["namespaceSelector"].(map[string]any)["matchLabels"] = map[string]any{"gate": "on"}
		}, []string{"namespaceSelector: got gate In [on], kubernetes.io/metadata.name NotIn [kube-system syncgate-system], want kubernetes.io/metadata.name NotIn [kube-system syncgate-system]"}},
		{"an object selector", func(e map[string]any) { e["objectSelector"] = map[string]any{"matchLabels": map[string]any{"a": "b"}} }, []string{"objectSelector: got a In [b], want everything"}},
		{"no authority", func(e map[string]any) { delete(e["clientConfig"].(map[string]any), "caBundle") }, []string{"clientConfig.caBundle: got missing, want there"}},
		{"the path of the guard", func(e map[string]any) {
			e["clientConfig"].(map[string]any)["service"].(map[string]any)["path"] = "/guard"
		}, []string{"clientConfig path: got /guard, want /validate"}},
		{"a field that nobody knows yet", func(e map[string]any) { e["sampling"] = map[string]any{"percent": 1} }, []string{`sampling: got {"percent":1}, want nothing`}},
		{"another name", func(e map[string]any) { e["name"] = "old.syncgate.io" }, []string{
			"entry: got missing, want there", "old.syncgate.io entry: got there: it is of another policy or version, want missing"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, d := range doctor.Compare(parse(t, generated), installed(t, tt.change)) {
				if d.Entry == "roles.syncgate.io" {
					d.Entry = "" // the same in all
				}
				got = append(got, d.String())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnEntryThatStandsTwiceIsADifference(t *testing.T) {
	tree := installed(t, nil)
	list := tree["webhooks"].([]any)
	tree["webhooks"] = append(list, list[0])
	got := doctor.Compare(parse(t, generated), tree)
	want := []doctor.Difference{{Entry: "roles.syncgate.io", Field: "name", Want: "one entry", Got: "several"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
