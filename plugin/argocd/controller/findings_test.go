package controller

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/syncgate/syncgate/plugin/settings"
)

func TestWhatGoesAroundTheGateIsFound(t *testing.T) {
	native := map[string]any{"repoURL": "https://git.example/x.git", "path": "apps/x", "kustomize": map[string]any{}}
	through := map[string]any{"repoURL": "https://git.example/x.git", "path": "apps/y", "plugin": map[string]any{"name": "syncgate"}}
	values := map[string]any{"repoURL": "https://git.example/x.git", "ref": "values"}
	respecting := func(d map[string]any) *unstructured.Unstructured {
		u := with(t, app(t, "web"), []string{"CreateNamespace=true", " RespectIgnoreDifferences=true "}, "spec", "syncPolicy", "syncOptions")
		return with(t, u, []any{d}, "spec", "ignoreDifferences")
	}
	tests := []struct {
		name string
		app  *unstructured.Unstructured
		want []string // code and a part of the text, in turns
	}{
		{"nothing", app(t, "web"), nil},
		{"no plugin", with(t, app(t, "web"), native, "spec", "source"), []string{PluginMissing, "no source names the plugin"}},
		{"another plugin", with(t, app(t, "web"), "syncgate-v1", "spec", "source", "plugin", "name"), []string{PluginMissing, ""}},
		{"no source at all", without(app(t, "web"), "spec", "source"), []string{PluginMissing, ""}},
		{"two gated sources", with(t, app(t, "web"), []any{through, through}, "spec", "sources"), nil},
		{"a second source", with(t, app(t, "web"), []any{through, native}, "spec", "sources"), []string{UngatedSource, `1 of 2 sources do not name the plugin syncgate, "apps/x" of "https://git.example/x.git" first`}},
		{"a list beside one source, which then does not count", with(t, app(t, "web"), []any{native}, "spec", "sources"), []string{PluginMissing, ""}},
		{"an empty list beside one source", with(t, app(t, "web"), []any{}, "spec", "sources"), nil},
		{"a source of values", with(t, app(t, "web"), []any{through, values}, "spec", "sources"), nil},
		{"a source of values and more", with(t, app(t, "web"), []any{through, map[string]any{"repoURL": "x", "ref": "values", "path": "."}}, "spec", "sources"), []string{UngatedSource, ""}},
		{"a chart", with(t, app(t, "web"), []any{through, map[string]any{"repoURL": "https://charts.example", "chart": "redis"}}, "spec", "sources"), []string{UngatedSource, `"redis" of "https://charts.example"`}},
		{"a hydrator", with(t, app(t, "web"), map[string]any{"drySource": map[string]any{}}, "spec", "sourceHydrator"), []string{SourceHydrator, ""}},
		{"a hydrator and no source", with(t, without(app(t, "web"), "spec", "source"), map[string]any{"drySource": map[string]any{}}, "spec", "sourceHydrator"), []string{SourceHydrator, ""}},
		{"a local sync that is asked for", with(t, app(t, "web"), []string{"{}"}, "operation", "sync", "manifests"), []string{LocalSync, ""}},
		{"a local sync that was the last one", with(t, app(t, "web"), []string{"{}"}, "status", "operationState", "operation", "sync", "manifests"), []string{LocalSync, ""}},
		{"a sync", with(t, app(t, "web"), "main", "operation", "sync", "revision"), nil},
		{"a rollback to before the gate", with(t, app(t, "web"), native, "operation", "sync", "source"), []string{UngatedOperation, `"apps/x" of`}},
		{"a rollback to before the gate, done", with(t, app(t, "web"), []any{native}, "status", "operationState", "operation", "sync", "sources"), []string{UngatedOperation, ""}},
		{"a sync of another source that goes on", with(t, app(t, "web"), map[string]any{"phase": "Running", "syncResult": map[string]any{"source": native}}, "status", "operationState"), []string{UngatedOperation, ""}},
		{"a sync of another source that is over", with(t, app(t, "web"), map[string]any{"phase": "Succeeded", "syncResult": map[string]any{"source": native}}, "status", "operationState"), nil},
		{"a sync that goes on", with(t, app(t, "web"), map[string]any{"phase": "Running", "syncResult": map[string]any{"source": through}}, "status", "operationState"), nil},
		{"a sync of several that goes on", with(t, app(t, "web"), map[string]any{"phase": "Running", "syncResult": map[string]any{"source": map[string]any{"repoURL": ""}, "sources": []any{through}}}, "status", "operationState"), nil},
		{"a sync without a result", with(t, app(t, "web"), map[string]any{"phase": "Running", "syncResult": map[string]any{"source": map[string]any{"repoURL": ""}}}, "status", "operationState"), nil},
		{"a rollback", with(t, app(t, "web"), through, "operation", "sync", "source"), nil},
		{"live images", respecting(map[string]any{"group": "apps", "kind": "Deployment", "jsonPointers": []any{"/spec/replicas", "/spec/template/spec/containers/0/image"}}), []string{RespectIgnoreDifferences, `on "/spec/template/spec/containers/0/image"`}},
		{"live by jq", respecting(map[string]any{"kind": "*", "jqPathExpressions": []any{".spec.template"}}), []string{RespectIgnoreDifferences, ""}},
		{"live by a manager", respecting(map[string]any{"kind": "*", "managedFieldsManagers": []any{"kubectl"}}), []string{RespectIgnoreDifferences, "fields of kubectl"}},
		{"live replicas", respecting(map[string]any{"group": "apps", "kind": "Deployment", "jsonPointers": []any{"/spec/replicas", "/metadata/labels/x", "/status"}}), nil},
		{"differences that are ignored but not applied", with(t, app(t, "web"), []any{map[string]any{"kind": "*", "jsonPointers": []any{"/spec"}}}, "spec", "ignoreDifferences"), nil},
		{"live images by the operation's options", with(t, with(t, app(t, "web"), []any{map[string]any{"kind": "*", "jsonPointers": []any{"/spec"}}}, "spec", "ignoreDifferences"),
			[]string{"RespectIgnoreDifferences=true"}, "operation", "sync", "syncOptions"), []string{RespectIgnoreDifferences, ""}},
		{"several at once", with(t, with(t, app(t, "web"), native, "spec", "source"), []string{"x"}, "operation", "sync", "manifests"), []string{PluginMissing, "", LocalSync, ""}},
		{"no line breaks", with(t, app(t, "web"), []any{through, map[string]any{"repoURL": "a\nb\x1b[31m\u202e", "path": "é"}}, "spec", "sources"), []string{UngatedSource, `"\u00e9" of "a\nb\x1b[31m\u202e"`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := read(tt.app, "argocd").findings(standing{})
			if len(got) != len(tt.want)/2 {
				t.Fatalf("got %v, want %d findings", got, len(tt.want)/2)
			}
			for i, f := range got {
				if f.Code != tt.want[2*i] || !strings.Contains(f.Text, tt.want[2*i+1]) {
					t.Errorf("got %v, want %s and %q", f, tt.want[2*i], tt.want[2*i+1])
				}
			}
		})
	}
	got := read(app(t, "web"), "argocd").findings(standing{entry: settings.Refuse("line 4 forbids it"), warn: true, off: "noon: INC-1"})
	if diff := cmp.Diff([]Finding{
		{AnnotationRefused, "line 4 forbids it"},
		{OnlyWarned, "policy warns for this Application: what would be refused syncs; syncgate check says what that is"},
		{SwitchedOff, "an off-switch lets what would be refused pass until noon: INC-1"},
	}, got); diff != "" {
		t.Errorf("what the Application does not say itself (-want +got):\n%s", diff)
	}
}

