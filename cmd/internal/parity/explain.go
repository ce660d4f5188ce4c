package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

// explanation is a line of the table of what may differ.
type explanation struct {
	outcome string
	pattern *regexp.Regexp // of the detail; or of the whole path, if it begins with "path:"
	path    bool
	reason  string
}

type explanations []*explanation

func readExplanations(file string) (explanations, error) {
	if file == "" {
		return nil, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var out explanations
	for i, line := range strings.Split(string(data), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(line, "\t")
		if len(f) != 3 || f[2] == "" {
			return nil, fmt.Errorf("%s line %d: want outcome, pattern and reason", file, i+1)
		}
		text, path := strings.CutPrefix(f[1], "path:")
		if path {
			text = "^(" + text + ")$"
		}
		pattern, err := regexp.Compile(text)
		if err != nil {
			return nil, fmt.Errorf("%s line %d: %w", file, i+1, err)
		}
		out = append(out, &explanation{outcome: f[0], pattern: pattern, path: path, reason: f[2]})
	}
	return out, nil
}

// explain fills in why, and returns 1 if there is nothing to say.
func (x explanations) explain(r *row) int {
	if r.outcome == equal || r.outcome == neither || r.outcome == absent {
		return 0
	}
	for _, e := range x {
		text := r.detail
		if e.path {
			text = r.unit.path
		}
		if e.outcome == r.outcome && e.pattern.MatchString(text) {
			r.explained = e.reason
			return 0
		}
	}
	return 1
}
