package projection

var (
	clusterRoleShape = shapes["rbac/v1.ClusterRole"]
	roleBindingShape = shapes["rbac/v1.RoleBinding"]
)

// roleLabels are those that another role's aggregationRule may select.
var roleLabels = &metaRule{except: []*names{clusterRoleLabels, bookkeeping}}

// clusterRole: with an aggregationRule a controller fills in the rules, so
// rendered rules beside it would stay where the selectors match nothing.
// Labels count because any of them may be what another role's rule selects.
func clusterRole(w *walker, obj map[string]any) {
	rules, aggregation := obj["rules"], obj["aggregationRule"]
	if list, ok := rules.([]any); aggregation != nil && rules != nil && (!ok || len(list) > 0) {
		w.fault("rules", "rules beside an aggregationRule are not overwritten when its selectors match nothing: remove them")
	} else {
		w.take(RBAC, "rules", clusterRoleShape.fields["rules"], rules)
	}
	w.take(RBAC, "aggregationRule", clusterRoleShape.fields["aggregationRule"], aggregation)
	w.aggregatesBookkeeping(aggregation)
	w.unknownTop(RBAC, clusterRoleShape, obj)
	for k, v := range w.object(obj, "metadata.labels") {
		if roleLabels.counts(k, v) {
			w.entry(RBAC, "metadata.labels"+key(k), v)
		}
	}
}

// aggregatesBookkeeping refuses a selector on labels that are not leaves:
// whoever sets such a label on a role would add to this one unseen.
func (w *walker) aggregatesBookkeeping(v any) {
	rule, _ := v.(map[string]any)
	selectors, _ := rule["clusterRoleSelectors"].([]any)
	for i, s := range selectors {
		at := index("aggregationRule.clusterRoleSelectors", i)
		sel, _ := s.(map[string]any)
		labels, _ := sel["matchLabels"].(map[string]any)
		for k := range labels {
			if !roleLabels.counts(k, nil) {
				w.fault(at, "selects the label %q, which is not gated: use a label of your own", k)
			}
		}
		exprs, _ := sel["matchExpressions"].([]any)
		for _, e := range exprs {
			x, _ := e.(map[string]any)
			if k, _ := x["key"].(string); !roleLabels.counts(k, nil) {
				w.fault(at, "selects the label %q, which is not gated: use a label of your own", k)
			}
		}
	}
}

// roleBinding: subjects are a set; their apiGroup defaults by kind, as in
// k8s.io/kubernetes pkg/apis/rbac/v1/defaults.go, SetDefaults_Subject.
func roleBinding(w *walker, obj map[string]any) {
	w.take(RBAC, "roleRef", roleBindingShape.fields["roleRef"], obj["roleRef"])
	w.unknownTop(RBAC, roleBindingShape, obj)
	v := obj["subjects"]
	list, ok := v.([]any)
	if !ok {
		w.take(RBAC, "subjects", roleBindingShape.fields["subjects"], v)
		return
	}
	out := make([]any, 0, len(list))
	for _, x := range list {
		s, ok := x.(map[string]any)
		if !ok {
			out = append(out, x)
			continue
		}
		n := make(map[string]any, len(s)+1)
		for k, y := range s {
			n[k] = y
		}
		if g, _ := n["apiGroup"].(string); g == "" && (n["kind"] == "User" || n["kind"] == "Group") {
			n["apiGroup"] = rbacGroup
		}
		out = append(out, n)
	}
	w.take(RBAC, "subjects", roleBindingShape.fields["subjects"], out)
}
