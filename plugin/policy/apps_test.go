package policy

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/projection"
)

func mustParse(t *testing.T, text string) *Policy {
	t.Helper()
	p, err := parse(t, text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestForSelectsTheEnvironment(t *testing.T) {
	several := strings.Replace(minimal, "environment: prod\n", `environments:
- {name: eu, acceptsEnvironments: [prod], match: {namespace: shop-*, env: {REGION: eu*}}}
- {name: us, match: {namespace: shop-*, env: {REGION: us*}}}
- {name: test, match: {name: "*-test"}}
- {name: canary, match: {path: apps/*/canary}}
- {name: any, match: {env: {TIER: "*"}}}
`, 1)
	env := func(region string) map[string]string { return map[string]string{"REGION": region} }
	for _, tt := range []struct {
		name, policy string
		app          App
		want         string // environment accepts, or the error
	}{
		{"the only one", minimal, App{Name: "web"}, "prod []"},
		{"the only one, asked for", minimal, App{Name: "web", Environment: "prod"}, "prod []"},
		{"one that does not exist", minimal, App{Name: "web", Environment: "test"}, `environment "test" is not one that policy allows for application "web": prod`},
		{"by namespace and plugin.env", several, App{Name: "web", Namespace: "shop-a", Env: env("eu-1")}, "eu [prod]"},
		{"by another plugin.env", several, App{Name: "web", Namespace: "shop-a", Env: env("us-1")}, "us []"},
		{"by path", several, App{Name: "web", Path: "apps/web/canary"}, "canary []"},
		{"by any value of plugin.env", several, App{Name: "web", Env: map[string]string{"TIER": ""}}, "any []"},
		{"none", several, App{Name: "web", Namespace: "shop-a"}, `no environment of the policy matches application "web"`},
		{"none, asked for", several, App{Name: "web", Environment: "eu"}, `environment "eu" is not one that policy allows for application "web": none`},
		{"several", several, App{Name: "web-test", Namespace: "shop-a", Env: env("eu-1")}, `several environments are possible for application "web-test": eu, test; select one`},
		{"several, one asked for", several, App{Name: "web-test", Namespace: "shop-a", Env: env("eu-1"), Environment: "test"}, "test []"},
		{"one of another application", several, App{Name: "web-test", Namespace: "shop-a", Env: env("eu-1"), Environment: "us"}, `environment "us" is not one that policy allows for application "web-test": eu, test`},
		{"one that is only accepted", several, App{Name: "web", Namespace: "shop-a", Env: env("eu-1"), Environment: "prod"}, `environment "prod" is not one that policy allows for application "web": eu`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, err := mustParse(t, tt.policy).For(tt.app)
			got := fmt.Sprintf("%s %v", e.Rules.Environment, e.Rules.Accepts)
			if err != nil {
				got = err.Error()
				var one *Error
				if !errors.As(err, &one) || one.Reason != gate.PolicyInvalid {
					t.Errorf("got reason of %v, want PolicyInvalid", err)
				}
				if d := cmp.Diff(Effective{}, e, cmp.AllowUnexported(Effective{})); d != "" {
					t.Errorf("settings beside an error: %s", d)
				}
			}
			if got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
	p := mustParse(t, several)
	e, err := p.ForEnvironment(App{}, "us")
	if err != nil || e.Rules.Environment != "us" {
		t.Errorf("named by a person: got %q, %v", e.Rules.Environment, err)
	}
	_, err = p.ForEnvironment(App{}, "prod")
	if want := `environment "prod" is not one of this policy: eu, us, test, canary, any`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestProtectedNamespacesAreForWritersAlone(t *testing.T) {
	p := mustParse(t, minimal+"protected: {namespaces: [a], writers: ['*']}\n")
	for _, tt := range []struct {
		name, namespace string
		want            bool
	}{
		{"writer", "a", false},
		{"", "a", true}, // nobody knows who renders this
		{"", "kube-system", false},
	} {
		e, err := p.For(App{Name: tt.name})
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Protected(tt.namespace); got != tt.want {
			t.Errorf("application %q, namespace %q: protected is %t, want %t", tt.name, tt.namespace, got, tt.want)
		}
	}
}

// settings are what rules of apps may change, in a form that shows.
type settings struct {
	Warn         bool
	Pins         PinSource
	Unknown      UnknownImages
	Expired      gate.ExpiredMode
	MinRemaining int64
	Unpinned     []gate.Glob
	Required     map[projection.Category]int64
	Help         string
}

func settingsOf(t *testing.T, p *Policy, a App) settings {
	t.Helper()
	e, err := p.For(a)
	if err != nil {
		t.Fatal(err)
	}
	required := map[projection.Category]int64{}
	for _, r := range e.Rules.Required {
		required[r.Category] = r.Since
	}
	return settings{e.Warn, e.Pins, e.UnknownImages, e.Rules.Expired, e.Rules.MinRemaining, e.Rules.AllowUnpinned, required, e.Help}
}

func TestAppRulesOverrideInTheirOrder(t *testing.T) {
	p := mustParse(t, minimal+`receipts: {backstop: true, minRemaining: 1h}
images: {allowUnpinned: [auto]}
apps:
- match: {name: "a*"}
  mode: {render: Warn}
  help: first
  unknownImages: Ignore
  images: {pins: Registry, allowUnpinned: [x]}
  receipts: {minRemaining: 0s, expired: AllowUnchanged}
  categories: [{name: command, required: false}, {name: image, since: 2027-01-15}, {name: service}]
- match: {name: "ab*", namespace: shop, path: apps/*, env: {X: y}}
  help: second
  images: {allowUnpinned: [y]}
- match: {project: team, repository: "https://git.example/*"}
  mode: {render: Enforce}
  unknownImages: Refuse
  images: {pins: AlreadyPinned}
  receipts: {minRemaining: 2h, expired: Refuse}
  categories: [{name: command}, {name: image}]
`)
	base := settingsOf(t, p, App{Name: "b"})
	want := settings{Pins: LockFile, Unknown: WarnUnknown, Expired: gate.LeaveToAdmission, MinRemaining: 3600, Unpinned: []gate.Glob{"auto"}, Required: base.Required}
	if d := cmp.Diff(want, base); d != "" {
		t.Errorf("no rule: %s", d)
	}
	if _, on := base.Required["service"]; on || len(base.Required) != 9 {
		t.Errorf("no rule: required %v", base.Required)
	}
	required := map[projection.Category]int64{"admission": 0, "delivery": 0, "identity": 0, "image": date("2027-01-15"), "network": 0, "privilege": 0, "rbac": 0, "secret": 0, "service": 0}
	first := settings{Warn: true, Pins: Registry, Unknown: IgnoreUnknown, Expired: gate.AllowUnchanged, MinRemaining: 0, Unpinned: []gate.Glob{"auto", "x"}, Required: required, Help: "first"}
	if d := cmp.Diff(first, settingsOf(t, p, App{Name: "ab"})); d != "" {
		t.Errorf("one rule: %s", d)
	}
	ab := App{Name: "ab", Namespace: "shop", Path: "apps/ab", Env: map[string]string{"X": "y"}}
	second := first
	second.Help, second.Unpinned = "second", []gate.Glob{"auto", "x", "y"}
	if d := cmp.Diff(second, settingsOf(t, p, ab)); d != "" {
		t.Errorf("two rules: %s", d)
	}
	for name, other := range map[string]App{
		"namespace":               {Name: "ab", Namespace: "other", Path: "apps/ab", Env: ab.Env},
		"path":                    {Name: "ab", Namespace: "shop", Path: "apps/x/ab", Env: ab.Env},
		"environment":             {Name: "ab", Namespace: "shop", Path: "apps/ab", Env: map[string]string{"X": "z"}},
		"nothing set":             {Name: "ab", Namespace: "shop", Path: "apps/ab"},
		"half a tightening match": {Name: "ab", Project: "team"},
	} {
		if d := cmp.Diff(first, settingsOf(t, p, other)); d != "" {
			t.Errorf("another %s: %s", name, d)
		}
	}
	ab.Project, ab.Repository = "team", "https://git.example/web"
	third := second
	third.Warn, third.Pins, third.Unknown, third.Expired, third.MinRemaining = false, AlreadyPinned, RefuseUnknown, gate.RefuseExpired, 7200
	third.Required = map[projection.Category]int64{"admission": 0, "command": 0, "delivery": 0, "identity": 0, "image": 0, "network": 0, "privilege": 0, "rbac": 0, "secret": 0, "service": 0}
	if d := cmp.Diff(third, settingsOf(t, p, ab)); d != "" {
		t.Errorf("and one that tightens: %s", d)
	}
	if d := cmp.Diff(first, settingsOf(t, p, App{Name: "ab"})); d != "" {
		t.Errorf("one rule, asked again: %s", d)
	}
	if d := cmp.Diff(base, settingsOf(t, p, App{Name: "b"})); d != "" {
		t.Errorf("no rule, asked again: %s", d)
	}
}

func TestTighteningRulesLeaveAloneWhatIsNotStricter(t *testing.T) {
	p := mustParse(t, minimal+`mode: {render: Warn}
receipts: {backstop: true}
apps:
- match: {project: p}
  mode: {render: Warn}
  unknownImages: Warn
  images: {pins: LockFile}
  receipts: {expired: LeaveToAdmission, minRemaining: 0s}
  categories: [{name: service, required: false}]
`)
	if d := cmp.Diff(settingsOf(t, p, App{Name: "a"}), settingsOf(t, p, App{Name: "a", Project: "p"})); d != "" {
		t.Error(d)
	}
}

func TestApplicationsDoNotShareWhatRulesAppend(t *testing.T) {
	p := mustParse(t, minimal+"images: {allowUnpinned: [a, b, c]}\napps:\n- {match: {name: x}, images: {allowUnpinned: [x]}}\n- {match: {name: y}, images: {allowUnpinned: [y]}}\n")
	x := settingsOf(t, p, App{Name: "x"})
	y := settingsOf(t, p, App{Name: "y"})
	if d := cmp.Diff([][]gate.Glob{{"a", "b", "c", "x"}, {"a", "b", "c", "y"}}, [][]gate.Glob{x.Unpinned, y.Unpinned}); d != "" {
		t.Error(d)
	}
}

// lax names the settings of b that are laxer than those of a.
func lax(a, b settings) []string {
	var out []string
	add := func(laxer bool, name string) {
		if laxer {
			out = append(out, name)
		}
	}
	add(b.Warn && !a.Warn, "mode")
	add(b.Pins > a.Pins, "pins")
	add(b.Unknown > a.Unknown, "unknownImages")
	add(b.Expired != gate.RefuseExpired && b.Expired != a.Expired, "expired")
	add(b.MinRemaining < a.MinRemaining, "minRemaining")
	add(len(b.Unpinned) > len(a.Unpinned), "allowUnpinned")
	for c, since := range a.Required {
		other, on := b.Required[c]
		add(!on || other > since, "category "+string(c))
	}
	return out
}

// What Argo CD's cache cannot tell apart must not be laxer for one project or
// repository than for another, whatever rules stand beside each other.
func TestRulesOutsideTheCacheKeyOnlyTighten(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(words ...string) string { return words[random.IntN(len(words))] }
	rule := func(match string) string {
		s := "- match: {" + match + "}\n"
		s += pick("", "  mode: {render: Warn}\n", "  mode: {render: Enforce}\n")
		s += pick("", "  unknownImages: Refuse\n", "  unknownImages: Warn\n", "  unknownImages: Ignore\n")
		s += pick("", "  images: {pins: AlreadyPinned}\n", "  images: {pins: LockFile}\n", "  images: {pins: Registry}\n", "  images: {allowUnpinned: [auto]}\n")
		s += pick("", "  receipts: {minRemaining: 0s}\n", "  receipts: {minRemaining: 2h}\n", "  receipts: {expired: Refuse}\n", "  receipts: {expired: AllowUnchanged}\n", "  receipts: {expired: LeaveToAdmission}\n")
		s += pick("", "  categories: [{name: image, required: false}]\n", "  categories: [{name: image, since: 2027-01-15}]\n", "  categories: [{name: image}]\n", "  categories: [{name: service}]\n")
		return s
	}
	loaded, refused, tightened := 0, 0, 0
	for range 3000 {
		text := minimal + pick("", "mode: {render: Warn}\n") + pick("", "unknownImages: Ignore\n") + pick("", "images: {pins: Registry}\n") +
			pick("receipts: {backstop: true}\n", "receipts: {backstop: true, minRemaining: 1h}\n", "receipts: {backstop: true, expired: Refuse}\n") + pick("", "categories: [{name: image, since: 2027-02-01}]\n") + "apps:\n"
		for range 3 {
			text += rule(pick("name: web", "namespace: shop", "project: p", "name: web, project: p", "repository: r", "path: other"))
		}
		p, err := parse(t, text)
		if err != nil {
			if !strings.Contains(err.Error(), "relaxes the check") {
				t.Fatalf("%v\n%s", err, text)
			}
			refused++
			continue
		}
		loaded++
		app := App{Name: "web", Namespace: "shop"}
		without := settingsOf(t, p, app)
		app.Project, app.Repository = "p", "r"
		with := settingsOf(t, p, app)
		if laxer := lax(without, with); len(laxer) > 0 {
			t.Fatalf("project and repository relax %q:\n%s", laxer, text)
		}
		if len(lax(with, without)) > 0 {
			tightened++
		}
	}
	t.Logf("%d policies loaded, %d refused, %d tightened something", loaded, refused, tightened)
	if loaded < 100 || refused < 100 || tightened < 50 {
		t.Errorf("too few policies of a sort to show anything")
	}
}
