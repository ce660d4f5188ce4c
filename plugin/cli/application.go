package cli

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/application"
	"github.com/syncgate/syncgate/plugin/flux/hook"
	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/gitrev"
	"github.com/syncgate/syncgate/plugin/render"
	"github.com/syncgate/syncgate/plugin/settings"
)

// readApplication reads the manifest of --application, if there is one, and
// turns DIR from the repository's root into the application's directory.
func (t *target) readApplication(c *cobra.Command) error {
	if t.application == "" {
		return nil
	}
	if t.dir == "-" {
		return usage(c, "--application says what to render, - that it is rendered already")
	}
	var both []string
	for _, name := range ofApplication {
		if c.Flags().Changed(name) {
			both = append(both, "--"+name)
		}
	}
	if len(both) > 0 {
		return usage(c, "--application says that already: leave out %s", strings.Join(both, ", "))
	}
	source, err := application.Read(t.application)
	if err != nil {
		return app.Refuse(gate.RenderFailed, "%v", err)
	}
	t.source = source
	if t.root = t.dir; t.root == "." || t.root == "" {
		t.root = "."
		if top, err := gitrev.TopLevel(c.Context(), "."); err == nil {
			t.root = top
		}
	}
	t.in(t.root)
	return nil
}

// ask reads the annotations, of which one is for receipts.
func (t *target) ask(receipts string) error {
	others := []string{receipts}
	if t.source.Flux() != nil {
		others = append(others, hook.SourceAnnotation, hook.PathAnnotation)
	}
	t.entry = settings.Parse(t.source.Annotations, others...)
	if t.entry.Refused != "" {
		return app.NotAsked(t.askedBy(), "%s", t.entry.Refused)
	}
	return nil
}

// askedBy is the kind of the object whose annotations count, "" if there is none.
func (t *target) askedBy() string {
	switch {
	case t.application == "":
		return ""
	case t.source.Flux() != nil:
		return app.Kustomization
	}
	return app.Application
}

// in moves the target to a directory: the application's, or with --application
// a checkout of its repository.
func (t *target) in(dir string) {
	t.dir, t.root = dir, dir
	if t.application != "" {
		t.dir = filepath.Join(dir, filepath.FromSlash(t.source.App.Path))
	}
}

// sourceOptions are what the manifest says about rendering in the repository
// at t.root.
func (t *target) sourceOptions() (render.Options, error) {
	o, err := t.source.Options(t.root)
	if err != nil {
		return o, app.Refuse(gate.RenderFailed, "%v", err)
	}
	if k := t.source.Flux(); k != nil && len(t.variables) > 0 {
		if o.Flux.Look, err = application.FromFiles(t.variables, k.Namespace()); err != nil {
			return o, app.Refuse(gate.RenderFailed, "%v", err)
		}
	}
	return o, nil
}
