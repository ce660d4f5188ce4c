package doctor_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/plugin/live/doctor"
)

const (
	generatedPolicy = `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicy","metadata":{"name":"syncgate-x"},"spec":{
	"failurePolicy":"Fail",
	"matchConstraints":{"matchPolicy":"Equivalent","resourceRules":[
		{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE","UPDATE"],"resources":["pods"],"scope":"Namespaced"},
		{"apiGroups":["apps"],"apiVersions":["v1"],"operations":["CREATE"],"resources":["deployments"]}]},
	"matchConditions":[{"name":"exempt","expression":"!a"}],
	"variables":[{"name":"administrator","expression":"b"}],
	"validations":[{"expression":"variables.administrator","reason":"Forbidden","message":"m"}]}}`
	generatedBinding = `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicyBinding","metadata":{"name":"syncgate-x"},"spec":{
	"policyName":"syncgate-x","validationActions":["Deny","Audit"],
	"matchResources":{"namespaceSelector":{"matchExpressions":[{"key":"kubernetes.io/metadata.name","operator":"NotIn","values":["kube-system","syncgate-system"]}]}}}}`
)

// stored is a generated object as an API server keeps it, with a change to its
// spec.
func stored(t *testing.T, text string, change func(spec map[string]any)) map[string]any {
	t.Helper()
	tree := parse(t, text)
	spec := tree["spec"].(map[string]any)
	if tree["kind"] == "ValidatingAdmissionPolicy" { // filled in
		constraints := spec["matchConstraints"].(map[string]any)
		constraints["namespaceSelector"], constraints["objectSelector"] = map[string]any{}, map[string]any{}
		constraints["resourceRules"].([]any)[1].(map[string]any)["scope"] = "*"
		tree["status"] = map[string]any{"observedGeneration": 3}
	} else {
		match := spec["matchResources"].(map[string]any)
		match["matchPolicy"], match["objectSelector"] = "Equivalent", map[string]any{}
	}
	if change != nil {
		change(spec)
	}
	return tree
}

func TestWhatCountsInAPolicyIsCompared(t *testing.T) {
	item := func(spec map[string]any, list string) map[string]any {
		return spec[list].([]any)[0].(map[string]any)
	}
	rule := func(spec map[string]any) map[string]any {
		return item(spec["matchConstraints"].(map[string]any), "resourceRules")
	}
	const policy, binding = "ValidatingAdmissionPolicy syncgate-x ", "ValidatingAdmissionPolicyBinding syncgate-x "
	for _, tt := range []struct {
		name, object string
		change       func(map[string]any)
		want         []string // beginnings
	}{
		{"a policy as it is stored", generatedPolicy, nil, nil},
		{"a binding as it is stored", generatedBinding, nil, nil},
		{"words in another order", generatedBinding, func(s map[string]any) { s["validationActions"] = []any{"Audit", "Deny"} }, nil},
		{"failurePolicy", generatedPolicy, func(s map[string]any) { s["failurePolicy"] = "Ignore" }, []string{policy + "failurePolicy: got Ignore, want Fail"}},
		{"an operation less", generatedPolicy, func(s map[string]any) { rule(s)["operations"] = []any{"CREATE"} }, []string{policy + "matchConstraints: got {"}},
		{"a rule for names alone", generatedPolicy, func(s map[string]any) { rule(s)["resourceNames"] = []any{"x"} }, []string{policy + "matchConstraints: got {"}},
		{"a rule less", generatedPolicy, func(s map[string]any) {
			c := s["matchConstraints"].(map[string]any)
			c["resourceRules"] = c["resourceRules"].([]any)[:1]
		}, []string{policy + "matchConstraints: got {"}},
		{"a rule for everything more", generatedPolicy, func(s map[string]any) {
			c := s["matchConstraints"].(map[string]any)
			c["resourceRules"] = append(c["resourceRules"].([]any), map[string]any{})
		}, []string{policy + `matchConstraints: got {"resourceRules":[{"apiGroups":[""],`}},
		{"an excluded rule", generatedPolicy, func(s map[string]any) {
			s["matchConstraints"].(map[string]any)["excludeResourceRules"] = []any{map[string]any{"apiGroups": []any{"*"}}}
		}, []string{policy + "matchConstraints: got {"}},
		{"an object selector", generatedPolicy, func(s map[string]any) {
			s["matchConstraints"].(map[string]any)["objectSelector"] = map[string]any{"matchLabels": map[string]any{"gate": "on"}}
		}, []string{policy + "matchConstraints: got {"}},
		{"matchPolicy", generatedPolicy, func(s map[string]any) { s["matchConstraints"].(map[string]any)["matchPolicy"] = "Exact" }, []string{policy + "matchConstraints: got {"}},
		{"a condition more", generatedPolicy, func(s map[string]any) {
			s["matchConditions"] = append(s["matchConditions"].([]any), map[string]any{"name": "never", "expression": "false"})
		}, []string{policy + "matchConditions[never]: got there, want missing"}},
		{"a condition twice", generatedPolicy, func(s map[string]any) {
			s["matchConditions"] = append([]any{map[string]any{"name": "exempt", "expression": "!a"}}, s["matchConditions"].([]any)...)
		}, []string{policy + "matchConditions[exempt#1]: got there, want missing"}},
		{"another condition", generatedPolicy, func(s map[string]any) { item(s, "matchConditions")["expression"] = "false" },
			[]string{policy + "matchConditions[exempt]: got another, want the generated one"}},
		{"another variable", generatedPolicy, func(s map[string]any) { item(s, "variables")["expression"] = "true" },
			[]string{policy + "variables[administrator]: got another, want the generated one"}},
		{"a validation that always holds", generatedPolicy, func(s map[string]any) { item(s, "validations")["expression"] = "true" },
			[]string{policy + "validations[#0]: got another, want the generated one"}},
		{"another reason", generatedPolicy, func(s map[string]any) { item(s, "validations")["reason"] = "Invalid" },
			[]string{policy + "validations[#0]: got another, want the generated one"}},
		{"no validations", generatedPolicy, func(s map[string]any) {
			s["validations"], s["auditAnnotations"] = []any{}, []any{map[string]any{"key": "k", "valueExpression": "''"}}
		}, []string{policy + "auditAnnotations[#0]: got there, want missing", policy + "validations[#0]: got missing, want there"}},
		{"a parameter", generatedPolicy, func(s map[string]any) { s["paramKind"] = map[string]any{"apiVersion": "v1", "kind": "ConfigMap"} },
			[]string{policy + "paramKind: got {"}},
		{"what a newer API server knows", generatedPolicy, func(s map[string]any) { s["enabled"] = false }, []string{policy + "enabled: got false, want nothing"}},

		{"only warned", generatedBinding, func(s map[string]any) { s["validationActions"] = []any{"Warn", "Audit"} }, []string{binding + "validationActions: got ["}},
		{"another policy", generatedBinding, func(s map[string]any) { s["policyName"] = "mine" }, []string{binding + "policyName: got mine, want syncgate-x"}},
		{"a namespace less", generatedBinding, func(s map[string]any) {
			e := item(s["matchResources"].(map[string]any)["namespaceSelector"].(map[string]any), "matchExpressions")
			e["values"] = append(e["values"].([]any), "shop")
		}, []string{binding + "matchResources: got {"}},
		{"a parameter that may be missing", generatedBinding, func(s map[string]any) {
			s["paramRef"] = map[string]any{"name": "x", "parameterNotFoundAction": "Allow"}
		}, []string{binding + "paramRef: got {"}},
		{"no spec", generatedBinding, func(s map[string]any) { clear(s) }, []string{binding + "matchResources: got nothing", binding + "policyName: got nothing", binding + "validationActions: got nothing"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := doctor.ComparePolicy(parse(t, tt.object), stored(t, tt.object, tt.change))
			for i, d := range got {
				if i >= len(tt.want) || !strings.HasPrefix(d.String(), tt.want[i]) {
					t.Errorf("got %s", d)
				}
			}
			if len(got) != len(tt.want) {
				t.Errorf("got %d differences, want %q", len(got), tt.want)
			}
		})
	}
}

