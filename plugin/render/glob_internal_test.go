package render

import "testing"

func TestGlobsAreThoseOfArgoCD(t *testing.T) {
	for _, tc := range []struct {
		pattern, name string
		want          bool
	}{
		{"*.yaml", "a.yaml", true},
		{"*.yaml", "sub/a.yaml", true}, // no separators
		{"*.yaml", "a.yml", false},
		{"{a,b}.yaml", "b.yaml", true},
		{"{a,b}.yaml", "c.yaml", false},
		{"{a,{b,c}x}.yaml", "cx.yaml", true},
		{"a,b", "a,b", true},
		{"a.yaml", "aXyaml", false},
		{"?.yaml", "a.yaml", true},
		{"?.yaml", "ab.yaml", false},
		{"[ab].yaml", "b.yaml", true},
		{"[!ab].yaml", "b.yaml", false},
		{"[a-c].yaml", "b.yaml", true},
		{`\*.yaml`, "*.yaml", true},
		{`\*.yaml`, "a.yaml", false},
		{"a", "xax", false},
		{"**/x/**", "a/x/b", true},
		{"(a|b)+", "a", false},
	} {
		re, err := compileGlob(tc.pattern)
		if err != nil {
			t.Errorf("%q: %v", tc.pattern, err)
			continue
		}
		if got := re.MatchString(tc.name); got != tc.want {
			t.Errorf("%q on %q: got %v, want %v", tc.pattern, tc.name, got, tc.want)
		}
	}
	for _, pattern := range []string{"{a", "a}", "[a", "[]", `a\`, "[z-a]"} {
		if _, err := compileGlob(pattern); err == nil {
			t.Errorf("%q: got no error", pattern)
		}
	}
}
