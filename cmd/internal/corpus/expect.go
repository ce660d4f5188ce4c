package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// count counts the objects of a stream in another way than the gate: split at
// document markers, decode with sigs.k8s.io/yaml, flatten one level. It says
// false where that is no good measure (JSON, block scalars that hold markers).
func count(data []byte) (int, bool) {
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return 0, false
	}
	n := 0
	for _, doc := range bytes.Split(append([]byte("\n"), bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))...), []byte("\n---")) {
		if i := bytes.IndexByte(doc, '\n'); i > 0 && len(bytes.TrimSpace(doc[:i])) > 0 && doc[0] != '#' && !bytes.HasPrefix(bytes.TrimSpace(doc[:i]), []byte("#")) {
			return 0, false
		}
		var v map[string]any
		if err := yaml.Unmarshal(doc, &v); err != nil {
			return 0, false
		}
		switch items, isList := v["items"].([]any); {
		case len(v) == 0:
		case v["items"] == nil && strings.HasSuffix(fmt.Sprint(v["kind"]), "List"): // holds nothing
		case isList:
			n += len(items)
		default:
			n++
		}
	}
	return n, true
}

// expectations are what other renderers make of the same units.
type expectations struct {
	results   map[string]expected // by path
	explained map[string]string   // path -> why
}

type expected struct {
	result string // ok, not-local or error
	docs   int
}

func newExpectations(expect, explained string) (*expectations, error) {
	e := &expectations{map[string]expected{}, map[string]string{}}
	rows, err := table(expect)
	if err != nil {
		return nil, err
	}
	for _, f := range rows {
		if len(f) < 4 || f[0] == "type" {
			continue
		}
		n, _ := strconv.Atoi(f[3])
		e.results[f[1]] = expected{f[2], n}
	}
	rows, err = table(explained)
	if err != nil {
		return nil, err
	}
	for _, f := range rows {
		if len(f) >= 2 && !strings.HasPrefix(f[0], "#") {
			e.explained[f[0]] = f[1]
		}
	}
	return e, nil
}

func table(file string) ([][]string, error) {
	if file == "" {
		return nil, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var out [][]string
	for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		out = append(out, strings.Split(line, "\t"))
	}
	return out, nil
}

// compare holds a rendered unit against what another renderer made of it: one
// that is ok there and does not render here needs an explanation.
func (e *expectations) compare(r *row) {
	want, known := e.results[r.unit.path]
	if !known || r.unit.kind == "manifest" || r.wrong() {
		return
	}
	renderFailed := r.outcome == refused && r.code == "RenderFailed"
	why := e.explained[r.unit.path]
	switch {
	case want.result == "ok" && renderFailed && why == "":
		r.outcome = unexplained
		r.sentence = "renders elsewhere: " + r.sentence
	case want.result == "ok" && renderFailed:
		r.outcome = explained
		r.sentence = why + ": " + r.sentence
	case want.result == "ok" && r.outcome == allowed && want.docs != r.objects && why == "":
		r.outcome = unexplained
		r.sentence = fmt.Sprintf("%d documents elsewhere, %d objects here", want.docs, r.objects)
	case want.result != "ok" && r.outcome == allowed && why == "":
		r.outcome = unexplained
		r.sentence = "does not render elsewhere (" + want.result + ")"
	}
}
