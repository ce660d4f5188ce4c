package cli

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/pin"
	"github.com/syncgate/syncgate/plugin/policy"
	"github.com/syncgate/syncgate/plugin/registry"
	"github.com/syncgate/syncgate/plugin/render"
)

// maxStream bounds what is read from standard input, in bytes.
const maxStream = 64 << 20

// target is the application that a command works on.
type target struct {
	dir, policy, environment  string
	name, namespace           string
	renderer, include, except string
	recurse                   bool
}

func (t *target) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&t.policy, "policy", os.Getenv("SYNCGATE_POLICY"), "the operator's policy file (default $SYNCGATE_POLICY)")
	f.StringVar(&t.environment, "environment", "", "environment of the policy (default: the one that policy selects)")
	f.StringVar(&t.name, "name", "", "name of the Argo CD Application or Flux Kustomization")
	f.StringVar(&t.namespace, "namespace", "", "namespace of the destination, for objects that name none")
	t.renderFlags(c)
}

func (t *target) renderFlags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&t.renderer, "renderer", "", "kustomize or directory (default: by the files in DIR)")
	f.BoolVar(&t.recurse, "recurse", false, "directory: descend into folders")
	f.StringVar(&t.include, "include", "", "directory: only files that match, such as '{a,b}*.yaml'")
	f.StringVar(&t.except, "exclude", "", "directory: no files that match")
}

// arg takes DIR from the arguments.
func (t *target) arg(args []string) {
	t.dir = "."
	if len(args) > 0 {
		t.dir = args[0]
	}
}

func (t *target) app() policy.App {
	return policy.App{Name: t.name, Namespace: t.namespace}
}

// effective reads the policy. Without one, a command that only signs or shows
// goes by the defaults.
func (t *target) effective(c *cobra.Command, required bool) (policy.Effective, error) {
	if t.policy == "" {
		if required {
			return policy.Effective{}, usage(c, "no policy: give --policy FILE or set SYNCGATE_POLICY")
		}
		return policy.Defaults(t.environment), nil
	}
	p, err := app.LoadPolicy(t.policy)
	if err != nil {
		return policy.Effective{}, err
	}
	return app.Effective(p, t.app(), t.environment)
}

// settings are those of the application under a policy. "-" reads a stream of
// manifests from standard input instead of rendering a directory.
func (t *target) settings(c *cobra.Command, e policy.Effective) (app.Settings, error) {
	s := app.Settings{
		Namespace: t.namespace,
		Effective: e,
		Render: render.Options{
			Dir: t.dir, Renderer: t.renderer, Recurse: t.recurse, Include: t.include, Exclude: t.except, Namespace: t.namespace,
		},
	}
	if e.Pins == policy.Registry {
		r, err := newRegistry(e)
		if err != nil {
			return s, err
		}
		s.Registry = r
	}
	if t.dir != "-" {
		if st, err := os.Stat(t.dir); err != nil || !st.IsDir() {
			return s, usage(c, "%q is not a directory", t.dir)
		}
		return s, nil
	}
	data, err := io.ReadAll(io.LimitReader(c.InOrStdin(), maxStream+1))
	if err != nil {
		return s, fmt.Errorf("reading standard input: %w", err)
	}
	if len(data) > maxStream {
		return s, app.Refuse(gate.RenderFailed, "standard input holds more than %d MiB", maxStream>>20)
	}
	s.Stream, err = app.ReadStream(data, "stdin")
	return s, err
}

func newRegistry(e policy.Effective) (pin.Resolver, error) {
	r, err := registry.New(registry.Options{Mirrors: e.Mirrors})
	if err != nil {
		return nil, app.Refuse(gate.PolicyInvalid, "images.mirrors: %v", err)
	}
	return r, nil
}

// readBounded reads a file of at most limit bytes.
func readBounded(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s: more than %d bytes", path, limit)
	}
	return data, nil
}

func now() int64 { return time.Now().Unix() }