func TestPoliciesThatDoNotHoldAreNamed(t *testing.T) {
	const policies, bindings = admissionAPI + "validatingadmissionpolicies", admissionAPI + "validatingadmissionpolicybindings"
	for _, tt := range []struct {
		name   string
		change func(*stage)
		want   string
	}{
		{"a policy is gone", func(s *stage) { s.Delete(policies + "/syncgate-x") }, "ValidatingAdmissionPolicy syncgate-x: missing: what it refuses passes while the webhook is dead, and what the webhook does not judge passes always"},
		{"a binding is gone", func(s *stage) { s.Delete(bindings + "/syncgate-x") }, "ValidatingAdmissionPolicyBinding syncgate-x: missing: the policy refuses nothing"},
		{"one that the webhook has no part in is gone", func(s *stage) {
			s.options.Policies = append(s.options.Policies, parse(t, strings.ReplaceAll(generatedPolicy, "syncgate-x", "syncgate-argocd-x")))
		}, "ValidatingAdmissionPolicy syncgate-argocd-x: missing: what it refuses passes, with the webhook or without: the webhook does not judge it"},
		{"another binding instead", func(s *stage) {
			s.Delete(bindings + "/syncgate-x")
			s.Put(bindings, strings.Replace(generatedBinding, `"name":"syncgate-x"`, `"name":"other"`, 1))
		}, "ValidatingAdmissionPolicyBinding syncgate-x: missing"},
		{"a policy is weaker", func(s *stage) {
			s.Get(policies + "/syncgate-x")["spec"].(map[string]any)["failurePolicy"] = "Ignore"
		}, "failurePolicy: got Ignore, want Fail"},
		{"nothing is expected", func(s *stage) { s.options.Policies = nil }, "no policies are expected"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStage(t, prod)
			s.options.Replicas = 1
			s.good(1)
			tt.change(s)
			got := failures(s.look(t))
			if len(got) != 1 || !strings.HasPrefix(got["policies"], tt.want) && !strings.HasSuffix(got["policies"], tt.want) {
				t.Errorf("failed checks: got %v, want policies: %s", got, tt.want)
			}
		})
	}
	s := newStage(t, prod)
	s.good(1)
	s.options.Replicas = 1
	s.Put(policies, `{"metadata":{"name":"somebody-elses"},"spec":{"failurePolicy":"Ignore"}}`)
	if diff := cmp.Diff(map[string]string{}, failures(s.look(t))); diff != "" {
		t.Errorf("beside somebody else's (-want +got):\n%s", diff)
	}
}
