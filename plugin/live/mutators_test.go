package live_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/syncgate/syncgate/plugin/live"
)

const admissionAPI = "/apis/admissionregistration.k8s.io/v1/"

// asked is an Asked about a Deployment of namespace shop.
func asked(change func(*live.Asked)) live.Asked {
	a := live.Asked{
		Operation: live.Create, Resource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
		Labels: map[string]string{"app": "web"}, Namespace: "shop", NamespaceLabels: map[string]string{"kubernetes.io/metadata.name": "shop"},
	}
	if change != nil {
		change(&a)
	}
	return a
}

func TestAMutatorMayBeAskedByItsRulesAndSelectors(t *testing.T) {
	cluster := func(a *live.Asked) {
		a.Resource, a.Namespace, a.NamespaceLabels = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, "", nil
	}
	for _, tt := range []struct {
		name, webhook string
		change        func(*live.Asked)
		want          bool
	}{
		{"the resource", `"rules":[{"apiGroups":["apps"],"apiVersions":["v1"],"operations":["CREATE"],"resources":["deployments"]}]`, nil, true},
		{"another version of it", `"rules":[{"apiGroups":["apps"],"apiVersions":["v1beta1"],"operations":["CREATE"],"resources":["deployments"]}]`, nil, true},
		{"everything", `"rules":[{"apiGroups":["*"],"apiVersions":["*"],"operations":["*"],"resources":["*/*"]}]`, nil, true},
		{"another resource", `"rules":[{"apiGroups":["apps"],"apiVersions":["v1"],"operations":["CREATE"],"resources":["replicasets"]}]`, nil, false},
		{"a subresource", `"rules":[{"apiGroups":["apps"],"apiVersions":["v1"],"operations":["CREATE"],"resources":["deployments/scale"]}]`, nil, false},
		{"another group", `"rules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["*"]}]`, nil, false},
		{"another operation", `"rules":[{"apiGroups":["apps"],"apiVersions":["v1"],"operations":["UPDATE"],"resources":["deployments"]}]`, nil, false},
		{"cluster-scoped objects", `"rules":[{"apiGroups":["*"],"apiVersions":["*"],"operations":["*"],"resources":["*"],"scope":"Cluster"}]`, nil, false},
		{"no rules", `"rules":[]`, nil, false},
		{"the namespace", `"rules":[` + all + `],"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"shop"}}`, nil, true},
		{"another namespace", `"rules":[` + all + `],"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"web"}}`, nil, false},
		{"a namespace that is left out", `"rules":[` + all + `],"namespaceSelector":{"matchExpressions":[{"key":"kubernetes.io/metadata.name","operator":"NotIn","values":["shop"]}]}`, nil, false},
		{"the object's labels", `"rules":[` + all + `],"objectSelector":{"matchLabels":{"app":"web"}}`, nil, true},
		{"other labels", `"rules":[` + all + `],"objectSelector":{"matchLabels":{"app":"db"}}`, nil, false},
		{"no namespace at all", `"rules":[` + all + `],"namespaceSelector":{"matchLabels":{"team":"x"}}`, cluster, true},
		{"a Namespace by its own labels", `"rules":[` + all + `],"namespaceSelector":{"matchLabels":{"team":"x"}}`, func(a *live.Asked) {
			cluster(a)
			a.Resource = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
		}, false},
		{"a condition that may be true", `"rules":[` + all + `],"matchConditions":[{"name":"a","expression":"false"}]`, nil, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, c := connect(t)
			s.Put(admissionAPI+"mutatingwebhookconfigurations", `{"metadata":{"name":"c"},"webhooks":[{"name":"w.example.test",`+tt.webhook+`}]}`)
			list, err := c.Mutators(t.Context())
			must(t, err)
			if len(list) != 1 || list[0].String() != "webhook w.example.test (configuration c)" {
				t.Fatalf("mutators: got %v", list)
			}
			if got := list[0].May(asked(tt.change)); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

const all = `{"apiGroups":["*"],"apiVersions":["*"],"operations":["*"],"resources":["*"]}`

func TestAPolicyCountsByItsBindings(t *testing.T) {
	s, c := connect(t)
	rule := func(resource string) string {
		return `{"apiGroups":["apps"],"apiVersions":["v1"],"operations":["CREATE"],"resources":["` + resource + `"]}`
	}
	s.Put(admissionAPI+"mutatingadmissionpolicies", `{"metadata":{"name":"bound"},"spec":{"matchConstraints":{"resourceRules":[`+rule("deployments")+`],
		"excludeResourceRules":[`+strings.Replace(rule("deployments"), "{", `{"resourceNames":["other"],`, 1)+`]}}}`)
	s.Put(admissionAPI+"mutatingadmissionpolicies", `{"metadata":{"name":"unbound"},"spec":{"matchConstraints":{"resourceRules":[`+rule("deployments")+`]}}}`)
	s.Put(admissionAPI+"mutatingadmissionpolicies", `{"metadata":{"name":"excluding"},"spec":{"matchConstraints":{"resourceRules":[`+rule("*")+`],"excludeResourceRules":[`+rule("deployments")+`]}}}`)
	for _, b := range []string{
		`{"metadata":{"name":"everywhere"},"spec":{"policyName":"bound"}}`,
		`{"metadata":{"name":"elsewhere"},"spec":{"policyName":"bound","matchResources":{"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"web"}}}}}`,
		`{"metadata":{"name":"excludes"},"spec":{"policyName":"excluding"}}`,
		`{"metadata":{"name":"of-nothing"},"spec":{"policyName":"gone"}}`,
	} {
		s.Put(admissionAPI+"mutatingadmissionpolicybindings", b)
	}
	list, err := c.Mutators(t.Context())
	must(t, err)
	got := map[string]bool{}
	for _, m := range list {
		got[m.String()] = m.May(asked(nil))
	}
	want := map[string]bool{
		"policy bound (binding everywhere)": true, "policy bound (binding elsewhere)": false, "policy excluding (binding excludes)": false,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
