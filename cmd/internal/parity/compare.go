package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// receiptAnnotation is what the gate adds to gated objects.
const receiptAnnotation = "syncgate.io/receipt"

func decode(data []byte) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var out map[string]any
	if err := d.Decode(&out); err != nil {
		return nil, fmt.Errorf("reading an object: %w", err)
	}
	return out, nil
}

func key(o map[string]any) string {
	m, _ := o["metadata"].(map[string]any)
	text := func(v any) string { s, _ := v.(string); return s }
	return strings.Join([]string{text(o["apiVersion"]), text(o["kind"]), text(m["namespace"]), text(m["name"]) + text(m["generateName"])}, " ")
}

func byKey(list []map[string]any) map[string][]map[string]any {
	out := map[string][]map[string]any{}
	for _, o := range list {
		out[key(o)] = append(out[key(o)], o)
	}
	return out
}

// they is who renders beside the gate.
var they = "Argo CD"

// difference says what is the first difference in the objects, in the order of
// their names; "" if there is none but pins and receipts.
func difference(want, got []map[string]any) string {
	a, b := byKey(want), byKey(got)
	all := maps.Clone(a)
	maps.Copy(all, b)
	for _, k := range slices.Sorted(maps.Keys(all)) {
		if len(a[k]) != len(b[k]) {
			return fmt.Sprintf("%s: %d times by %s, %d by the gate", k, len(a[k]), they, len(b[k]))
		}
		for i := range a[k] {
			o := b[k][i]
			unstamp(o)
			if spec, _ := o["spec"].(map[string]any); o["kind"] == "CronJob" {
				if template, ok := spec["jobTemplate"].(map[string]any); ok {
					unstamp(template)
				}
			}
			if d := differ("", a[k][i], o); d != "" {
				return k + ": " + d
			}
		}
	}
	return ""
}

// unstamp takes the receipt off. The maps that it needed to be there stay.
func unstamp(o map[string]any) {
	m, _ := o["metadata"].(map[string]any)
	annotations, _ := m["annotations"].(map[string]any)
	delete(annotations, receiptAnnotation)
}

// leftBehind reports whether a member is one of those maps, without content.
func leftBehind(name string, v any) bool {
	m, ok := v.(map[string]any)
	if name == "metadata" && len(m) == 1 {
		return leftBehind("annotations", m["annotations"])
	}
	return ok && name == "annotations" && len(m) == 0
}

var pinned = regexp.MustCompile(`^(.*)@sha256:[0-9a-f]{64}$`)

// differ compares two values below a path.
func differ(path string, want, got any) string {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			break
		}
		all := maps.Clone(w)
		maps.Copy(all, g)
		for _, k := range slices.Sorted(maps.Keys(all)) {
			x, inWant := w[k]
			y, inGot := g[k]
			here := path + "." + k
			switch {
			case !inWant && y != nil && !leftBehind(k, y):
				return fmt.Sprintf("%s only by the gate: %s", here, brief(y))
			case !inGot && x != nil:
				return fmt.Sprintf("%s only by %s: %s", here, they, brief(x))
			case x == nil && leftBehind(k, y):
			case inWant && inGot:
				if d := differ(here, x, y); d != "" {
					return d
				}
			}
		}
		return ""
	case []any:
		g, ok := got.([]any)
		if !ok || len(w) != len(g) {
			break
		}
		for i := range w {
			if d := differ(fmt.Sprintf("%s[%d]", path, i), w[i], g[i]); d != "" {
				return d
			}
		}
		return ""
	case json.Number:
		if g, ok := got.(json.Number); ok && sameNumber(w, g) {
			return ""
		}
	case string:
		if g, ok := got.(string); ok {
			m := pinned.FindStringSubmatch(g)
			if g == w || m != nil && m[1] == w {
				return ""
			}
			want, got = tails(w, g)
		}
	default:
		if want == got {
			return ""
		}
	}
	return fmt.Sprintf("%s: by %s %s, by the gate %s", path, they, brief(want), brief(got))
}

// tails leaves out what two long strings begin with alike.
func tails(a, b string) (string, string) {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	if i < maxBrief/2 {
		return a, b
	}
	return "..." + a[i:], "..." + b[i:]
}

// maxBrief is how many bytes of a value are shown.
const maxBrief = 120

func sameNumber(a, b json.Number) bool {
	if a == b {
		return true
	}
	x, err := strconv.ParseFloat(string(a), 64)
	y, err2 := strconv.ParseFloat(string(b), 64)
	return err == nil && err2 == nil && x == y && (strings.ContainsAny(string(a), ".eE") || strings.ContainsAny(string(b), ".eE"))
}

func brief(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	if len(data) > maxBrief {
		return string(data[:maxBrief]) + "..."
	}
	return string(data)
}