func TestTheStatusFitsIntoAnAnnotation(t *testing.T) {
	if got := statusText(nil); got != "" {
		t.Errorf("got %q without findings", got)
	}
	if got := statusText([]Finding{{"A", "x"}, {"B", "y"}}); got != "[A] x; [B] y" {
		t.Errorf("got %q", got)
	}
	if got := statusText([]Finding{{"A", strings.Repeat("x", 5000)}}); len(got) != 3<<10 || !strings.HasSuffix(got, "...") {
		t.Errorf("got %d bytes", len(got))
	}
}

func TestAnEntrySaysWhatTheApplicationAsksForAndWhatPolicyForbids(t *testing.T) {
	p := load(t, files(t, "mode: {render: Warn}\napps: [{match: {name: strict}, mode: {render: Enforce}}, {match: {env: {TIER: high}}, mode: {render: Enforce}}]\n"))
	through := func(tier string) map[string]any {
		return map[string]any{"repoURL": "x", "path": "y", "plugin": map[string]any{"name": "syncgate", "env": []any{map[string]any{"name": "TIER", "value": tier}}}}
	}
	tests := []struct {
		name string
		app  *unstructured.Unstructured
		key  string
		want string // the encoded entry, or with * a part of it
	}{
		{"nothing", app(t, "web"), "web", "{}"},
		{"stricter", annotated(app(t, "web"), "syncgate.io/mode", "Enforce", "syncgate.io/lock", "l"), "web", `{"mode":"Enforce","lock":"l"}`},
		{"as it is", annotated(app(t, "web"), "syncgate.io/mode", "Warn"), "web", `{"mode":"Warn"}`},
		{"laxer", annotated(app(t, "strict"), "syncgate.io/mode", "Warn"), "strict", "*policy.yaml line 5: apps[0].mode.render: the mode is Enforce, and Warn would relax it"},
		{"laxer for one of two sources", annotated(with(t, app(t, "web"), []any{through("low"), through("high")}, "spec", "sources"), "syncgate.io/mode", "Warn"), "web", "*apps[1].mode.render"},
		{"not for sources that are not the gate's", annotated(without(app(t, "strict"), "spec", "source", "plugin"), "syncgate.io/mode", "Warn"), "strict", `{"mode":"Warn"}`},
		{"another environment", annotated(app(t, "web"), "syncgate.io/environment", "moon"), "web", `*policy.yaml line 3: environment: environment \"moon\"`},
		{"a slip", annotated(app(t, "web"), "syncgate.io/mood", "Enforce"), "web", `*annotation \"syncgate.io/mood\" is none of`},
		{"a receipt of the Application itself", annotated(app(t, "web"), "syncgate.io/receipt", "eyJ"), "web", "{}"},
		{"in a namespace of its own", with(t, app(t, "web"), "team-a", "metadata", "namespace"), "team-a_web", "{}"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := read(tt.app, "argocd")
			got, err := a.entry(p, "").Encode()
			must(t, err)
			if a.key != tt.key {
				t.Errorf("key: got %q, want %q", a.key, tt.key)
			}
			if part, yes := strings.CutPrefix(tt.want, "*"); yes && !strings.Contains(got, part) || !yes && got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}
