package projection

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

var javaOptions = NewProjector(nil, CustomVariables{Names: []string{"JAVA_OPTS", "CATALINA_*", "*_SETTINGS"}, Category: "x-variables"})

func TestVariablesThatPolicyNamesAreLeavesOfItsOwnCategory(t *testing.T) {
	const env = `env: [{name: JAVA_OPTS, value: -Xmx1g}, {name: CATALINA_OPTS}, {name: JVM_SETTINGS, valueFrom: {configMapKeyRef: {name: c, key: k}}}, {name: OTHER, value: x}, {name: PATH, value: /bin}]`
	for _, doc := range []string{
		`{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: {containers: [{name: a, image: i, ` + env + `}]}}}}`,
		`{apiVersion: example.com/v1, kind: Thing, spec: {template: {spec: {containers: [{name: a, image: i, ` + env + `}]}}}}`,
	} {
		obj := parse(t, doc)
		p, err := javaOptions.Project(obj)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, l := range p.In("x-variables") {
			got = append(got, strings.TrimPrefix(l.String(), "x-variables spec.template.spec.containers[a].env"))
		}
		want := []string{`[CATALINA_OPTS].value = ""`, `[JAVA_OPTS].value = "-Xmx1g"`, `[JVM_SETTINGS].valueFrom.configMapKeyRef.key = "k"`, `[JVM_SETTINGS].valueFrom.configMapKeyRef.name = "c"`}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("leaves (-want +got):\n%s", diff)
		}
		if want := append(append([]Category{}, podCategories...), "x-variables"); !cmp.Equal(want, p.Applies()) {
			t.Errorf("applies: got %v, want %v", p.Applies(), want)
		}
		// The digest of every other category is the same for everybody.
		plain, err := Project(obj)
		if err != nil {
			t.Fatal(err)
		}
		a, errA := p.Digest(podCategories)
		b, errB := plain.Digest(podCategories)
		if a != b || errA != nil || errB != nil {
			t.Errorf("digest over the six of pods: got %s (%v), want %s (%v)", a, errA, b, errB)
		}
	}
	role, err := javaOptions.Project(parse(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, rules: []}`))
	if err != nil || !cmp.Equal(role.Applies(), []Category{RBAC}) {
		t.Errorf("a Role: got categories %v, %v", role.Applies(), err)
	}
}

func TestTheConditionsSeeVariablesThatPolicyNames(t *testing.T) {
	set := func(name, value string) func(o, template, c map[string]any) {
		return func(_, _, c map[string]any) {
			c["env"] = append(c["env"].([]any), map[string]any{"name": name, "value": value})
		}
	}
	for _, policy := range []string{"all", "only these"} {
		requires := policies["all"]
		if policy == "only these" {
			requires = func(c Category) bool { return c == "x-variables" }
		}
		c := newConditions(javaOptions, requires)
		for _, kind := range []kindKey{{"apps", "Deployment"}, {"", "Pod"}, {"batch", "CronJob"}} {
			k := kindIndex[kind]
			for _, tt := range []struct {
				name  string
				asked bool
			}{{"JAVA_OPTS", true}, {"CATALINA_OPTS", true}, {"JVM_SETTINGS", true}, {"JAVA_OPTIONAL", false}} {
				old, obj := inKind(t, k, celPod), inKind(t, k, celPod)
				set(tt.name, "a")(nil, nil, containerOf(old, 0))
				set(tt.name, "b")(nil, nil, containerOf(obj, 0))
				if differ := gatedIn(javaOptions, old, requires) != gatedIn(javaOptions, obj, requires); differ != tt.asked {
					t.Errorf("%s %s, %s: the projections differ: %t", policy, kind.kind, tt.name, differ)
				}
				if o := c.of(obj).update(t, raw(old), raw(obj)); o.err != nil || o.asked() != tt.asked {
					t.Errorf("%s %s, %s: asked %t (%v), want %t", policy, kind.kind, tt.name, o.asked(), o.err, tt.asked)
				}
			}
		}
	}
	if text, _ := NewProjector(nil).CEL("apps", "Deployment", policies["all"]); strings.Contains(text.Update[1], "CATALINA_") {
		t.Error("named without a policy")
	}
}

// As many as policy may name cost no more than the API server grants.
func TestTheBudgetHoldsWithVariablesThatPolicyNames(t *testing.T) {
	var list []string
	for i := range MaxVariables {
		list = append(list, fmt.Sprintf("*_%0*d", MaxVariableName-2, i))
	}
	c := newConditions(NewProjector(nil, CustomVariables{list, "x-variables"}), policies["all"])
	full := func(v string) map[string]any {
		return podWith(15, func(int) map[string]any {
			return map[string]any{"env": plainEnv(90, strings.Repeat("LONG_NAME", 10), v), "volumeMounts": many(9, func(i int) any { return map[string]any{"name": "v", "mountPath": fmt.Sprint("/m", i)} })}
		})
	}
	for _, k := range append(costCases(), pairOf("as many items as are looked into", true, full)) {
		o := c.of(k.obj)
		if o == nil || k.obj["kind"] != "Deployment" {
			continue
		}
		got := o.update(t, raw(k.old), raw(k.obj))
		if got.err != nil || got.asked() && k.name == "as many items as are looked into" {
			t.Errorf("%s: asked %t, %.200v", k.name, got.asked(), got.err)
		}
		t.Logf("%s: cost %v of %d", k.name, got.costs, celconfig.PerCallLimit)
	}
}
