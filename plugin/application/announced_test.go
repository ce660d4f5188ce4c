package application

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// TestThePluginAnnouncesItsParameters: Argo CD's pages offer exactly what
// Parameters takes, in its form.
func TestThePluginAnnouncesItsParameters(t *testing.T) {
	data, err := os.ReadFile("../../manifests/argocd/plugin.yaml")
	if err != nil {
		t.Fatal(err)
	}
	type announcement struct {
		Name           string `json:"name"`
		Title          string `json:"title"`
		Tooltip        string `json:"tooltip"`
		ItemType       string `json:"itemType"`
		CollectionType string `json:"collectionType"`
	}
	// Argo CD reads the file without a word about what it does not know.
	var plugin struct {
		APIVersion string         `json:"apiVersion"`
		Kind       string         `json:"kind"`
		Metadata   map[string]any `json:"metadata"`
		Spec       struct {
			Generate   struct{ Command []string } `json:"generate"`
			Parameters struct {
				Static []announcement `json:"static"`
			} `json:"parameters"`
		} `json:"spec"`
	}
	if err := yaml.UnmarshalStrict(data, &plugin); err != nil {
		t.Fatal(err)
	}
	forms := map[string]announcement{
		"a string": {}, "true or false": {ItemType: "boolean"},
		"an array": {CollectionType: "array"}, "a map or an array": {CollectionType: "map"},
	}
	var want []announcement
	for _, p := range parameters {
		a, known := forms[p.form]
		if !known {
			t.Fatalf("no announcement for the form %q", p.form)
		}
		a.Name = p.name
		want = append(want, a)
	}
	got := plugin.Spec.Parameters.Static
	for i := range got {
		if got[i].Title == "" {
			t.Errorf("%s has no title", got[i].Name)
		}
		got[i].Title, got[i].Tooltip = "", ""
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("announcements (-parameters +plugin.yaml):\n%s", diff)
	}
}
