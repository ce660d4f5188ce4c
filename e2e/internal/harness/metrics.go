package harness

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
)

// sumMetric sums the series of a metric in Prometheus' text format whose labels
// include labels.
func sumMetric(text, name string, labels map[string]string) (float64, error) {
	var sum float64
	for line := range strings.Lines(text) {
		rest, found := strings.CutPrefix(strings.TrimSpace(line), name)
		if !found || rest == "" || rest[0] != '{' && rest[0] != ' ' {
			continue // a comment, or another metric
		}
		have, rest, err := parseLabels(rest)
		if err != nil {
			return 0, fmt.Errorf("parsing %q: %w", line, err)
		}
		value, _, _ := strings.Cut(strings.TrimSpace(rest), " ") // without a timestamp
		number, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, fmt.Errorf("parsing %q: %w", line, err)
		}
		if includes(have, labels) {
			sum += number
		}
	}
	return sum, nil
}

// parseLabels parses {a="b",...}, if it is there, and returns what follows.
func parseLabels(s string) (labels map[string]string, rest string, err error) {
	labels = map[string]string{}
	if !strings.HasPrefix(s, "{") {
		return labels, s, nil
	}
	for s = s[1:]; ; s = strings.TrimPrefix(s, ",") {
		if rest, end := strings.CutPrefix(s, "}"); end {
			return labels, rest, nil
		}
		name, value, found := strings.Cut(s, "=")
		if !found {
			return nil, "", fmt.Errorf("label without value at %q", s)
		}
		quoted, err := strconv.QuotedPrefix(value) // the format's escapes are Go's
		if err != nil {
			return nil, "", fmt.Errorf("label %q: %w", name, err)
		}
		if labels[strings.TrimSpace(name)], err = strconv.Unquote(quoted); err != nil {
			return nil, "", fmt.Errorf("label %q: %w", name, err)
		}
		s = value[len(quoted):]
	}
}

// includes reports whether all of part is in whole.
func includes(whole, part map[string]string) bool {
	both := maps.Clone(whole)
	maps.Copy(both, part)
	return maps.Equal(both, whole)
}
