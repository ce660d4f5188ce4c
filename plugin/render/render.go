// Package render turns an application's directory into Kubernetes objects:
// with kustomize if it is a kustomization, with Helm if it is a chart, with
// the operator's command if there is one, else by reading its files, as the
// native sources of Argo CD and Flux do (docs/argocd.md, "Parity"). It reads
// one repository and no network, and what it cannot render it refuses.
package render

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/syncgate/syncgate/plugin/internal/manifest"
	"github.com/syncgate/syncgate/plugin/render/internal/command"
	"github.com/syncgate/syncgate/plugin/render/internal/flux"
	"github.com/syncgate/syncgate/plugin/render/internal/helm"
	"github.com/syncgate/syncgate/plugin/render/internal/kustomize"
	"github.com/syncgate/syncgate/plugin/render/internal/repo"
)

// The renderers that Options may name.
const (
	Kustomize = "kustomize"
	Helm      = "helm"
	Directory = "directory"
	Command   = "command"
	Flux      = "flux"
)

// DefaultKubeVersion is the Kubernetes version that charts are rendered for
// when nobody says another. It is a constant, and not that of a library, so
// that an update of this program leaves digests alone.
const DefaultKubeVersion = "1.35.0"

// Options say what to render. Only Dir is required.
type Options struct {
	// Dir is the application's directory.
	Dir string

	// Renderer is one of the constants; empty means Command if there is one,
	// else by the files in Dir: a kustomization, else a chart, else plain files.
	Renderer string

	// Command is the program, with its arguments, that the operator configured
	// to render with. It never comes from the repository or its owner.
	Command []string

	// Temp is a directory for what Command leaves about, which belongs to this
	// render alone; empty means that of the system.
	Temp string

	// Root is the repository that nothing may leave; empty means the nearest
	// directory at or above Dir that holds .git, or Dir if there is none. A
	// front end that knows the root says so: the copy of the repository that
	// Argo CD gives to a plugin usually comes without .git.
	Root string

	// Recurse, Include and Exclude are those of Argo CD's directory source:
	// descend into folders (default no), and globs over the path relative to
	// Dir, in which * matches any characters, '/' too, and {a,b} either.
	Recurse          bool
	Include, Exclude string

	// For the Helm renderer; the others ignore them. An empty KubeVersion is
	// DefaultKubeVersion, one without a patch level gets .0, an empty Namespace "default"; ReleaseName is required.
	Namespace, ReleaseName, KubeVersion string
	APIVersions                         []string
	Helm                                HelmOptions

	// For the renderer Flux, which it chooses; the others ignore it.
	Flux *FluxOptions
}

// HelmOptions are those of Argo CD's Helm source, with its precedence: value
// files in their order, then Values, then single settings.
type HelmOptions struct {
	ValueFiles              []string // relative to Dir; with a leading "/" to Root
	IgnoreMissingValueFiles bool
	Values                  map[string]any
	Set, SetString, SetFile []string // in Helm's syntax: "a.b=c,d[0]=e"

	SkipCRDs, SkipTests, SkipSchemaValidation bool
}

// Result is what was rendered. An empty one is not an error here: the front
// end refuses it as EmptyRender.
type Result struct {
	Objects  []manifest.Object
	Renderer string   // which one ran, with its version: "kustomize v0.21.2" or "directory"
	Warnings []string // sorted, a line each

	// What a chart was rendered for, beside the repository; empty for the
	// other renderers.
	KubeVersion string
	APIVersions []string // beyond those that Helm assumes

	// Fill substitutes anew, with data for the ConfigMap FluxOptions.Own: what
	// Flux would make of it. Until then its variables stand for themselves. Nil
	// if there is no such ConfigMap.
	Fill func(ctx context.Context, data map[string]string) ([]manifest.Object, error)
}

// Error is a failure of the application's manifests, the class RENDER FAILED
// of docs/spec/refusal.md. Its text is one line, holds no absolute path of
// this machine and does not change from run to run. It wraps the context's
// error if that is what ended the render.
type Error struct {
	Renderer string // empty if none was chosen
	File     string // of a kustomize build, relative to Root; of a directory, the *manifest.Error in Err says it
	Fix      string // the next step, if more is known of it than Err says; else empty
	Err      error
}

func (e *Error) Error() string {
	text := e.Err.Error()
	if e.File != "" {
		text = e.File + ": " + text
	}
	if e.Renderer != "" {
		text = e.Renderer + ": " + text
	}
	return oneLine(text)
}

func (e *Error) Unwrap() error { return e.Err }

// failed says what the renderer could not do, and where.
func failed(renderer string, err error) *Error {
	out := &Error{Renderer: renderer, Err: err}
	var inFile *kustomize.FileError
	if errors.As(err, &inFile) {
		out.File, out.Err = inFile.File, inFile.Err
	}
	var advice *flux.Advice
	if errors.As(err, &advice) {
		out.Fix = advice.Fix
	}
	return out
}

// Render renders o.Dir. Every error but a context's own is an *Error.
func Render(ctx context.Context, o Options) (Result, error) {
	renderer, result, err := render(ctx, o)
	if err == nil {
		return result, nil
	}
	return Result{}, failed(renderer, err)
}

