package receipt

import (
	"fmt"
	"strings"
)

// Subject is the object that a receipt is about, written
// "group/Kind/namespace/name" with "core" for the empty group and "-" for
// cluster scope. With Generated, Name is the object's metadata.generateName.
type Subject struct {
	Group, Kind, Namespace, Name string
	Generated                    bool
}

// String returns the form that stands in the sub claim.
func (s Subject) String() string {
	g, ns := s.Group, s.Namespace
	if g == "" {
		g = "core"
	}
	if ns == "" {
		ns = "-"
	}
	return g + "/" + s.Kind + "/" + ns + "/" + s.Name
}

// Short returns "Kind namespace/name" (or "Kind name"), as people say it.
func (s Subject) Short() string {
	name := s.Name
	if s.Generated {
		name += "*"
	}
	if s.Namespace == "" {
		return s.Kind + " " + name
	}
	return s.Kind + " " + s.Namespace + "/" + name
}

// ParseSubject is the inverse of String. Names of RBAC objects may hold
// almost anything but "/".
func ParseSubject(s string) (Subject, error) {
	p := strings.Split(s, "/")
	if len(p) != 4 {
		return Subject{}, fmt.Errorf("subject %q: want group/Kind/namespace/name", s)
	}
	for _, x := range p {
		if x == "" {
			return Subject{}, fmt.Errorf("subject %q: empty part", s)
		}
	}
	sub := Subject{Group: p[0], Kind: p[1], Namespace: p[2], Name: p[3]}
	if sub.Group == "core" {
		sub.Group = ""
	}
	if sub.Namespace == "-" {
		sub.Namespace = ""
	}
	return sub, nil
}
