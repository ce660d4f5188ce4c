package render_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/plugin/render"
)

// A chart that renders differently each time, on another day or in another
// place is refused by name; one that merely could is not.
func TestChartsThatDependOnChanceAreRefused(t *testing.T) {
	const secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: shop}\nstringData: {a: x, p: {{ %s | quote }}}\n"
	const field = `stringData.p of Secret "shop/s" (templates/s.yaml document 1)`
	for _, tc := range []struct {
		name, expression, want string
	}{
		{"random text", "randAlphaNum 1", field},
		{"random letters", "randAlpha 8", field},
		{"random digits", "randNumeric 1", field},
		{"random printable text", "randAscii 8", field},
		{"random bytes", "randBytes 8", field},
		{"a random number", "randInt 0 2", field},
		{"a shuffled text", `shuffle "ab"`, field},
		{"a UUID", "uuidv4", field},
		{"a hash with random salt", `htpasswd "a" "b"`, field},
		{"a hash with random salt, bare", `bcrypt "b"`, field},
		{"a random key", `genPrivateKey "ed25519"`, field},
		{"a certificate", `(genSelfSignedCert "x" (list) (list) 1).Cert`, field},
		{"encryption with a random nonce", `encryptAES "0123456789abcdef" "x"`, field},
		{"the time", "now | unixEpoch", field},
		{"today", `now | date "2006-01-02"`, field},
		{"this year", `now | date "2006"`, field},
		{"this month", `now | date "01"`, field},
		{"the weekday", `now | date "Mon"`, field},
		{"today in a time zone", `dateInZone "2006-01-02" (now) "UTC"`, field},
		{"today by mistake", `date "2006-01-02" "2024-01-01"`, field},
		{"today in HTML", "htmlDate now", field},
		{"an age", `ago 86400`, field},
		{"a rounded age", `durationRound (toDate "2006" "2020")`, field},
		{"a random number of no choice", "randInt 3 4", ""},
		{"a random text that is not used", `default (randAlphaNum 8) "given"`, ""},
		{"a time that is given", `date "2006" 86400`, ""},
		{"a duration that is given", `durationRound "2400s"`, ""},
		{"keys without an order", `keys (dict "a" 1 "b" 2 "c" 3 "d" 4) | join ","`, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, dir, err := renderChart(t, map[string]string{"app/templates/s.yaml": strings.ReplaceAll(secret, "%s", tc.expression)}, render.Options{})
			if tc.want == "" {
				if err != nil {
					t.Errorf("got error %v, want none", err)
				}
				return
			}
			checkError(t, err, dir, "the chart makes up other values at each render, which nobody can sign: "+tc.want+"; set these values explicitly")
		})
	}
}

func TestWhatDependsOnChanceIsNamedInTheSameWords(t *testing.T) {
	for _, tc := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"a name", map[string]string{"app/templates/j.yaml": "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j-{{ uuidv4 }}}\n"},
			"metadata.name of a Job (templates/j.yaml document 1)"},
		{"a place in a list", map[string]string{"app/templates/d.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: a}, {name: b, args: [x, {{ uuidv4 }}]}]}\n"},
			`spec.containers[1].args[1] of Pod "p"`},
		{"an object that is not always there", map[string]string{"app/templates/d.yaml": deployment + "---\n{{ if randInt 0 2 }}" + configMap + "{{ end }}"},
			"the chart renders 1 objects one time and 2 another"},
		{"a failure that is not always there", map[string]string{"app/templates/d.yaml": deployment + "{{ if randInt 0 2 }}{{ fail \"now\" }}{{ end }}"},
			"the chart renders once and fails the next time"},
		{"a test", map[string]string{"app/templates/t.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: p-{{ uuidv4 }}, annotations: {helm.sh/hook: test}}\n"},
			"they belong to the chart's tests: leave those out (skipTests)"},
		{"more than a message holds", map[string]string{"app/templates/d.yaml": strings.Repeat("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {u: {{ uuidv4 }}}\n---\n", 5)},
			"document 3), and 2 more; set"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, dir, err := renderChart(t, tc.files, render.Options{})
			checkError(t, err, dir, tc.want)
			_, _, again := renderChart(t, tc.files, render.Options{})
			if again == nil || again.Error() != err.Error() {
				t.Errorf("got error %q the first time and %q the second", err, again)
			}
		})
	}
}

func TestACommentThatDependsOnChanceDoesNoHarm(t *testing.T) {
	r, _, err := renderChart(t, map[string]string{"app/templates/d.yaml": "# {{ now }}\n" + deployment}, render.Options{})
	if err != nil || len(r.Objects) != 1 {
		t.Errorf("got %v, %v; want one object", kinds(r), err)
	}
}

func TestAChartRendersToTheSameEachTime(t *testing.T) {
	files := map[string]string{}
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		files["app/charts/"+name+"/Chart.yaml"] = "{apiVersion: v2, name: " + name + ", version: 1.0.0}"
		files["app/charts/"+name+"/templates/x.yaml"] = strings.ReplaceAll(configMap, "config", name)
		files["app/templates/"+name+".yaml"] = strings.ReplaceAll(configMap, "config", "top-"+name)
	}
	var first []string
	for range 20 {
		r, _, err := renderChart(t, files, render.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = kinds(r)
		}
		if diff := cmp.Diff(first, kinds(r)); diff != "" {
			t.Fatalf("objects (-first +later):\n%s", diff)
		}
	}
}

// The loader leaves subcharts in random order, and the first fault is told.
func TestTheFaultThatIsToldIsTheSameEachTime(t *testing.T) {
	files := map[string]string{}
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		files["app/charts/"+name+"/Chart.yaml"] = "{apiVersion: v2, name: " + name + ", version: 1.0.0}"
		files["app/charts/"+name+"/values.schema.json"] = `{"required": ["tag"]}`
	}
	for range 20 {
		_, dir, err := renderChart(t, files, render.Options{})
		checkError(t, err, dir, `values.schema.json of chart "a"`)
	}
}

// The engine cannot be interrupted; whoever waits for it can.
func TestATemplateThatDoesNotEndIsLeft(t *testing.T) {
	root := repository(t, map[string]string{"app/Chart.yaml": chartYAML,
		"app/templates/d.yaml": `{{ range until 3000 }}{{ range until 1000 }}{{ end }}{{ end }}`})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := render.Render(ctx, render.Options{Dir: filepath.Join(root, "app"), ReleaseName: "web"})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got error %v, want %v", err, context.DeadlineExceeded)
	}
}

func TestWhatHelmWarnsOfIsReturnedWithoutValues(t *testing.T) {
	files := map[string]string{"app/values.yaml": "a: {b: {password: hunter2}}\n", "app/templates/d.yaml": deployment}
	r, _, err := renderChart(t, files, render.Options{Helm: render.HelmOptions{Values: map[string]any{"a": map[string]any{"b": "x"}}}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"cannot overwrite table with non table for shop.a.b"}
	if diff := cmp.Diff(want, r.Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}
