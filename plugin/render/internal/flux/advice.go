package flux

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Advice is an error with the next step.
type Advice struct {
	Fix string
	Err error
}

func (a *Advice) Error() string { return a.Err.Error() }
func (a *Advice) Unwrap() error { return a.Err }

// unset is what Flux's substitution says of a variable without a value.
var unset = regexp.MustCompile(`variable not set \(strict mode\): "([A-Za-z0-9_]{1,200})"`)

// What kustomize says of what it cannot take for an object, and of one without a
// name.
const (
	noObject = "missing Resource metadata"
	nameless = "missing metadata.name in "
)

// advised adds the next step to what ended the build of dir; all says that it has
// no kustomization, so that every manifest below it is built.
func advised(err error, dir string, all bool) error {
	var a *Advice
	if errors.As(err, &a) {
		return err
	}
	fix := "mend it: syncgate render --application FILE builds the same from a checkout"
	text := err.Error()
	switch m := unset.FindStringSubmatch(text); {
	case m != nil:
		fix = fmt.Sprintf("write $${%s} if it is for a shell, else give it a value in postBuild.substitute or a default (${%s:-...}); or, on an object without gated fields, set %s: disabled", m[1], m[1], substituteKey)
	case strings.Contains(text, nameless):
		fix = "give the object a metadata.name: Flux applies none without, nor one with a generateName only"
	case strings.Contains(text, noObject) && all:
		fix = fmt.Sprintf("%s has no kustomization.yaml, so that Flux applies every YAML file below it: add one that lists the manifests, or leave the others out (.sourceignore)", dir)
	case strings.Contains(text, noObject):
		fix = "list nothing but manifests under resources"
	}
	return &Advice{Fix: fix, Err: err}
}
