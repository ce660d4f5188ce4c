package admission

import (
	"fmt"
	"slices"
	"strings"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/policy"
	"github.com/syncgate/syncgate/plugin/projection"
)

// imageKinds are the kinds that the ValidatingAdmissionPolicy syncgate-digests
// is asked about.
func imageKinds() []projection.Kind {
	var out []projection.Kind
	for _, k := range projection.Kinds() {
		switch (GroupKind{k.Group, k.Kind}) {
		case GroupKind{"", "Pod"}, GroupKind{"", "ReplicationController"}, GroupKind{"", "PodTemplate"},
			GroupKind{"apps", "Deployment"}, GroupKind{"apps", "ReplicaSet"}, GroupKind{"apps", "StatefulSet"}, GroupKind{"apps", "DaemonSet"},
			GroupKind{"batch", "Job"}, GroupKind{"batch", "CronJob"}:
			out = append(out, k)
		}
	}
	return out
}

// DigestsExemption is the condition (CEL) under which the policy
// syncgate-digests looks at a request at all: the same as that of the webhook's
// entries, for kinds that have images.
func DigestsExemption(a policy.Admission) string {
	a.GatedDeletes = nil // it is asked about no DELETE
	return exemption(a, imageKinds())
}

// DigestsTrusted is true (CEL, in the policy syncgate-digests, whose variable
// images lists the object's) for what the webhook lets a trusted writer write
// without a digest. It is wider than the webhook in one thing: an expression
// sees no clock, so that a writer whose trust has ended may still leave out
// digests. The webhook then wants receipts of it.
func DigestsTrusted(a policy.Admission) string {
	var parts []string
	for _, t := range a.TrustedWriters {
		if !slices.Contains(t.Categories, projection.Image) {
			continue
		}
		var resources []string
		for _, k := range imageKinds() {
			if writesKind(t, k) {
				resources = append(resources, k.Group+"/"+k.Resource)
			}
		}
		if len(resources) == 0 {
			continue
		}
		part := fmt.Sprintf("%s && request.resource.group + '/' + request.resource.resource in %s", userIs(t.User), list(resources))
		part += matching(" && request.?namespace.orValue('')", t.Namespaces)
		part += matching(" && dyn(object).metadata.?name.orValue('')", t.Names)
		if len(t.Images) > 0 {
			part += fmt.Sprintf(" && variables.images.all(i, i.matches(%s))", quote(pattern(t.Images)))
		}
		parts = append(parts, "("+part+")")
	}
	if len(parts) == 0 {
		return "false"
	}
	return strings.Join(parts, " ||\n  ")
}

// matching holds a text to globs; no globs hold it to nothing.
func matching(text string, globs []gate.Glob) string {
	if len(globs) == 0 {
		return ""
	}
	return fmt.Sprintf("%s.matches(%s)", text, quote(pattern(globs)))
}

// writesKind reports whether a trusted writer may write a kind somewhere, under
// some name.
func writesKind(t policy.TrustedWriter, k projection.Kind) bool {
	t.Namespaces, t.Names, t.Until = []gate.Glob{"*"}, nil, 0
	a := policy.Admission{TrustedWriters: []policy.TrustedWriter{t}}
	return len(a.Trusted(policy.Write{User: t.User, Group: k.Group, Kind: k.Kind, Namespace: "any", Name: "any"})) > 0
}
