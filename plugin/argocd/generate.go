package argocd

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/application"
	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/offswitch"
	"github.com/syncgate/syncgate/plugin/pin"
	"github.com/syncgate/syncgate/plugin/policy"
	"github.com/syncgate/syncgate/plugin/registry"
	"github.com/syncgate/syncgate/plugin/render"
)

// DefaultPolicy is where the sidecar mounts the operator's policy.
const DefaultPolicy = "/etc/syncgate/policy.yaml"

// DefaultTimeout is below the 60 s after which Argo CD kills a plugin without
// a reason that anybody could read.
const DefaultTimeout = 45 * time.Second

// Request is one call of the plugin.
type Request struct {
	Dir         string                   // the application's directory
	Getenv      func(name string) string // what Argo CD and the sidecar's image set
	Environ     []string                 // the same, whole
	Policy      string                   // overrides SYNCGATE_POLICY
	Off         string                   // directory of off-switches; overrides SYNCGATE_OFF
	Apps        string                   // directory of per-app settings; overrides SYNCGATE_APPS
	Environment string                   // asked for by an operator, not by the application
	Now         int64                    // seconds since the epoch
}

// Generate writes the application's manifests to stdout, one JSON document a
// line, and what Warn mode found to warnings. It writes nothing at all unless
// every object may be synced. The error is an *app.Refusal.
func Generate(ctx context.Context, r Request, stdout, warnings io.Writer) error {
	limit := DefaultTimeout
	if s := r.Getenv("SYNCGATE_TIMEOUT"); s != "" {
		d, err := time.ParseDuration(s)
		if err != nil || d <= 0 {
			return app.Refuse(gate.PolicyInvalid, "SYNCGATE_TIMEOUT is %q: want a duration such as 45s", s)
		}
		limit = d
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()

	type answer struct {
		out     bytes.Buffer
		warning string
		err     error
	}
	done := make(chan *answer, 1)
	var waiting atomic.Bool
	go func() { // a renderer that does not listen to ctx must not hold the answer back
		a := &answer{}
		defer func() {
			if p := recover(); p != nil {
				a.err = app.Refuse(gate.RenderFailed, "the gate met a case that it does not know (%v): please report it", p)
			}
			done <- a
		}()
		a.warning, a.err = generate(ctx, r, &waiting, &a.out)
	}()
	select {
	case a := <-done:
		if a.err != nil {
			return refusal(a.err, limit)
		}
		if a.warning != "" {
			fmt.Fprintln(warnings, a.warning)
		}
		if _, err := stdout.Write(a.out.Bytes()); err != nil {
			return app.Refuse(gate.RenderFailed, "writing manifests: %v", err)
		}
		return nil
	case <-ctx.Done():
		if waiting.Load() {
			return busy()
		}
		return refusal(ctx.Err(), limit)
	}
}

// refusal turns whatever went wrong into a message of one of the classes.
func refusal(err error, limit time.Duration) *app.Refusal {
	var r *app.Refusal
	switch {
	case errors.As(err, &r):
		return r
	case errors.Is(err, context.DeadlineExceeded):
		r = app.Refuse(gate.RenderFailed, "not ready within %s", limit)
		r.Sentence.Fix = "make the application smaller, or raise SYNCGATE_TIMEOUT together with Argo CD's repo server timeout; retrying may help"
		return r
	case errors.Is(err, context.Canceled):
		r = app.Refuse(gate.RenderFailed, "told to stop before it was ready")
		r.Sentence.Fix = "nothing, it is tried again; if it happens often, see whether Argo CD's repo server timeout is above SYNCGATE_TIMEOUT"
		return r
	}
	return app.Refuse(gate.RenderFailed, "%v", err)
}

func generate(ctx context.Context, r Request, waiting *atomic.Bool, out *bytes.Buffer) (warning string, err error) {
	path := r.Policy
	if path == "" {
		path = r.Getenv("SYNCGATE_POLICY")
	}
	if path == "" {
		path = DefaultPolicy
	}
	p, err := app.LoadPolicy(path)
	if err != nil {
		return "", err
	}
	who := r.application()
	asked, err := r.asked(who.Name)
	if err != nil {
		return "", err
	}
	e, err := app.EffectiveAsking(p, app.Application, who, r.Environment, asked)
	if err != nil {
		return "", err
	}
	s := app.Settings{Namespace: who.Namespace, Effective: e, Keep: app.KeepBytes}
	if s.Render, err = r.render(); err != nil {
		return "", err
	}
	if err := s.Ask(asked); err != nil {
		return "", err
	}
	if s.Registry, err = resolver(e); err != nil {
		return "", err
	}
	if err := r.overridden(who.Name); err != nil {
		return "", err
	}
	slot, err := r.slot(ctx, waiting)
	if err != nil {
		return "", err
	}
	defer slot.Free()
	s.Render.Temp = slot.Dir
	b, err := app.New(ctx, s)
	if err != nil {
		return "", err
	}
	v := b.Evaluate(e, r.Now)
	off := false
	if !v.Allowed() && !e.Warn {
		sentence := v.Sentence()
		if off = r.off(&sentence, who.Name); !off {
			return "", &app.Refusal{Sentence: sentence}
		}
	}
	if err := b.Encode(out); err != nil {
		return "", app.Refuse(gate.RenderFailed, "encoding manifests: %v", err)
	}
	if !v.Allowed() && !off { // Argo CD shows nobody what a plugin that succeeds says
		return v.Sentence().String(), nil
	}
	return "", nil
}

// off reports whether an administrator lets this application's refusal pass for
// a while. Switches that cannot be read let nothing pass, and the refusal says so.
func (r Request) off(s *gate.Sentence, name string) bool {
	dir := cmp.Or(r.Off, r.Getenv("SYNCGATE_OFF"))
	if dir == "" || !app.MaySwitchOff(*s) {
		return false
	}
	set, err := offswitch.Load(dir, time.Unix(r.Now, 0))
	if err != nil {
		app.NoSwitchCounts(s, err)
		return false
	}
	_, off := set.App(name, r.Now)
	return off
}

// application is what policy may match on.
func (r Request) application() policy.App {
	a := policy.App{
		Name:       r.Getenv("ARGOCD_APP_NAME"),
		Namespace:  r.Getenv("ARGOCD_APP_NAMESPACE"),
		Path:       r.Getenv("ARGOCD_APP_SOURCE_PATH"),
		Project:    r.Getenv("ARGOCD_APP_PROJECT_NAME"),
		Repository: r.Getenv("ARGOCD_APP_SOURCE_REPO_URL"),
		Env:        map[string]string{},
	}
	for _, kv := range r.Environ {
		if name, value, ok := strings.Cut(kv, "="); ok {
			if name, ok := strings.CutPrefix(name, "ARGOCD_ENV_"); ok {
				a.Env[name] = value
			}
		}
	}
	a.Environment = a.Env[application.EnvironmentVariable]
	return a
}

// render reads the parameters that say how to render. Nothing here relaxes:
// whatever is rendered is judged.
func (r Request) render() (render.Options, error) {
	o := render.Options{
		Dir:         r.Dir,
		Root:        root(r.Dir, r.Getenv("ARGOCD_APP_SOURCE_PATH")),
		Namespace:   r.Getenv("ARGOCD_APP_NAMESPACE"),
		ReleaseName: application.ReleaseName(r.Getenv("ARGOCD_APP_NAME")),
		KubeVersion: r.Getenv("KUBE_VERSION"),
	}
	var err error
	if o.Command, err = render.ParseCommand(r.Getenv("SYNCGATE_RENDER_COMMAND")); err != nil {
		return o, app.Refuse(gate.PolicyInvalid, "SYNCGATE_RENDER_COMMAND: %v", err)
	}
	if v := r.Getenv("KUBE_API_VERSIONS"); v != "" {
		o.APIVersions = strings.Split(v, ",")
	}
	text := r.Getenv("ARGOCD_APP_PARAMETERS")
	if text == "" {
		return o, nil
	}
	var params []application.Parameter
	if err := json.Unmarshal([]byte(text), &params); err != nil {
		return o, app.Refuse(gate.RenderFailed, "reading plugin.parameters of the Application: %v", err)
	}
	if err := application.Parameters(params, &o); err != nil {
		return o, app.Refuse(gate.RenderFailed, "plugin.parameters of the Application: %v", err)
	}
	return o, nil
}

// root is the repository that the application's directory is in: Argo CD runs
// a plugin in ROOT/PATH, usually without .git.
func root(dir, sourcePath string) string {
	abs, err := filepath.Abs(dir)
	if err != nil || sourcePath == "" {
		return ""
	}
	clean := filepath.Clean("/" + sourcePath)
	if clean == "/" {
		return abs
	}
	if r, ok := strings.CutSuffix(abs, clean); ok && r != "" {
		return r
	}
	return ""
}

func resolver(e policy.Effective) (pin.Resolver, error) {
	if e.Pins != policy.Registry {
		return nil, nil
	}
	r, err := registry.New(registry.Options{Mirrors: e.Mirrors})
	if err != nil {
		return nil, app.Refuse(gate.PolicyInvalid, "images.mirrors: %v", err)
	}
	return r, nil
}
