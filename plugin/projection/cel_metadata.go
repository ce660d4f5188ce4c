package projection

import (
	"slices"
	"strings"
)

// MetadataCEL returns the conditions for writes that can change nothing of an
// object that counts but its own labels and annotations: those of an object's
// status, which Kubernetes lets change both. Like those of CEL they hide no
// change. Because nothing is looked into while the labels and annotations are
// as they were, no size of an object makes them true. Create holds for an
// object that brings such metadata with it: a Binding, whose labels and
// annotations become those of its Pod. Of a kind without such metadata, of one
// outside the table, and where policy requires none of it (nil: it requires
// all), it returns false.
func (p *Projector) MetadataCEL(group, kind string, requires func(Category) bool) (Conditions, bool) {
	if requires == nil {
		requires = func(Category) bool { return true }
	}
	key := kindKey{CanonicalGroup(group, kind), kind}
	k := kindIndex[key]
	if k == nil || k.group == admissionGroup {
		return Conditions{}, false
	}
	c := &conditions{k: &kindSpec{}, requires: requires}
	if slices.ContainsFunc(k.applies, requires) {
		c.k = k
	}
	if p != nil {
		for _, f := range p.fields[key] {
			if strings.HasPrefix(f.Path, "metadata.") && requires(f.Category) {
				c.paths = append(c.paths, f.Path)
			}
		}
	}
	t := c.trees().metadataTree(c.k)
	if t == nil && len(c.paths) == 0 {
		return Conditions{}, false
	}
	return Conditions{Create: c.created(t), Update: []string{c.changed(t)}}, true
}

// metadataTree says how the own labels and annotations of two objects of a kind
// are compared; nil: none of them counts. (The annotation that asks the deployment
// controller for a rollback is part of a Deployment's spec to an API server,
// which no write of its status changes.)
func (b *trees) metadataTree(k *kindSpec) *tree {
	root := onlyTree()
	switch {
	case k.pod != nil && k.pod.isPod:
		// What networks write into a running Pod is in its status annotations,
		// which are bookkeeping.
		meta := b.podMeta(templateRecords)
		if len(meta.inside) == 0 {
			return nil
		}
		root.put(k.pod.meta, meta)
	case k.when != nil: // compares the metadata itself
		return &tree{form: func(*celWriter, ends) string { return "true" }}
	case k.labels != nil || k.annotations != nil:
		root.leaveMetadata(k.labels, k.annotations)
	default:
		return nil
	}
	return root
}
