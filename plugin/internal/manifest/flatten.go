package manifest

import (
	"fmt"
	"slices"
	"strings"
)

// flatten returns the objects of a document, and what is wrong with it. Like
// Argo CD, it takes any document with a top-level list called items for a List
// and drops what stands around the items; null items of something without spec
// and status are an empty List.
func flatten(tree any, file string, document int) ([]Object, []string) {
	m, ok := tree.(map[string]any)
	if !ok {
		return nil, []string{"document is " + typeName(tree) + ", want a Kubernetes object"}
	}
	items, list := m["items"].([]any)
	if !list && !nullList(m) {
		if problems := identity(m, true); len(problems) > 0 {
			return nil, problems
		}
		return []Object{{Tree: m, File: file, Document: document}}, nil
	}
	problems := identity(m, false)
	objs := make([]Object, 0, len(items))
	for i, item := range items {
		if len(problems) >= maxErrors {
			break
		}
		o, ok := item.(map[string]any)
		if !ok {
			problems = append(problems, fmt.Sprintf("items[%d] is %s, want a Kubernetes object", i, typeName(item)))
			continue
		}
		if _, nested := o["items"].([]any); nested || nullList(o) {
			// Written out on its own it would be flattened once more, into
			// objects that nobody evaluated.
			problems = append(problems, fmt.Sprintf("items[%d] is a List itself; only one level is flattened", i))
			continue
		}
		for _, p := range identity(o, true) {
			problems = append(problems, fmt.Sprintf("items[%d]: %s", i, p))
		}
		objs = append(objs, Object{Tree: o, File: file, Document: document})
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return objs, nil
}

func nullList(m map[string]any) bool {
	items, found := m["items"]
	if !found || items != nil {
		return false
	}
	_, spec := m["spec"]
	_, status := m["status"]
	return !spec && !status
}

// identity says what is wrong with the fields that name an object.
func identity(m map[string]any, named bool) []string {
	var problems []string
	add := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	version, problem := part(m, "apiVersion", "/")
	switch group, v, found := strings.Cut(version, "/"); {
	case problem != "":
		add("%s", problem)
	case version == "":
		add("no apiVersion")
	case found && (group == "" || v == "" || strings.Contains(v, "/")), found && (group == "core" || group == "-"):
		// A subject spells the empty group "core".
		add("apiVersion %s is not a group and a version", quote(version))
	}
	kind, problem := part(m, "kind", "")
	switch {
	case problem != "":
		add("%s", problem)
	case kind == "":
		add("no kind")
	}
	if !named {
		return problems
	}
	meta, ok := m["metadata"].(map[string]any)
	if !ok {
		if m["metadata"] != nil {
			add("metadata is %s, want a map", typeName(m["metadata"]))
		} else {
			add("%sno metadata.name and no metadata.generateName", ofKind(kind))
		}
		return problems
	}
	names := map[string]string{}
	for _, key := range []string{"name", "generateName", "namespace"} {
		names[key], problem = part(meta, key, "")
		if problem != "" {
			add("%smetadata.%s", ofKind(kind), problem)
			names[key] = "malformed"
		}
	}
	if names["name"] == "" && names["generateName"] == "" {
		add("%sno metadata.name and no metadata.generateName", ofKind(kind))
	}
	return problems
}

func ofKind(kind string) string {
	if kind == "" {
		return ""
	}
	return quote(kind) + ": "
}

// part returns one of the strings that make up an object's identity, and what
// is wrong with it. No API server takes a slash or a control character in one,
// and a subject could not be told from another.
func part(m map[string]any, key, allowed string) (string, string) {
	v, found := m[key]
	if !found || v == nil {
		return "", ""
	}
	s, ok := v.(string)
	if !ok {
		return "", fmt.Sprintf("%s is %s, want a string", key, typeName(v))
	}
	for _, r := range s {
		if r <= ' ' || r == 0x7f || r == '/' && allowed != "/" {
			return "", fmt.Sprintf("%s %s holds the character %q", key, quote(s), r)
		}
	}
	const most = 512 // object names end at 253
	if len(s) > most {
		return "", fmt.Sprintf("%s has %d bytes, want at most %d", key, len(s), most)
	}
	return s, ""
}

func typeName(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "a map"
	case []any:
		return "a list"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	}
	return "a number"
}

// FromTree checks and flattens a document that something else has decoded, for
// example a renderer. The result shares nothing with tree. Numbers may be of
// any Go type; they become [encoding/json.Number]. It refuses what [Parse]
// refuses, and values that JSON does not have; the error is [Errors], without
// lines.
func FromTree(tree map[string]any, file string, document int) ([]Object, error) {
	c := copier{budget: newBudget()}
	m, problem := c.copy(tree, 0)
	var objs []Object
	problems := []string{problem}
	if problem == "" {
		objs, problems = flatten(m, file, document)
	}
	if len(objs) > MaxObjects {
		problems = append(problems, fmt.Sprintf("more than %d objects", MaxObjects))
	}
	var errs Errors
	for _, p := range problems {
		errs = append(errs, &Error{File: file, Document: document, Msg: p})
	}
	if err := errs.orNil(); err != nil {
		return nil, err
	}
	return slices.Clip(objs), nil
}
