package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestEveryPolicyFieldIsDocumented looks for each key of the policy's decoder
// in docs/policy.md.
func TestEveryPolicyFieldIsDocumented(t *testing.T) {
	doc := read(t, "../../../docs/policy.md")
	keys := regexp.MustCompile("yaml:\"([A-Za-z]+)\"").FindAllStringSubmatch(read(t, "../../../plugin/policy/document.go"), -1)
	if len(keys) < 40 {
		t.Fatalf("got %d keys, want all of the policy", len(keys))
	}
	for _, k := range keys {
		// As code, alone or as the end of a path: `x`, `a.x`, `a[].x.y`.
		if !regexp.MustCompile("`[A-Za-z.\\[\\]]*\\b" + k[1] + "\\b[^`\\n]*`").MatchString(doc) {
			t.Errorf("docs/policy.md does not say what %q means", k[1])
		}
	}
}

// TestWhatDocsCallAbsentIsAbsent fails when something arrives that the docs
// still call missing: policy fields that nothing reads outside package policy.
func TestWhatDocsCallAbsentIsAbsent(t *testing.T) {
	doc := read(t, "../../../docs/policy.md")
	_, note, _ := strings.Cut(doc, "**Not in this release:**") // with no such note, all is there
	note, _, _ = strings.Cut(note, "\n\n")
	text := sources(t, "../../../plugin", "policy/")
	for field, use := range map[string]string{
		"kinds":                  `\.Projector\.`,
		"unknownImages":          `\.UnknownImages\b`,
		"receipts.grace":         `\.Grace\b`,
		"receipts.keepPrevious":  `\.KeepPrevious\b`,
		"the admission webhook,": `\.Admission\(\)`,
		"Flux":                   `\bapp\.Kustomization\b`,
	} {
		said := strings.Contains(note, field)
		used := regexp.MustCompile(use).MatchString(text)
		if said == used {
			t.Errorf("%s: docs/policy.md calls it missing: %v, the code uses it: %v", field, said, used)
		}
	}
}

func TestDocsSayWhetherThereIsHelm(t *testing.T) {
	chart := t.TempDir()
	err := os.WriteFile(filepath.Join(chart, "Chart.yaml"), []byte("apiVersion: v2\nname: a\nversion: 1.0.0\n"), 0o644)
	if err != nil {
		t.Fatal(err)
	}
	c := root()
	c.SetOut(io.Discard)
	c.SetArgs([]string{"fields", chart})
	err = c.Execute()
	missing := err != nil && strings.Contains(err.Error(), "no Helm renderer")
	for _, path := range []string{"argocd.md", "policy.md"} {
		said := regexp.MustCompile(`(?i)\bhelm\b[^\n]{0,5}(:|\*\*:) not in this release|\*\*Not in this release:\*\*[^\n]*\bHelm\b`).MatchString(read(t, filepath.Join("../../../docs", path)))
		if said != missing {
			t.Errorf("docs/%s says that Helm is missing: %v, it is: %v; see README.md, CHANGELOG.md and docs/threat-model.md as well", path, said, missing)
		}
	}
}
