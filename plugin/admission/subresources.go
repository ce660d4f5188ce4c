package admission

import (
	"fmt"
	"slices"
	"strings"

	"github.com/syncgate/syncgate/plugin/policy"
	"github.com/syncgate/syncgate/plugin/projection"
)

// The entries about subresources, of namespaced and of cluster-scoped kinds.
const (
	statusEntry        = "status"
	clusterStatusEntry = "cluster-status"
)

// The subresources beside pods/ephemeralcontainers that the webhook is asked
// about.
const (
	Status   = "status"
	Finalize = "finalize"
	Approval = "approval"
	Binds    = "binding"
)

// BindingKind is the kind that pods/binding and bindings take.
var BindingKind = GroupKind{"", "Binding"}

// metadataWriters are the subresources through which Kubernetes lets an
// object's labels and annotations be written, whatever they are called: of the
// kinds of the table those whose strategies keep them (k8s.io/kubernetes
// pkg/registry, PrepareForUpdate: of a Deployment the annotations alone; of all
// of them nothing else that counts). The others reset an object's metadata, as
// pods/resize does, or store another object, as scale does; custom resources
// have theirs reset by Kubernetes itself. e2e/status_test.go writes every
// subresource that a real API server has.
var metadataWriters = map[GroupKind][]string{
	{"", "Pod"}:                      {Status},
	{"", "ReplicationController"}:    {Status},
	{"", "Service"}:                  {Status},
	{"", "PersistentVolumeClaim"}:    {Status},
	{"", "PersistentVolume"}:         {Status},
	{"", "Namespace"}:                {Status, Finalize},
	{"apps", "Deployment"}:           {Status},
	{"apps", "ReplicaSet"}:           {Status},
	{"apps", "DaemonSet"}:            {Status},
	{"apps", "StatefulSet"}:          {Status},
	{"batch", "Job"}:                 {Status},
	{"batch", "CronJob"}:             {Status},
	{"networking.k8s.io", "Ingress"}: {Status},
	{"certificates.k8s.io", "CertificateSigningRequest"}: {Status, Approval},
}

// WritesMetadata reports whether the webhook judges the UPDATE of a subresource
// of a kind: the rules of the configuration list the same.
func WritesMetadata(k GroupKind, subresource string) bool {
	if !inTable(projection.Kind{Group: k.Group, Kind: k.Kind}) {
		return subresource == Status
	}
	return slices.Contains(metadataWriters[k], subresource)
}

// inTable reports whether the projection table has the kind. What an API server
// does with the subresources of others is not known.
func inTable(k projection.Kind) bool {
	return slices.ContainsFunc(projection.Kinds(), func(x projection.Kind) bool { return x.Group == k.Group && x.Kind == k.Kind })
}

// subresources returns the entries about writes that reach an object's labels
// and annotations by its subresources. They stand apart, so that the conditions
// look at nothing else: while the webhook is down kubelets and controllers go on
// writing what they see, whatever the objects are.
func subresources(p *policy.Policy, judged []*entry, place Place) []Webhook {
	var out []Webhook
	for _, scope := range []struct {
		name    string
		cluster bool
	}{{statusEntry, false}, {clusterStatusEntry, true}} {
		e := statusKinds{admission: p.Admission(), projector: p.Projector(), requires: p.RequiresAnywhere}
		for _, x := range judged {
			if x.clusterScoped == scope.cluster {
				for _, k := range x.kinds {
					e.add(k)
				}
			}
		}
		if len(e.rules) == 0 {
			continue
		}
		w := webhook(scope.name, place.config(ValidatePath))
		w.Rules = e.rules
		for i := range w.Rules {
			w.Rules[i].Scope = "Namespaced"
			if scope.cluster {
				w.Rules[i].Scope = "Cluster"
			}
		}
		if !scope.cluster {
			w.NamespaceSelector = selector(p.Admission())
		}
		w.MatchConditions = e.matchConditions()
		out = append(out, w)
	}
	return out
}

// statusKinds collects kinds for one entry.
type statusKinds struct {
	admission policy.Admission
	projector *projection.Projector
	requires  func(projection.Category) bool

	rules []Rule
	alike []alikeMetadata
	binds string // CEL that holds for a Binding to be asked about; "": none is
}

// alikeMetadata are resources whose metadata is compared by one expression.
type alikeMetadata struct {
	resources []string // "group/resource"
	changed   string   // CEL
}

func (e *statusKinds) add(k projection.Kind) {
	writers := metadataWriters[GroupKind{k.Group, k.Kind}]
	if len(writers) == 0 {
		return
	}
	for _, subresource := range writers {
		e.rule(k.Group, Update, k.Resource+"/"+subresource)
	}
	c, counts := e.projector.MetadataCEL(k.Group, k.Kind, e.requires)
	changed := "(" + alwaysAsked(e.admission, []projection.Kind{k}) + ")"
	if counts {
		changed = fmt.Sprintf("%s || (%s)", changed, c.Update[0])
	}
	resource := k.Group + "/" + k.Resource
	i := slices.IndexFunc(e.alike, func(a alikeMetadata) bool { return a.changed == changed })
	if i < 0 {
		i = len(e.alike)
		e.alike = append(e.alike, alikeMetadata{changed: changed})
	}
	e.alike[i].resources = append(e.alike[i].resources, resource)
	if k.Group == "" && k.Kind == "Pod" {
		e.rule("", Create, "bindings", "pods/"+Binds)
		e.binds = "(" + forceBrought + ")"
		if counts {
			e.binds = fmt.Sprintf("%s || (%s)", e.binds, c.Create)
		}
	}
}

func (e *statusKinds) rule(group, operation string, resources ...string) {
	for i := range e.rules {
		if e.rules[i].APIGroups[0] == group && e.rules[i].Operations[0] == operation {
			e.rules[i].Resources = append(e.rules[i].Resources, resources...)
			return
		}
	}
	e.rules = append(e.rules, Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Operations: []string{operation}, Resources: resources})
}

func (e *statusKinds) matchConditions() []Condition {
	// No controller is exempt: none has to write what counts in this way.
	out := []Condition{{"not-exempt", "!(" + userIs(APIServer) + ")"}}
	for i, a := range e.alike {
		name := "changes-gated-metadata"
		if i > 0 {
			name = fmt.Sprintf("%s-%d", name, i+1)
		}
		out = append(out, Condition{name, fmt.Sprintf("request.operation != 'UPDATE' || !(request.resource.group + '/' + request.resource.resource in %s) || %s", list(a.resources), a.changed)})
	}
	if e.binds != "" {
		out = append(out, Condition{"binds-with-gated-metadata", "request.operation != 'CREATE' || " + e.binds})
	}
	return out
}

// forceBrought is forceChanged for an object that is merged into another.
var forceBrought = func() string {
	var parts []string
	for _, force := range forces {
		parts = append(parts, fmt.Sprintf("object.metadata.?%s[?'%s'].orValue('') != ''", force.part, force.key))
	}
	return strings.Join(parts, " || ")
}()
