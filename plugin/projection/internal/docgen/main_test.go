package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/syncgate/syncgate/plugin/projection"
)

const spec = "../../../../docs/spec/gated-fields.md"

func TestTheSpecificationShowsTheTableThatTheCodeWorksBy(t *testing.T) {
	raw, err := os.ReadFile(spec)
	if err != nil {
		t.Fatal(err)
	}
	want, err := render(string(raw), projection.Table())
	if err != nil {
		t.Fatal(err)
	}
	if string(raw) != want {
		t.Error("docs/spec/gated-fields.md is stale: run go generate ./plugin/projection")
	}
}

func TestTheSpecificationShowsTheBytesOfTheExample(t *testing.T) {
	raw, err := os.ReadFile(spec)
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("../../example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, output, found := strings.Cut(string(example), "// Output:\n")
	if !found {
		t.Fatal("the example has no output")
	}
	for _, line := range strings.Split(output, "\n") {
		want, isOutput := strings.CutPrefix(line, "\t// ")
		if isOutput && !strings.Contains(string(raw), want) {
			t.Errorf("docs/spec/gated-fields.md does not hold %s", want)
		}
	}
	if _, object, ok := strings.Cut(string(example), "const example = `"); !ok || !strings.Contains(string(raw), strings.Split(object, "`")[0]) {
		t.Error("docs/spec/gated-fields.md does not hold the example's object")
	}
}

func TestEveryRowSaysWhatCountsOrWhyNot(t *testing.T) {
	for _, f := range projection.Table() {
		if f.Of != projection.OfVariable && (f.Doc == "") == (f.Not == "") {
			t.Errorf("row %s %s: doc %q, not %q: want exactly one", f.Of, f.Path, f.Doc, f.Not)
		}
	}
}

func TestAMarkerThatNamesNoTableIsAnError(t *testing.T) {
	for _, doc := range []string{"", "<!-- begin generated: kinds -->", "<!-- begin generated: nonsense -->\n<!-- end generated -->"} {
		if got, err := render(doc, projection.Table()); err == nil {
			t.Errorf("render(%q) = %q, want an error", doc, got)
		}
	}
}

func TestTheGeneratorIsNamedWhereGoGenerateFindsIt(t *testing.T) {
	out, err := exec.Command("go", "generate", "-n", "../..").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "internal/docgen") || !strings.Contains(string(out), "internal/schemagen") {
		t.Errorf("go generate runs %s, %v", out, err)
	}
}
