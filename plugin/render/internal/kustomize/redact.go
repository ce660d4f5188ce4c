package kustomize

import (
	"errors"
	"regexp"
)

// Messages of kustomize quote what they stumbled on, which may be a secret's
// value, and everybody who may look at an application reads its sync error. They
// also say what it tried in vain, which is left out.
var quoted = []struct{ pattern, by string }{
	// What it says of a resource that it takes for a file and then for a folder.
	{`"[^"\n]*" is not a regular file': recursed accumulation of path '[^'\n]*': accumulating resources: `, ""},
	{`accumulation err='accumulating resources from ('[^'\n]*': )`, "$1"},
	{`': must build at directory: '[^'\n]*': file is not directory`, ""},
	{`in object \{\{([^\s{}]+) ([^\s{}]+)\} \{\{[^{}]*\} map\[[^\]]*\] map\[[^\]]*\]\}\}`, "in a $2 of $1"},
	{`(?s)node contents:.*`, "(its contents are not shown)"},
	{`literal sources \[[^\]]*\]: invalid literal source .*?, expected key=value`, "literals: one is not of the form key=value"},
	{`invalid literal source .*?, expected key=value`, "one literal is not of the form key=value"},
	{`(?s)(env source files|file sources): \[.*?\]: missing key name.*`, "$1: a line has no key"},
	{`(?s)unable to parse SM or JSON patch from \[.*\]`, "a patch is neither a strategic merge nor a JSON patch"},
	{`(?s)trouble configuring builtin (\w+) with config: .*?: ([^\n]*)$`, "configuring $1: $2"},
}

var redactions = compileQuoted()

func compileQuoted() []*regexp.Regexp {
	out := make([]*regexp.Regexp, len(quoted))
	for i, q := range quoted {
		out[i] = regexp.MustCompile(q.pattern)
	}
	return out
}

// redacted returns the error without what it quotes from the manifests.
func redacted(err error) error {
	text := err.Error()
	for i, r := range redactions {
		text = r.ReplaceAllString(text, quoted[i].by)
	}
	if text == err.Error() {
		return err
	}
	return errors.New(text)
}
