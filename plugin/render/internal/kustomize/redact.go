package kustomize

import (
	"errors"
	"regexp"
)

// Messages of kustomize quote what they stumbled on, which may be a secret's
// value, and everybody who may look at an application reads its sync error.
var quoted = []struct{ pattern, by string }{
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
