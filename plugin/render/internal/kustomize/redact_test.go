package kustomize

import (
	"errors"
	"strings"
	"testing"
)

func TestMessagesQuoteNoValues(t *testing.T) {
	for _, text := range []string{
		"loading KV pairs: literal sources [user=a hunter2]: invalid literal source hunter2, expected key=value",
		"considering field 'metadata/annotations' of object Secret.v1.[noGrp]/s.[noNs]: wrong node kind: expected MappingNode but got ScalarNode: node contents:\nhunter2\n",
		"trouble configuring builtin PatchTransformer with config: `\npatch: '{stringData: {p: hunter2}}'\n`: unable to parse SM or JSON patch from [{stringData: {p: hunter2}}]",
	} {
		got := redacted(errors.New(text)).Error()
		if strings.Contains(got, "hunter2") || got == "" {
			t.Errorf("got %q", got)
		}
	}
	const nested = `accumulating resources: accumulation err='accumulating resources from '../base': "base" is not a regular file': recursed accumulation of path '/base': accumulating resources: accumulation err='accumulating resources from 'notes.yaml': missing Resource metadata': must build at directory: '/base/notes.yaml': file is not directory`
	if got, want := redacted(errors.New(nested)).Error(), "accumulating resources: '../base': 'notes.yaml': missing Resource metadata"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	plain := errors.New(`resources: "absent.yaml" does not exist`)
	if redacted(plain) != plain {
		t.Error("changed a message that quotes nothing")
	}
}
