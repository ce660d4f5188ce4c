package policy

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What is taken away and what is added, in what a webhook goes by, is tested
// where it is used (plugin/webhook, standalone_test.go).
func TestNarrowedNamesTheFilesThatItCannotRead(t *testing.T) {
	all, err := files()
	if err != nil {
		t.Fatal(err)
	}
	changed := map[string]string{}
	p, err := Parse([]byte(two+"revocations: {file: r.jwt, issuers: [b]}\n"), "conf/policy.yaml", func(path string) ([]byte, error) {
		name := strings.TrimPrefix(path, "conf/")
		if s, ok := changed[name]; ok && s == "gone" {
			return nil, fs.ErrNotExist
		} else if ok {
			return []byte(s), nil
		}
		return []byte(all[path]), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := p.Narrowed(); n != p || err != nil {
		t.Errorf("the same files: got another policy: %t, %v", n != p, err)
	}
	changed["a.json"], changed["r.jwt"] = "{}", "gone"
	n, err := p.Narrowed()
	var list Errors
	if !errors.As(err, &list) || n != p {
		t.Fatalf("got another policy: %t, %v", n != p, err)
	}
	var named []string
	for _, e := range list {
		if e.Line == 0 || e.File != "conf/policy.yaml" {
			t.Errorf("%v: line %d of %s, want where the policy names it", e, e.Line, e.File)
		}
		named = append(named, e.Named)
	}
	if diff := cmp.Diff([]string{"a.json", "r.jwt"}, named); diff != "" {
		t.Error(diff)
	}

	changed = map[string]string{"a.json": all["conf/b.json"]} // keys of somebody else
	n, err = p.Narrowed()
	if err != nil || n == p || n.Hash() == p.Hash() || n.RulesHash() == p.RulesHash() {
		t.Errorf("without keys: got the same policy: %t, %v", n == p, err)
	}
	if diff := cmp.Diff([]string{"b1", "b2"}, n.KeyIDs()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"a1", "a2", "b1", "b2"}, p.KeyIDs()); diff != "" {
		t.Errorf("the policy of before: %s", diff)
	}
	var zero Policy
	if n, err := zero.Narrowed(); n != &zero || err != nil {
		t.Errorf("the zero Policy: %v", err)
	}
}
