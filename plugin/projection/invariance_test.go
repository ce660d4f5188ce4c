package projection

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// recorded is what an API server stored of what was sent, as the program
// internal/invariance wrote it down (make invariance RECORD=...).
type recorded struct {
	Server, Outcome, Field string
	Sent, Stored           map[string]any
}

func recordings(t *testing.T) map[string][]recorded {
	t.Helper()
	files, err := filepath.Glob("testdata/invariance/pairs/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files of recorded pairs, %v", len(files), err)
	}
	out := map[string][]recorded{}
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		for d.More() {
			var r recorded
			if err := d.Decode(&r); err != nil {
				t.Fatalf("%s: %v", f, err)
			}
			out[filepath.Base(f)] = append(out[filepath.Base(f)], r)
		}
	}
	return out
}

// unrecorded are kinds of the table that no pair stands for: their definitions
// are published neither with the API server nor as a Go module.
var unrecorded = []string{"HelmChart.helm.cattle.io", "Object.kubernetes.crossplane.io"}

// What a real API server stored has the digest of what was sent, but for what
// the cluster decides and what the server does not know. Every kind of the
// table stands here with leaves, so that nothing passes by projecting nothing.
func TestInvariance(t *testing.T) {
	gated, n := map[string]bool{}, 0
	for file, pairs := range recordings(t) {
		for _, r := range pairs {
			n++
			name := file + " " + str(r.Sent["kind"]) + " " + str(r.Sent["metadata"].(map[string]any)["name"])
			p, err := Project(r.Sent)
			if err != nil {
				t.Errorf("%s: sent: %v", name, err)
				continue
			}
			q, err := Project(r.Stored)
			if err != nil {
				t.Errorf("%s: stored: %v", name, err)
				continue
			}
			if k := lookup(r.Sent); k != nil && p.Gated() {
				gated[k.name()] = true
			}
			changes := Diff(p, q)
			switch r.Outcome {
			case "Same":
				a, b := digestOf(t, r.Sent), digestOf(t, r.Stored)
				if len(changes) > 0 || a != b || !slices.Equal(p.Applies(), q.Applies()) {
					t.Errorf("%s: %s sent, %s stored by %s: %v", name, a, b, r.Server, changes)
				}
			case "FieldDefaulted":
				if len(changes) == 0 {
					t.Errorf("%s: recorded %s, and nothing differs", name, r.Field)
				}
				for _, c := range changes {
					group, kind := groupKind(r.Sent)
					if c.Old != nil || !ClusterDecides(group, kind, c.Path) {
						t.Errorf("%s: %v, which no cluster decides", name, c)
					}
				}
			case "FieldDropped":
				if len(changes) == 0 {
					t.Errorf("%s: recorded %s, and nothing differs", name, r.Field)
				}
				for _, c := range changes {
					if c.New != nil {
						t.Errorf("%s: %v, which is not gone", name, c)
					}
				}
			default:
				t.Errorf("%s: recorded as %q", name, r.Outcome)
			}
		}
	}
	var missing []string
	for i := range kindTable {
		if name := kindTable[i].name(); !gated[name] && !slices.Contains(unrecorded, name) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		t.Errorf("no recorded pair has a leaf of %v", missing)
	}
	t.Logf("%d pairs of %d kinds: %v", n, len(gated), slices.Sorted(maps.Keys(gated)))
}
