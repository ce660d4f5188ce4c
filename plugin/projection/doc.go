// Package projection decides which fields of a Kubernetes object are gated,
// and encodes their values so that two people who look at the same object
// name it by the same digest.
//
// The projection of an object is a sorted list of leaves: category, path and
// value. Paths are rooted at the object and name list items by their merge
// key, as in spec.template.spec.containers[web].image. What the API server
// fills in by defaulting, and what has no consequence (replicas, resources,
// labels, probe timings), is not part of it.
//
// # Canonical form
//
// The canonical form is the RFC 8785 JSON of
//
//	{"fields":{CATEGORY:{PATH:VALUE}},"profile":"v1"}
//
// restricted to the covered categories; a covered category without leaves is
// present as {}. The projection digest is "sha256:" and the hex of the SHA-256
// of these bytes. It depends on the object, the profile and the covered
// categories alone, never on an operator's policy.
//
// # Where the rules are
//
// One table (table.go, kinds.go, table_not.go) holds every gated field and every field that is
// known and deliberately not gated, with the reason. The shapes that say how
// values are normalised (schema_gen.go) are generated from the Kubernetes API
// types. The normative text is docs/spec/gated-fields.md.
//
// The package is pure: decoded JSON in, values out.
package projection
