package projection_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/syncgate/syncgate/plugin/projection"
	"github.com/syncgate/syncgate/plugin/projection/vectors"
)

// The vectors were reviewed when they were made: a change of one is a change of
// the profile, and of every digest that was signed.
func TestVectors(t *testing.T) {
	all, err := vectors.All()
	if err != nil || len(all) < 25 {
		t.Fatalf("%d vectors, %v", len(all), err)
	}
	for _, v := range all {
		t.Run(v.Name, func(t *testing.T) {
			d := json.NewDecoder(bytes.NewReader(v.Object))
			d.UseNumber()
			var tree map[string]any
			if err := d.Decode(&tree); err != nil {
				t.Fatal(err)
			}
			p, err := projection.Project(tree)
			var malformed *projection.MalformedError
			if v.Malformed != "" {
				if !errors.As(err, &malformed) || malformed.Faults[0].Path != v.Malformed {
					t.Errorf("got %v, want a fault at %s", err, v.Malformed)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var covers []projection.Category
			for _, c := range v.Covers {
				covers = append(covers, projection.Category(c))
			}
			canonical, err := p.Canonical(covers)
			if err != nil || string(canonical) != v.Canonical {
				t.Errorf("canonical form (%v):\ngot  %s\nwant %s", err, canonical, v.Canonical)
			}
			if digest, _ := p.Digest(covers); digest != v.Digest || digest != fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(v.Canonical))) {
				t.Errorf("digest: got %s, want %s", digest, v.Digest)
			}
		})
	}
}
