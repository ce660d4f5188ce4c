package policy

import (
	"slices"
	"testing"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/projection"
)

func TestVariablesOfAPolicyAreGatedAndRequired(t *testing.T) {
	p := mustParse(t, minimal+"variables: [{names: [JAVA_OPTS, '*_OPTS'], category: x-java}]\n")
	e, err := p.For(App{Name: "web"})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(e.Rules.Required, func(r gate.Required) bool { return r.Category == "x-java" }) {
		t.Errorf("x-java is not required: %v", e.Rules.Required)
	}
	pod := func(value string) *projection.Projection {
		object, err := p.Projector().Project(map[string]any{"apiVersion": "v1", "kind": "Pod", "spec": map[string]any{"containers": []any{
			map[string]any{"name": "a", "image": "i", "env": []any{map[string]any{"name": "CATALINA_OPTS", "value": value}}},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		return object
	}
	if projection.EqualIn(pod("a"), pod("b"), "x-java") || !projection.EqualIn(pod("a"), pod("a"), "x-java") {
		t.Error("another value is not another projection")
	}
	if _, err := p.ForAsking(App{Name: "web"}, "", Asked{Categories: []string{"-x-java"}}); err == nil || err.Error() != "conf/policy.yaml line 7: variables[0]: category x-java must be signed, and leaving it out would relax that" {
		t.Errorf("asked to leave it out: got %v", err)
	}
}
