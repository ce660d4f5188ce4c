package migrate

import (
	"slices"
	"strings"
)

// A Setting is one field of an Application's source and what comes of it.
type Setting struct {
	Field string // below the source: "helm.valueFiles"
	// Becomes says what of the plugin's it turns into. It is empty if the
	// setting cannot move.
	Becomes string
	// Why it cannot move, and what to Do instead.
	Why, Do string

	to   string // the parameter
	form form
}

// form is how a value is written as a parameter.
type form int

const (
	nothing form = iota // dropped, or kept out
	text
	flag
	list
	pairs  // name and value, the names as keys
	inline // values, as text
)

func moves(block, name, to string, f form) Setting {
	return Setting{Field: block + "." + name, Becomes: "parameter `" + to + "`", to: to, form: f}
}

func dropped(field, why string) Setting {
	return Setting{Field: field, Becomes: "nothing: " + why}
}

func stays(field, why, do string) Setting { return Setting{Field: field, Why: why, Do: do} }

const (
	inRepository = "the plugin renders what is in the repository, and nothing that an Application adds"
	onlyCharts   = "it is for charts in a kustomization, which are not rendered"
)

// kustomization is a setting that a kustomization has a field for.
func kustomization(name, do string) Setting { return stays("kustomize."+name, inRepository, do) }

// settings are all fields of a source that change what is rendered, as of Argo CD 3.2.
var settings = []Setting{
	moves("helm", "valueFiles", "helm.valueFiles", list),
	{Field: "helm.values", Becomes: "parameter `helm.values`, unless there is a `valuesObject`", to: "helm.values", form: inline},
	{Field: "helm.valuesObject", Becomes: "parameter `helm.values`, as text", to: "helm.values", form: inline},
	{Field: "helm.parameters", Becomes: "parameter `helm.set`, with `forceString` `helm.setString`", to: "helm.set", form: pairs},
	{Field: "helm.fileParameters", Becomes: "parameter `helm.setFile`", to: "helm.setFile", form: pairs},
	moves("helm", "releaseName", "helm.releaseName", text),
	moves("helm", "namespace", "helm.namespace", text),
	moves("helm", "kubeVersion", "helm.kubeVersion", text),
	moves("helm", "apiVersions", "helm.apiVersions", list),
	moves("helm", "skipCrds", "helm.skipCrds", flag),
	moves("helm", "skipTests", "helm.skipTests", flag),
	moves("helm", "skipSchemaValidation", "helm.skipSchemaValidation", flag),
	moves("helm", "ignoreMissingValueFiles", "helm.ignoreMissingValueFiles", flag),
	dropped("helm.passCredentials", "nothing is fetched"),
	{Field: "helm.version", Becomes: "nothing if it is `v3`", Why: "the plugin has one version of Helm", Do: "remove it, and compare the renders"},
	moves("directory", "recurse", "recurse", flag),
	moves("directory", "include", "include", text),
	moves("directory", "exclude", "exclude", text),
	stays("directory.jsonnet", "Jsonnet is not rendered", "render it in CI and commit the result, or let the operator set SYNCGATE_RENDER_COMMAND"),
	kustomization("images", "write it to images in kustomization.yaml, then syncgate pin: a lock beside the files knows nothing of an image that only the Application names"),
	kustomization("namePrefix", "write it to namePrefix in kustomization.yaml"),
	kustomization("nameSuffix", "write it to nameSuffix in kustomization.yaml"),
	kustomization("namespace", "write it to namespace in kustomization.yaml"),
	kustomization("replicas", "write it to replicas in kustomization.yaml"),
	kustomization("commonLabels", "write it to labels in kustomization.yaml"),
	kustomization("commonAnnotations", "write it to commonAnnotations in kustomization.yaml"),
	kustomization("patches", "write it to patches in kustomization.yaml"),
	kustomization("components", "write it to components in kustomization.yaml"),
	stays("kustomize.version", "the plugin has one version of kustomize", "remove it, and compare the renders"),
	stays("kustomize.kubeVersion", onlyCharts, "remove it"),
	stays("kustomize.apiVersions", onlyCharts, "remove it"),
	dropped("kustomize.forceCommonLabels", "it goes with `commonLabels`"),
	dropped("kustomize.forceCommonAnnotations", "it goes with `commonAnnotations`"),
	dropped("kustomize.commonAnnotationsEnvsubst", "it goes with `commonAnnotations`"),
	dropped("kustomize.labelWithoutSelector", "it goes with `commonLabels`"),
	dropped("kustomize.labelIncludeTemplates", "it goes with `commonLabels`"),
	dropped("kustomize.ignoreMissingComponents", "it goes with `components`"),
	stays("chart", "a chart from a repository has no directory in Git to keep a lock in", "commit a chart that has it as a dependency, with charts/ filled by helm dependency build, and name its path"),
	stays("ref", "files of another source reach no plugin", "keep the chart and its values in one repository"),
}

// rows of cases that are not one field.
var special = []Setting{
	stays("helm.valueFiles with `$`", "a variable or another source's files (`$values/...`) reach no plugin", "keep the chart and its values in one repository, and name the file"),
	stays("helm.valueFiles by address", "the plugin has no network", "commit the file"),
	stays("helm.valueFiles by pattern", "patterns are not supported", "name the files"),
	stays("helm.parameters with `$`", "Argo CD puts a variable in, the plugin does not", "write the value"),
	stays("plugin", "another plugin cannot be run here", "let the operator set SYNCGATE_RENDER_COMMAND, then name syncgate"),
}

func of(field string) (Setting, bool) {
	i := slices.IndexFunc(settings, func(s Setting) bool { return s.Field == field })
	if i < 0 {
		return Setting{}, false
	}
	return settings[i], true
}

func specially(field string) Setting {
	return special[slices.IndexFunc(special, func(s Setting) bool { return s.Field == field })]
}

// Table is the two tables of docs/argocd.md, in Markdown: what moves, and what
// does not.
func Table() string {
	var b strings.Builder
	b.WriteString("| setting of the source | becomes |\n|---|---|\n")
	all := slices.Concat(settings, special)
	for _, s := range all {
		if s.Becomes != "" {
			b.WriteString("| " + code(s.Field) + " | " + s.Becomes + " |\n")
		}
	}
	b.WriteString("\n| cannot move | why | instead |\n|---|---|---|\n")
	for _, s := range all {
		if s.Why == "" {
			continue
		}
		field := code(s.Field)
		if s.Becomes != "" {
			field += ", another"
		}
		b.WriteString("| " + field + " | " + s.Why + " | " + s.Do + " |\n")
	}
	return b.String()
}

// code marks the field, but not what is said about it.
func code(field string) string {
	name, rest, _ := strings.Cut(field, " ")
	return strings.TrimSpace("`" + name + "` " + rest)
}
