package admission

import (
	"fmt"
	"slices"

	"github.com/syncgate/syncgate/plugin/policy"
	"github.com/syncgate/syncgate/plugin/projection"
)

// Owner is what an ownerReference says to the garbage collector: which object
// must be there for its dependents to stay.
type Owner struct{ APIVersion, Kind, Name, UID string }

// NewOwners returns the owners that an object has and its predecessor, which may
// be nil, did not have. Whoever deletes one of them has Kubernetes delete the
// object, and nobody is asked; one that is not there is as good as deleted.
func NewOwners(obj, old map[string]any) []Owner {
	before := owners(old)
	return slices.DeleteFunc(owners(obj), func(o Owner) bool { return slices.Contains(before, o) })
}

func owners(obj map[string]any) []Owner {
	meta, _ := obj["metadata"].(map[string]any)
	list, _ := meta["ownerReferences"].([]any)
	var out []Owner
	for _, x := range list {
		ref, _ := x.(map[string]any)
		text := func(key string) string {
			s, _ := ref[key].(string)
			return s
		}
		out = append(out, Owner{text("apiVersion"), text("kind"), text("name"), text("uid")})
	}
	return out
}

// mostOwners is how many ownerReferences the condition compares: each with each,
// which the API server bounds. More are asked about.
const mostOwners = 16

// ownersAdded is a condition (CEL) that is true when an object of a kind whose
// deletion policy gates may have an owner more: see NewOwners. It is "" if no
// kind is.
func ownersAdded(a policy.Admission, kinds []projection.Kind) string {
	var resources []string
	for _, k := range kinds {
		if slices.Contains(a.GatedDeletes, k.Kind) {
			resources = append(resources, k.Group+"/"+k.Resource)
		}
	}
	if len(resources) == 0 {
		return ""
	}
	const now, before = "object.metadata.?ownerReferences.orValue([])", "oldObject.metadata.?ownerReferences.orValue([])"
	return fmt.Sprintf("request.resource.group + '/' + request.resource.resource in %[1]s && (%[2]s.size() > %[4]d || %[3]s.size() > %[4]d || "+
		"!%[2]s.all(o, %[3]s.exists(p, p.uid == o.uid && p.name == o.name && p.kind == o.kind && p.apiVersion == o.apiVersion)))",
		list(resources), now, before, mostOwners)
}

// alwaysAsked is true for an UPDATE that is asked about whatever else it
// changes.
func alwaysAsked(a policy.Admission, kinds []projection.Kind) string {
	if added := ownersAdded(a, kinds); added != "" {
		return forceChanged + " || (" + added + ")"
	}
	return forceChanged
}
