package application

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// fields is one object of a manifest, from which members are taken by name.
// What is left at the end is unknown, and may change what is rendered. A nil
// *fields has no members.
type fields struct {
	path string
	left map[string]any
	bad  *problems
}

// problems are all that is wrong with a manifest.
type problems []string

func (p *problems) add(format string, args ...any) { *p = append(*p, fmt.Sprintf(format, args...)) }

// err returns them sorted, as one error.
func (p problems) err() error {
	if len(p) == 0 {
		return nil
	}
	slices.Sort(p)
	return errors.New(strings.Join(slices.Compact(p), "; "))
}

func (f *fields) at(name string) string {
	if f.path == "" {
		return name
	}
	return f.path + "." + name
}

// take removes a member; an empty one is as good as none.
func (f *fields) take(name string) (any, bool) {
	if f == nil {
		return nil, false
	}
	v, ok := f.left[name]
	delete(f.left, name)
	switch x := v.(type) {
	case map[string]any:
		return v, len(x) > 0
	case []any:
		return v, len(x) > 0
	}
	return v, ok && v != nil && v != "" && v != false
}

// has reports whether a member is there, be it empty.
func (f *fields) has(name string) bool {
	return f != nil && f.left[name] != nil
}

func (f *fields) text(name string) string {
	v, ok := f.take(name)
	s, is := v.(string)
	if ok && !is {
		f.bad.add("%s is not a string", f.at(name))
	}
	return s
}

func (f *fields) flag(name string) bool {
	v, ok := f.take(name)
	b, is := v.(bool)
	if ok && !is {
		f.bad.add("%s is not true or false", f.at(name))
	}
	return b
}

func (f *fields) texts(name string) []string {
	v, ok := f.take(name)
	if !ok {
		return nil
	}
	list, is := v.([]any)
	var out []string
	for _, x := range list {
		s, text := x.(string)
		out, is = append(out, s), is && text
	}
	if !is {
		f.bad.add("%s is not a list of strings", f.at(name))
		return nil
	}
	return out
}

// object takes an object, nil if there is none.
func (f *fields) object(name string) *fields {
	v, ok := f.take(name)
	if !ok {
		return nil
	}
	m, is := v.(map[string]any)
	if !is {
		f.bad.add("%s is not an object", f.at(name))
		return nil
	}
	return &fields{f.at(name), maps.Clone(m), f.bad}
}

func (f *fields) objects(name string) []*fields {
	v, ok := f.take(name)
	if !ok {
		return nil
	}
	list, is := v.([]any)
	var out []*fields
	for i, x := range list {
		m, object := x.(map[string]any)
		out, is = append(out, &fields{fmt.Sprintf("%s[%d]", f.at(name), i), maps.Clone(m), f.bad}), is && object
	}
	if !is {
		f.bad.add("%s is not a list of objects", f.at(name))
		return nil
	}
	return out
}

// skip passes over members that change nothing in what is rendered.
func (f *fields) skip(names ...string) {
	for _, n := range names {
		f.take(n)
	}
}

// refuse refuses members that are not empty.
func (f *fields) refuse(why string, names ...string) {
	for _, n := range names {
		if _, ok := f.take(n); ok {
			f.bad.add("%s %s", f.at(n), why)
		}
	}
}

// done refuses what is left.
func (f *fields) done() {
	if f == nil {
		return
	}
	for n := range f.left {
		if _, ok := f.take(n); ok {
			f.bad.add("%s is not known here, and may change what is rendered", f.at(fmt.Sprintf("%.60q", n)))
		}
	}
}
