package cli

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/application"
	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/lock"
	"github.com/syncgate/syncgate/plugin/render"
)

// commandVariable is the operator's command to render with, also of the Argo
// CD plugin.
const commandVariable = "SYNCGATE_RENDER_COMMAND"

// rendering is what flags say about how to render.
type rendering struct {
	asked   render.Options
	command string
}

// flags defines them. What an --application says too is in ofApplication.
func (r *rendering) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&r.asked.Renderer, "renderer", "", "kustomize, helm, directory or command (default: command if there is one, else by the files in DIR)")
	f.StringVar(&r.command, "render-command", os.Getenv(commandVariable), `command to render with, as a JSON array such as '["sh","-c","jsonnet app.jsonnet"]' (default $`+commandVariable+`)`)
	f.BoolVar(&r.asked.Recurse, "recurse", false, "directory: descend into folders")
	f.StringVar(&r.asked.Include, "include", "", "directory: only files that match, such as '{a,b}*.yaml'")
	f.StringVar(&r.asked.Exclude, "exclude", "", "directory: no files that match")
	f.StringVar(&r.asked.ReleaseName, "release-name", "", "helm: name of the release (default: the application's, without the namespace in front)")
	f.StringArrayVar(&r.asked.Helm.ValueFiles, "values", nil, "helm: values file, relative to DIR, or with a leading / to the repository")
	f.BoolVar(&r.asked.Helm.IgnoreMissingValueFiles, "ignore-missing-value-files", false, "helm: pass over values files that do not exist")
	f.StringArrayVar(&r.asked.Helm.Set, "set", nil, "helm: a value, such as image.tag=1.5")
	f.StringArrayVar(&r.asked.Helm.SetString, "set-string", nil, "helm: a value that is text whatever it looks like")
	f.StringArrayVar(&r.asked.Helm.SetFile, "set-file", nil, "helm: a value that is the content of a file, named as for --values")
	f.BoolVar(&r.asked.Helm.SkipCRDs, "skip-crds", false, "helm: leave out the folder crds")
	f.BoolVar(&r.asked.Helm.SkipTests, "skip-tests", false, "helm: leave out the chart's tests")
	f.BoolVar(&r.asked.Helm.SkipSchemaValidation, "skip-schema-validation", false, "helm: do not check values against values.schema.json")
	f.StringVar(&r.asked.KubeVersion, "kube-version", "", "helm: Kubernetes version to render for (default: that of the lock, else "+render.DefaultKubeVersion+")")
	f.StringSliceVar(&r.asked.APIVersions, "api-versions", nil, "helm: API versions that the cluster has beside the built-in ones (default: those of the lock)")
}

// ofApplication are the flags that exclude --application, whose manifest
// answers them.
var ofApplication = []string{
	"namespace", "renderer", "recurse", "include", "exclude", "release-name", "values", "ignore-missing-value-files",
	"set", "set-string", "set-file", "skip-crds", "skip-tests", "skip-schema-validation",
}

// options say how to render t.dir.
func (t *target) options(c *cobra.Command) (render.Options, error) {
	o := t.asked
	command, err := render.ParseCommand(t.command)
	if err != nil {
		return o, usage(c, "%v", err)
	}
	a := t.app()
	if t.application != "" {
		kube, apis := o.KubeVersion, o.APIVersions
		if o, err = t.sourceOptions(); err != nil {
			return o, err
		}
		if kube != "" {
			o.KubeVersion = kube
		}
		if len(apis) > 0 {
			o.APIVersions = apis
		}
	} else {
		o.Namespace = a.Namespace
		if o.ReleaseName == "" {
			o.ReleaseName = application.ReleaseName(a.Name)
		}
	}
	o.Dir, o.Command = t.dir, command
	return o, nil
}

// fromLock takes what nobody said from what was signed for, in the lock at a
// directory, so that a laptop renders for the cluster's version.
func fromLock(o *render.Options, at string) error {
	if o.KubeVersion != "" && len(o.APIVersions) > 0 {
		return nil
	}
	in, err := lock.ReadRenderInputs(at)
	if err != nil {
		return app.Refuse(gate.RenderFailed, "%v", err)
	}
	if o.KubeVersion == "" {
		o.KubeVersion = in.KubeVersion
	}
	if len(o.APIVersions) == 0 {
		o.APIVersions = in.APIVersions
	}
	return nil
}
