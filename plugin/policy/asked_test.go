package policy

import (
	"strings"
	"testing"

	"github.com/syncgate/syncgate/plugin/projection"
)

const askedPolicy = `apiVersion: syncgate.io/v1alpha1
kind: GatePolicy
environments:
- {name: prod, match: {name: "web*"}}
- {name: prod-eu, match: {name: web}}
- {name: stage, match: {name: "stage-*"}}
mode: {render: Warn}
issuers:
- name: release
  keys: {file: a.json}
categories:
- {name: command, since: 2027-01-15}
- {name: rbac, required: false}
kinds:
- {group: example.com, kind: Tool, path: spec.image, category: x-tools}
apps:
- match: {name: "web-*"}
  mode: {render: Enforce}
- match: {name: web-free}
  categories: [{name: rbac}, {name: identity, required: false}]
- match: {project: strict}
  categories: [{name: service}]
`

func TestAnApplicationMayAskForMoreAndNeverForLess(t *testing.T) {
	p := mustParse(t, askedPolicy)
	tests := []struct {
		name     string
		app      App
		operator string
		asked    Asked
		warn     bool
		requires []projection.Category
		frees    []projection.Category
		err      string
	}{
		{name: "nothing", app: App{Name: "web-a"}, requires: []projection.Category{"image", "x-tools"}, frees: []projection.Category{"rbac", "service"}},
		{name: "the mode that is", app: App{Name: "stage-a"}, asked: Asked{Mode: "Warn"}, warn: true},
		{name: "a stricter mode", app: App{Name: "stage-a"}, asked: Asked{Mode: "Enforce"}},
		{name: "a laxer mode", app: App{Name: "web-a"}, asked: Asked{Mode: "Warn"},
			err: "conf/policy.yaml line 18: apps[0].mode.render: the mode is Enforce, and Warn would relax it"},
		{name: "another mode", app: App{Name: "web-a"}, asked: Asked{Mode: "enforce"}, err: `mode "enforce": want Enforce or Warn`},
		{name: "more categories", app: App{Name: "web-a"}, asked: Asked{Categories: []string{"service", "rbac"}}, requires: []projection.Category{"service", "rbac", "image"}},
		{name: "a category that is required", app: App{Name: "web-a"}, asked: Asked{Categories: []string{"image"}}, requires: []projection.Category{"image", "privilege"}},
		{name: "without one that is free", app: App{Name: "web-a"}, asked: Asked{Categories: []string{"-service"}}, frees: []projection.Category{"service"}, requires: []projection.Category{"image"}},
		{name: "without one that is not, by default", app: App{Name: "web-a"}, asked: Asked{Categories: []string{"-image"}},
			err: "conf/policy.yaml line 11: categories: category image must be signed, and leaving it out would relax that"},
		{name: "without one that is not, by an entry", app: App{Name: "web-a"}, asked: Asked{Categories: []string{"service", "-command"}},
			err: "conf/policy.yaml line 12: categories[0]: category command must be signed"},
		{name: "without one that is not, by a kind", app: App{Name: "web-a"}, asked: Asked{Categories: []string{"-x-tools"}},
			err: "conf/policy.yaml line 15: kinds[0]: category x-tools"},
		{name: "without one that is not, by a rule", app: App{Name: "web-free"}, asked: Asked{Categories: []string{"-rbac"}},
			err: "conf/policy.yaml line 20: apps[1].categories[0]: category rbac"},
		{name: "without one that is not, by a rule that tightens", app: App{Name: "web-a", Project: "strict"}, asked: Asked{Categories: []string{"-service"}},
			err: "conf/policy.yaml line 22: apps[2].categories[0]: category service"},
		{name: "what a rule frees, back", app: App{Name: "web-free"}, asked: Asked{Categories: []string{"identity"}}, requires: []projection.Category{"identity"}},
		{name: "a category that there is not", app: App{Name: "web-a"}, asked: Asked{Categories: []string{"images"}}, err: `category "images": want one of`},
		{name: "a category of no kind", app: App{Name: "web-a"}, asked: Asked{Categories: []string{"x-other"}}, err: `conf/policy.yaml line 14: kinds: no entry has the category "x-other"`},
		{name: "one of the environments", app: App{Name: "web"}, asked: Asked{Environment: "prod-eu"}, warn: true},
		{name: "no environment where there are several", app: App{Name: "web"}, err: "several environments are possible"},
		{name: "an environment for others", app: App{Name: "web-a"}, asked: Asked{Environment: "stage"},
			err: `conf/policy.yaml line 3: environments: environment "stage" is not one that policy allows for application "web-a": prod`},
		{name: "another than plugin.env", app: App{Name: "web", Environment: "prod"}, asked: Asked{Environment: "prod-eu"},
			err: `environment "prod-eu" is not "prod", which plugin.env asks for`},
		{name: "the same as plugin.env", app: App{Name: "web", Environment: "prod"}, asked: Asked{Environment: "prod"}, warn: true},
		{name: "another than the operator's", app: App{Name: "web"}, operator: "stage", asked: Asked{Environment: "prod"},
			err: `environment "prod" is not "stage", which the operator set`},
		{name: "the operator's", app: App{Name: "web"}, operator: "stage", asked: Asked{Environment: "stage", Mode: "Warn"}, warn: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if strings.HasPrefix(tt.app.Name, "web-") && tt.asked.Environment == "" {
				tt.app.Environment = "prod"
			}
			e, err := p.ForAsking(tt.app, tt.operator, tt.asked)
			if tt.err != "" {
				if err == nil || !strings.HasPrefix(err.Error(), tt.err) {
					t.Fatalf("got %v, want %q", err, tt.err)
				}
				if e.Protected("x") != true || e.Rules.Environment != "" {
					t.Error("settings beside an error")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if e.Warn != tt.warn {
				t.Errorf("warn: got %v, want %v", e.Warn, tt.warn)
			}
			for _, c := range tt.requires {
				if !e.Rules.Requires(c) {
					t.Errorf("%s is free, want it required", c)
				}
			}
			for _, c := range tt.frees {
				if e.Rules.Requires(c) {
					t.Errorf("%s is required, want it free", c)
				}
			}
		})
	}
}

func TestWhatThePolicyDoesNotSayIsNamedAsADefault(t *testing.T) {
	_, err := mustParse(t, minimal).ForAsking(App{Name: "web"}, "", Asked{Mode: "Warn"})
	if want := "conf/policy.yaml: mode.render: the mode is Enforce, and Warn would relax it (by default)"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestTheRulesHashLeavesOutTheRevocationsAlone: who goes by it would else judge
// everything anew when one receipt is taken back.
func TestTheRulesHashLeavesOutTheRevocationsAlone(t *testing.T) {
	all, err := files()
	if err != nil {
		t.Fatal(err)
	}
	hash := func(keys, list string) string {
		t.Helper()
		p, err := Parse([]byte(two+"revocations: {file: r.jwt, issuers: [b]}\n"), "policy.yaml", func(path string) ([]byte, error) {
			return []byte(map[string]string{"a.json": keys, "b.json": all["conf/b.json"], "r.jwt": list}[path]), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return p.RulesHash()
	}
	base := hash(all["conf/a.json"], all["conf/r.jwt"])
	if got := hash(all["conf/a.json"], all["conf/r.jwt"]+"\n"); got != base {
		t.Errorf("with another list: got %s, want %s", got, base)
	}
	if got := hash(all["conf/a.json"]+"\n", all["conf/r.jwt"]); got == base {
		t.Errorf("with other keys: got %s again", got)
	}
}
