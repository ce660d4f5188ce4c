package projection

import "strings"

// A Category is a family of gated fields. What a receipt covers, and what an
// issuer may sign, is said in categories.
type Category string

// The categories of profile v1 (docs/spec/gated-fields.md). Policy may add
// categories of its own, whose names start with "x-".
const (
	Image     Category = "image"
	Identity  Category = "identity"
	Secret    Category = "secret"
	Network   Category = "network"
	Privilege Category = "privilege"
	Command   Category = "command"
	RBAC      Category = "rbac"
	Service   Category = "service"
	Admission Category = "admission"
	Delivery  Category = "delivery"
)

// Profile names the table of gated fields that this package implements.
const Profile = "v1"

// Categories returns every built-in category, sorted.
func Categories() []Category {
	return []Category{Admission, Command, Delivery, Identity, Image, Network, Privilege, RBAC, Secret, Service}
}

// Valid reports whether c is a built-in category or a custom one ("x-" and
// one to 40 lower-case letters, digits or hyphens).
func (c Category) Valid() bool {
	for _, b := range Categories() {
		if c == b {
			return true
		}
	}
	name, custom := strings.CutPrefix(string(c), "x-")
	if !custom || name == "" || len(name) > 40 {
		return false
	}
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' {
			return false
		}
	}
	return true
}
