package application

import (
	"encoding/json"
	"strings"

	"github.com/argoproj/argo-cd/v2/pkg/apis/application"

	"github.com/syncgate/syncgate/plugin/internal/manifest"
	"github.com/syncgate/syncgate/plugin/render"
	"github.com/syncgate/syncgate/plugin/settings"
)

// controllerNamespace is where Argo CD runs unless somebody moved it: an
// Application there is called by its bare name.
const controllerNamespace = "argocd"

// pluginName is that of manifests/argocd/plugin.yaml.
const pluginName = "syncgate"

const noPlugin = "has no counterpart in the plugin: put it into the repository"

func isApplication(o manifest.Object) bool {
	return o.Group() == application.Group && o.Kind() == application.ApplicationKind
}

// argocd reads the spec of an Application.
func (s *Source) argocd(o manifest.Object, spec *fields) {
	s.App.Name = o.Name()
	if ns := o.Namespace(); ns != "" && ns != controllerNamespace {
		s.App.Name = ns + "_" + o.Name()
	}
	s.render.ReleaseName = o.Name()
	s.Annotations = annotations(o)
	destination := spec.object("destination")
	s.App.Namespace = destination.text("namespace")
	s.render.Namespace = s.App.Namespace
	destination.skip("server", "name")
	destination.done()
	s.App.Project = spec.text("project")
	spec.refuse("renders elsewhere", "sourceHydrator")
	spec.skip("syncPolicy", "ignoreDifferences", "info", "revisionHistoryLimit")
	source, list := spec.object("source"), spec.objects("sources")
	spec.done()
	switch {
	case source == nil && len(list) == 1:
		source = list[0]
	case source == nil || len(list) > 0:
		spec.bad.add("%s: want one source; of several each is rendered alone", spec.at("source"))
		return
	}
	s.source(source)
}

// annotations returns those of the gate's that have a text.
func annotations(o manifest.Object) map[string]string {
	metadata, _ := o.Tree["metadata"].(map[string]any)
	all, _ := metadata["annotations"].(map[string]any)
	out := map[string]string{}
	for key, v := range all {
		if text, ok := v.(string); ok && strings.HasPrefix(key, settings.Prefix) {
			out[key] = text
		}
	}
	return out
}

func (s *Source) source(f *fields) {
	s.App.Repository = f.text("repoURL")
	s.App.Path = f.text("path")
	f.refuse("has no directory in Git to keep a lock in", "chart")
	f.refuse("is for other sources, which are not seen here", "ref")
	f.skip("targetRevision", "name")
	if s.App.Path == "" {
		s.App.Path = "."
	}
	var blocks []string
	for _, name := range []string{"kustomize", "helm", "directory", "plugin"} {
		if f.has(name) {
			blocks = append(blocks, name)
		}
	}
	if len(blocks) > 1 {
		f.bad.add("%s has %s, which exclude each other", f.path, strings.Join(blocks, " and "))
	} else if len(blocks) == 1 && blocks[0] != "plugin" {
		s.render.Renderer = map[string]string{"kustomize": render.Kustomize, "helm": render.Helm, "directory": render.Directory}[blocks[0]]
	}
	s.kustomize(f.object("kustomize"))
	s.helm(f.object("helm"))
	s.directory(f.object("directory"))
	s.plugin(f.object("plugin"))
	f.done()
}

func (s *Source) kustomize(f *fields) {
	f.refuse(noPlugin, "namePrefix", "nameSuffix", "namespace", "images", "replicas", "commonLabels", "commonAnnotations", "patches", "components", "version", "kubeVersion", "apiVersions")
	// These only say how to do what is refused above.
	f.skip("forceCommonLabels", "forceCommonAnnotations", "labelWithoutSelector", "labelIncludeTemplates", "commonAnnotationsEnvsubst", "ignoreMissingComponents")
	f.done()
}

func (s *Source) directory(f *fields) {
	s.render.Recurse = f.flag("recurse")
	s.render.Include, s.render.Exclude = f.text("include"), f.text("exclude")
	jsonnet := f.object("jsonnet")
	jsonnet.refuse("is Jsonnet, which is not rendered", "extVars", "tlas", "libs")
	jsonnet.done()
	f.done()
}

func (s *Source) helm(f *fields) {
	o := &s.render
	if name := f.text("releaseName"); name != "" {
		o.ReleaseName = name
	}
	if ns := f.text("namespace"); ns != "" {
		o.Namespace = ns
	}
	o.KubeVersion, o.APIVersions = f.text("kubeVersion"), f.texts("apiVersions")
	o.Helm.ValueFiles, o.Helm.IgnoreMissingValueFiles = f.texts("valueFiles"), f.flag("ignoreMissingValueFiles")
	o.Helm.SkipCRDs, o.Helm.SkipTests, o.Helm.SkipSchemaValidation = f.flag("skipCrds"), f.flag("skipTests"), f.flag("skipSchemaValidation")
	inline, object := f.text("values"), f.object("valuesObject")
	switch {
	case object != nil: // wins over the text, as in Argo CD
		o.Helm.Values = object.left
	case inline != "":
		v, err := values(inline)
		if err != nil {
			f.bad.add("%s: %v", f.at("values"), err)
		}
		o.Helm.Values = v
	}
	for _, p := range f.objects("parameters") {
		pair := p.text("name") + "=" + escape(s.literal(p, "value"))
		if p.flag("forceString") {
			o.Helm.SetString = append(o.Helm.SetString, pair)
		} else {
			o.Helm.Set = append(o.Helm.Set, pair)
		}
		p.done()
	}
	for _, p := range f.objects("fileParameters") {
		o.Helm.SetFile = append(o.Helm.SetFile, p.text("name")+"="+escape(p.text("path")))
		p.done()
	}
	if v := f.text("version"); v != "" && v != "v3" {
		f.bad.add("%s is %.40q, want v3 or none", f.at("version"), v)
	}
	f.skip("passCredentials") // nothing is fetched
	f.done()
}

// literal takes a text in which Argo CD would put variables of its own.
func (s *Source) literal(f *fields, name string) string {
	v := f.text(name)
	if strings.Contains(v, "$") {
		f.bad.add("%s holds '$', where Argo CD puts a variable in", f.at(name))
	}
	return v
}

func (s *Source) plugin(f *fields) {
	if f == nil {
		return
	}
	if name := f.text("name"); name != pluginName && !strings.HasPrefix(name, pluginName+"-") {
		f.bad.add("%s is %.60q, want %s: another plugin cannot be run here", f.at("name"), name, pluginName)
	}
	s.App.Env = map[string]string{}
	for _, e := range f.objects("env") {
		s.App.Env[e.text("name")] = s.literal(e, "value")
		e.done()
	}
	s.App.Environment = s.App.Env[EnvironmentVariable]
	list := f.objects("parameters")
	var params []Parameter
	for _, p := range list {
		// By way of JSON, as they come to the plugin.
		data, err := json.Marshal(p.left)
		var one Parameter
		if err == nil {
			err = json.Unmarshal(data, &one)
		}
		if err != nil {
			f.bad.add("%s is not a parameter of a plugin", p.path)
			return
		}
		params = append(params, one)
	}
	if err := Parameters(params, &s.render); err != nil {
		f.bad.add("%s: %v", f.at("parameters"), err)
	}
	f.done()
}
