package application

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/syncgate/syncgate/plugin/flux/hook"
	"github.com/syncgate/syncgate/plugin/internal/manifest"
	"github.com/syncgate/syncgate/plugin/render"
	"github.com/syncgate/syncgate/plugin/settings"
)

// fluxGroup is the API group of Flux's Kustomization; that of kustomize's own
// is kustomize.config.k8s.io.
const fluxGroup = "kustomize.toolkit.fluxcd.io"

// fluxNamespace is where Flux runs unless somebody moved it.
const fluxNamespace = "flux-system"

func isKustomization(o manifest.Object) bool {
	return o.Group() == fluxGroup && o.Kind() == "Kustomization"
}

// Mode is how a Kustomization asks to be gated (package hook).
type Mode string

// The modes. Plain is gated by nothing but the webhook.
const (
	Plain     Mode = ""
	PostBuild Mode = "postBuild"
	Artifact  Mode = "artifact"
)

// Reference names an object.
type Reference struct{ Kind, Namespace, Name string }

// Kustomization is what a Flux Kustomization says beside App.
type Kustomization struct {
	Mode Mode

	// Source is what is built, in App.Path: of artifact mode that of the
	// annotations, else spec.sourceRef. Its Namespace is never empty, unless that
	// of the Kustomization is.
	Source Reference

	// Variables are the ConfigMaps and Secrets that it takes variables from, but
	// for the gate's own.
	Variables []Reference

	object map[string]any
	own    string // the gate's ConfigMap, in postBuild mode
}

// Namespace is the Kustomization's own.
func (k *Kustomization) Namespace() string { return manifest.Object{Tree: k.object}.Namespace() }

// Lookup returns the data of a ConfigMap or Secret in the Kustomization's own
// namespace, that of a Secret decoded; found is false if there is none.
type Lookup func(ctx context.Context, kind, name string) (data map[string]string, found bool, err error)

// Flux returns what a Kustomization says, nil of another Source.
func (s Source) Flux() *Kustomization { return s.flux }

// FromObject is Parse for an object that the API server has, of which only a
// Flux Kustomization is read here. Numbers may be of any Go type.
func FromObject(tree map[string]any) (Source, error) {
	list, err := manifest.FromTree(tree, "object", 0)
	if err != nil {
		return Source{}, fmt.Errorf("reading Kustomization: %w", err)
	}
	if len(list) != 1 || !isKustomization(list[0]) {
		return Source{}, fmt.Errorf("reading Kustomization: got no Kustomization of %s", fluxGroup)
	}
	return read(list[0])
}

// Built is how Flux builds an artifact that is unpacked at root, with the
// variables that look finds.
func (s Source) Built(root string, look Lookup) (render.Options, error) {
	o, err := s.Options(root)
	if err != nil || o.Flux == nil {
		return o, err
	}
	o.Flux.Look, o.Flux.Checkout = look, false
	return o, nil
}

// options are those of a checkout.
func (k *Kustomization) options() *render.FluxOptions {
	return &render.FluxOptions{Kustomization: k.object, Own: k.own, Prefix: hook.Prefix, Checkout: true}
}

// The fields of a Kustomization's spec. What changes bytes that Flux applies is
// in one of the first three lists; all others, but for those that kustomization
// reads, are refused as unknown, because a later Flux may give them a meaning.
var (
	// builtHere are fields that the build here honours. In artifact mode Flux would
	// apply them once more, to what the gate has checked.
	builtHere = []string{"targetNamespace", "namePrefix", "nameSuffix", "patches", "images", "components", "ignoreMissingComponents", "buildMetadata", "commonMetadata", "postBuild"}
	// appliedOnly change when, as whom or where Flux applies, and what it deletes;
	// never what an object is. decryption is among them: what may be encrypted is
	// decided by the build (package render).
	appliedOnly = []string{"interval", "retryInterval", "timeout", "prune", "suspend", "wait", "dependsOn", "serviceAccountName", "kubeConfig",
		"healthChecks", "healthCheckExprs", "deletionPolicy", "decryption", "validation"}
	// adopted are the paths that Flux may leave to others (spec.ignore): for all
	// the rest it would apply what the cluster has, unseen.
	adopted = []string{"/spec/replicas", "/status"}
)

const (
	afterGate = "is applied by Flux after the gate, in artifact mode: put it into the kustomization"
	force     = "would delete objects before a change of them is refused"
)

// kustomization reads the spec of a Flux Kustomization.
func (s *Source) kustomization(o manifest.Object, spec *fields) {
	k := &Kustomization{object: o.Tree}
	s.flux = k
	// As syncgate-controller calls it, unless Flux runs somewhere else.
	s.App.Name = settings.Key(fluxNamespace, cmp.Or(o.Namespace(), fluxNamespace), o.Name())
	s.Annotations = annotations(o)
	delete(s.Annotations, hook.SourceAnnotation)
	delete(s.Annotations, hook.PathAnnotation)
	ref := spec.object("sourceRef")
	k.Source = Reference{Kind: ref.text("kind"), Namespace: ref.text("namespace"), Name: ref.text("name")}
	ref.skip("apiVersion")
	ref.done()
	at := spec.text("path")
	own, err := hook.Name(o.Name())
	if err != nil {
		spec.bad.add("metadata.name is too long to be gated")
	}
	if k.Source.Kind == "ExternalArtifact" && k.Source.Name == own && (k.Source.Namespace == "" || k.Source.Namespace == o.Namespace()) {
		k.Mode = Artifact
		at = k.artifact(o, spec, at)
	}
	if k.Source.Namespace == "" {
		k.Source.Namespace = o.Namespace()
	}
	if !slices.Contains([]string{"GitRepository", "OCIRepository", "Bucket", "ExternalArtifact"}, k.Source.Kind) || k.Source.Name == "" {
		spec.bad.add("the source is not a GitRepository, OCIRepository, Bucket or ExternalArtifact with a name")
	}
	s.App.Path = path.Clean(strings.TrimLeft(at, "/"))
	s.App.Repository = k.Source.Name
	if k.Mode == Artifact {
		spec.refuse(afterGate, builtHere...)
	} else {
		s.App.Namespace = k.built(own, spec)
	}
	if k.Mode != Plain && k.Source.Kind == "ExternalArtifact" && hook.IsName(k.Source.Name) {
		// The gate would judge its own output, and nothing of a repository arrives.
		spec.bad.add("the source ExternalArtifact %.80q is what the gate itself publishes: name the GitRepository, OCIRepository or Bucket that has the manifests", k.Source.Name)
	}
	spec.refuse(force, "force")
	spec.ignored()
	spec.skip(appliedOnly...)
	spec.done()
}

