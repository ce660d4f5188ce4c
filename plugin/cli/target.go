package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/application"
	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/pin"
	"github.com/syncgate/syncgate/plugin/policy"
	"github.com/syncgate/syncgate/plugin/registry"
	"github.com/syncgate/syncgate/plugin/settings"
)

// maxStream bounds what is read from standard input, in bytes.
const maxStream = 64 << 20

// target is the application that a command works on.
type target struct {
	dir, policy, environment string
	name, namespace          string
	rendering

	variables   []string           // manifests of ConfigMaps and Secrets
	application string             // manifest that says where and how
	source      application.Source // what it says
	root        string             // of its repository
	entry       settings.Entry     // what it asks for by annotations
}

func (t *target) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&t.policy, "policy", os.Getenv("SYNCGATE_POLICY"), "the operator's policy file (default $SYNCGATE_POLICY)")
	f.StringVar(&t.environment, "environment", "", "environment of the policy (default: the one that policy selects)")
	f.StringVar(&t.name, "name", "", "name of the Argo CD Application or Flux Kustomization")
	f.StringVar(&t.namespace, "namespace", "", "namespace of the destination, for objects that name none")
	f.StringVar(&t.application, "application", "", "manifest of the Argo CD Application or Flux Kustomization, which says where and how; DIR is then the repository's root (default: that of Git)")
	f.StringArrayVar(&t.variables, "variables", nil, "manifests of the ConfigMaps and Secrets from which a Flux Kustomization takes variables")
	t.rendering.flags(c)
}

// arg takes DIR from the arguments.
func (t *target) arg(args []string) {
	t.dir = "."
	if len(args) > 0 {
		t.dir = args[0]
	}
}

func (t *target) app() policy.App {
	if t.application == "" {
		return policy.App{Name: t.name, Namespace: t.namespace}
	}
	a := t.source.App
	if t.name != "" {
		a.Name = t.name
	}
	return a
}

// effective reads the policy. Without one, a command that only signs or shows
// goes by the defaults.
func (t *target) effective(c *cobra.Command, required bool) (policy.Effective, error) {
	if err := t.readApplication(c); err != nil {
		return policy.Effective{}, err
	}
	if t.policy == "" {
		if required {
			return policy.Effective{}, usage(c, "no policy: give --policy FILE or set SYNCGATE_POLICY")
		}
		if err := t.ask(policy.Defaults("").Annotation); err != nil {
			return policy.Effective{}, err
		}
		return policy.Defaults(cmp.Or(t.environment, t.entry.Environment, t.app().Environment)), nil
	}
	p, err := t.loadPolicy()
	if err != nil {
		return policy.Effective{}, err
	}
	if t.environment != "" && !slices.Contains(p.Environments(), t.environment) {
		return policy.Effective{}, usage(c, "--environment %.80q is not one of the policy's: %s", t.environment, strings.Join(p.Environments(), ", "))
	}
	if err := t.ask(p.Annotation()); err != nil {
		return policy.Effective{}, err
	}
	return app.EffectiveAsking(p, t.askedBy(), t.app(), t.environment, t.entry)
}

// missingKeys finds a key set that is not there, with a name that needs no
// quoting.
var missingKeys = regexp.MustCompile(`keys\.file: reading "([\w./-]+)": no such file or directory`)

// loadPolicy reads the policy. Whoever has just written it mends a missing key
// set by making it, not by changing the policy.
func (t *target) loadPolicy() (*policy.Policy, error) {
	p, err := app.LoadPolicy(t.policy)
	var r *app.Refusal
	if errors.As(err, &r) && r.Sentence.Reason() == gate.KeysUnavailable {
		if m := missingKeys.FindStringSubmatch(r.Sentence.Items[0].Text); m != nil {
			file := m[1]
			if !filepath.IsAbs(file) {
				file = filepath.Join(filepath.Dir(t.policy), file)
			}
			r.Sentence.Fix = "make it with: syncgate keys jwks KEY > " + file
		}
	}
	return p, err
}

// settings are those of the application under a policy. "-" reads a stream of
// manifests from standard input instead of rendering a directory.
func (t *target) settings(c *cobra.Command, e policy.Effective) (app.Settings, error) {
	s := app.Settings{Namespace: t.app().Namespace, Effective: e}
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
		var err error
		if s.Render, err = t.options(c); err != nil {
			return s, err
		}
		if err := s.Ask(t.entry); err != nil {
			return s, err
		}
		return s, fromLock(&s.Render, cmp.Or(s.Lock, s.Render.Dir))
	}
	data, err := io.ReadAll(io.LimitReader(c.InOrStdin(), maxStream+1))
	if err != nil {
		return s, fmt.Errorf("reading standard input: %w", err)
	}
	if len(data) > maxStream {
		return s, app.Refuse(gate.RenderFailed, "standard input holds more than %d MiB", maxStream>>20)
	}
	s.Stream = &app.Stream{Data: data, File: "stdin"}
	return s, nil
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