func render(ctx context.Context, o Options) (string, Result, error) {
	if o.Dir == "" {
		return "", Result{}, errors.New("no directory to render")
	}
	root := o.Root
	if root == "" {
		top, err := repo.TopLevel(o.Dir)
		if err != nil {
			return "", Result{}, err
		}
		root = top
	}
	tree, err := repo.Open(ctx, root)
	if err != nil {
		return "", Result{}, err
	}
	defer tree.Close()
	dir, err := tree.Rel(o.Dir)
	if err != nil {
		return "", Result{}, fmt.Errorf("the application's directory %q %w", filepath.Base(o.Dir), err)
	}
	renderer := o.Renderer
	switch {
	case renderer != "":
	case o.Flux != nil:
		renderer = Flux
	case len(o.Command) > 0:
		renderer = Command
	default:
		renderer = detect(tree, dir)
	}
	switch renderer {
	case Kustomize:
		if err := enter(ctx); err != nil {
			return renderer, Result{}, err
		}
		defer leave()
		objects, warnings, err := kustomize.Build(ctx, tree, dir, kustomize.Options{})
		return renderer, Result{Objects: objects, Renderer: Kustomize + " " + kustomize.Version, Warnings: warnings}, err
	case Helm:
		if err := enter(ctx); err != nil {
			return renderer, Result{}, err
		}
		defer leave()
		result, err := chart(ctx, tree, dir, o)
		return renderer, result, err
	case Flux:
		result, err := kustomization(ctx, tree, dir, o)
		return renderer, result, err
	case Directory:
		objects, warnings, err := directory(tree, dir, o)
		return renderer, Result{Objects: objects, Renderer: Directory, Warnings: warnings}, err
	case Command:
		if len(o.Command) == 0 {
			return renderer, Result{}, errors.New("the operator has configured no command to render with")
		}
		abs, err := repo.Real(o.Dir)
		if err != nil {
			return renderer, Result{}, err
		}
		objects, err := command.Run(ctx, o.Command, abs, o.Temp)
		return renderer, Result{Objects: objects, Renderer: Command}, err
	default:
		return "", Result{}, fmt.Errorf("unknown renderer %q: want %q, %q, %q or %q", renderer, Kustomize, Helm, Directory, Command)
	}
}

// running admits one of kustomize and Helm at a time: both write warnings
// where only the process has a say, and that is borrowed while they run.
var running = make(chan struct{}, 1)

func enter(ctx context.Context) error {
	select {
	case running <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func leave() { <-running }

func chart(ctx context.Context, tree *repo.Tree, dir string, o Options) (Result, error) {
	s := helm.Settings{
		ReleaseName: o.ReleaseName, Namespace: o.Namespace, KubeVersion: o.KubeVersion, APIVersions: o.APIVersions,
		ValueFiles: o.Helm.ValueFiles, IgnoreMissingValueFiles: o.Helm.IgnoreMissingValueFiles, Values: o.Helm.Values,
		Set: o.Helm.Set, SetString: o.Helm.SetString, SetFile: o.Helm.SetFile,
		SkipCRDs: o.Helm.SkipCRDs, SkipTests: o.Helm.SkipTests, SkipSchemaValidation: o.Helm.SkipSchemaValidation,
	}
	s.KubeVersion = FullKubeVersion(cmp.Or(s.KubeVersion, DefaultKubeVersion))
	objects, warnings, err := helm.Build(ctx, tree, dir, s)
	slices.Sort(warnings)
	return Result{
		Objects: objects, Renderer: Helm + " " + helm.Version, Warnings: slices.Compact(warnings),
		KubeVersion: s.KubeVersion, APIVersions: s.APIVersions,
	}, err
}

// IsTest reports whether an object of the result is one of a chart's tests, which
// HelmOptions.SkipTests leaves out.
func (r Result) IsTest(o manifest.Object) bool {
	return strings.HasPrefix(r.Renderer, Helm+" ") && helm.IsTest(o)
}

// FullKubeVersion adds the patch level that a version lacks. Argo CD before 3.4
// tells a plugin "1.35", of which Helm 3, its own renderer, makes v1.35.0.
func FullKubeVersion(version string) string {
	if minorVersion.MatchString(version) {
		return version + ".0"
	}
	return version
}

var minorVersion = regexp.MustCompile(`^v?[0-9]+\.[0-9]+$`)

// ParseCommand reads the setting of the operator's command: a JSON array of
// the program and its arguments, such as ["sh","-c","jsonnet app.jsonnet"]. An
// empty text is no command.
func ParseCommand(text string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	var out []string
	if err := json.Unmarshal([]byte(text), &out); err != nil || len(out) == 0 || out[0] == "" {
		return nil, fmt.Errorf("render command is %.80q: want a JSON array of a program and its arguments", text)
	}
	return out, nil
}

func detect(tree *repo.Tree, dir string) string {
	exists := func(name string) bool { return tree.IsFile(path.Join(dir, name)) }
	switch {
	case slices.ContainsFunc(kustomize.FileNames(), exists):
		return Kustomize
	case exists(helm.FileName):
		return Helm
	default:
		return Directory
	}
}