// ignored checks the paths that Flux leaves to others.
func (f *fields) ignored() {
	for _, rule := range f.objects("ignore") {
		for _, p := range rule.texts("paths") {
			if !slices.ContainsFunc(adopted, func(a string) bool { return p == a || strings.HasPrefix(p, a+"/") }) {
				f.bad.add("%s %.80q: Flux would apply what the cluster has there, whatever was signed; only %s may be ignored", rule.at("paths"), p, strings.Join(adopted, " and "))
			}
		}
		rule.skip("target")
		rule.done()
	}
}

// artifact reads what artifact mode builds, and returns the path in it.
func (k *Kustomization) artifact(o manifest.Object, spec *fields, at string) string {
	if p := path.Clean(strings.TrimLeft(at, "/")); p != "." {
		spec.bad.add("spec.path is %.80q: in artifact mode what the gate publishes is at its root, and the annotation %s says what it builds", at, hook.PathAnnotation)
	}
	source := annotation(o, hook.SourceAnnotation)
	parts := strings.Split(source, "/")
	switch len(parts) {
	case 2:
		k.Source = Reference{Kind: parts[0], Name: parts[1]}
	case 3:
		k.Source = Reference{Kind: parts[0], Namespace: parts[1], Name: parts[2]}
	default:
		spec.bad.add("the annotation %s is %.80q: in artifact mode it names what is built, as KIND/NAME or KIND/NAMESPACE/NAME", hook.SourceAnnotation, source)
	}
	return annotation(o, hook.PathAnnotation)
}

func annotation(o manifest.Object, key string) string {
	metadata, _ := o.Tree["metadata"].(map[string]any)
	all, _ := metadata["annotations"].(map[string]any)
	text, _ := all[key].(string)
	return text
}

// built checks the fields that the build honours, and returns the namespace
// where objects without one go. The values are read by Flux's own code later,
// which passes over what it does not know.
func (k *Kustomization) built(own string, spec *fields) string {
	spec.text("namePrefix")
	spec.text("nameSuffix")
	spec.flag("ignoreMissingComponents")
	spec.texts("components")
	spec.texts("buildMetadata")
	for _, patch := range spec.objects("patches") {
		patch.text("patch")
		target := patch.object("target")
		for _, name := range []string{"group", "version", "kind", "name", "namespace", "labelSelector", "annotationSelector"} {
			target.text(name)
		}
		target.done()
		patch.done()
	}
	for _, image := range spec.objects("images") {
		for _, name := range []string{"name", "newName", "newTag", "digest"} {
			image.text(name)
		}
		image.done()
	}
	common := spec.object("commonMetadata")
	for _, member := range []string{"labels", "annotations"} {
		values := common.object(member)
		for _, key := range values.names() {
			values.text(key)
			if group, _, _ := strings.Cut(key, "/"); group == fluxGroup || group == "syncgate.io" {
				spec.bad.add("%s: it would be on every object", values.at(fmt.Sprintf("%.80q", key)))
			}
		}
	}
	common.done()
	k.postBuild(own, spec.object("postBuild"))
	return spec.text("targetNamespace")
}

func (k *Kustomization) postBuild(own string, post *fields) {
	switch strategy := post.text("substituteStrategy"); strategy {
	case "", "WithVariables", "Always":
	default:
		post.bad.add("%s is %.60q, want WithVariables or Always", post.at("substituteStrategy"), strategy)
	}
	inline := post.object("substitute")
	for _, key := range inline.names() {
		inline.text(key)
		if strings.HasPrefix(key, hook.Prefix) {
			post.bad.add("%s: variables that begin with %s are the gate's", inline.at(key), hook.Prefix)
		}
	}
	list := post.objects("substituteFrom")
	for i, from := range list {
		r := Reference{Kind: from.text("kind"), Name: from.text("name")}
		optional := from.flag("optional")
		from.done()
		if r.Kind != "ConfigMap" || r.Name != own {
			k.Variables = append(k.Variables, r)
			continue
		}
		k.Mode, k.own = PostBuild, own
		if optional {
			post.bad.add("%s is set: without the gate's ConfigMap Flux would go on", from.at("optional"))
		}
		if i != len(list)-1 {
			post.bad.add("%s: the gate's ConfigMap %s must be the last one, so that no other sets its variables", from.at("name"), own)
		}
	}
	post.done()
}

// names are the members that are left, sorted.
func (f *fields) names() []string {
	if f == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(f.left))
}
