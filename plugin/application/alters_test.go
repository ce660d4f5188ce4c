package application_test

import (
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/syncgate/syncgate/plugin/application"
)

// What Flux has now is in the table of package controller.
func TestAltersIsTrueOfWhatIsNotKnown(t *testing.T) {
	for spec, want := range map[string]bool{
		`{}`: false,
		`{interval: 1h, prune: true, sourceRef: {kind: ExternalArtifact, name: a}, path: ./}`: false,
		`{ofALaterFlux: 1}`:    true,
		`{ofALaterFlux: null}`: false,
		`{patches: []}`:        false,
		`{patches: a}`:         true,
		`{ignore: [{paths: [/spec/replicas, /status/a]}]}`:          false,
		`{ignore: [{paths: [/spec/replicas], ofALaterFlux: true}]}`: true,
		`{ignore: [{paths: [/spec/replicasOf]}]}`:                   true,
		`{ignore: a}`: true,
	} {
		tree := map[string]any{}
		if err := yaml.Unmarshal([]byte("{spec: "+spec+"}"), &tree); err != nil {
			t.Fatal(err)
		}
		if got := application.Alters(tree); got != want {
			t.Errorf("%s: got %v, want %v", spec, got, want)
		}
	}
}
