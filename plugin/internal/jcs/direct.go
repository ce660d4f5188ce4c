package jcs

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"sync"
)

// errIndirect says that direct decoding gives up. Whoever calls it decodes by
// way of a tree then, which tells what is wrong, if anything is.
var errIndirect = errors.New("not decoded directly")

// direct decodes one text into a zero value of the types that Strict takes,
// without a tree between. It takes nothing that Strict does not, and gives up on
// everything out of the ordinary.
func direct(raw []byte, to reflect.Value) error {
	d := decoder{raw: raw}
	if err := d.into(to, 0); err != nil {
		return err
	}
	d.space()
	if d.pos != len(d.raw) {
		return errIndirect
	}
	return nil
}

func (d *decoder) into(to reflect.Value, depth int) error {
	d.space()
	if depth > maxDepth || d.pos == len(d.raw) {
		return errIndirect
	}
	switch c := d.raw[d.pos]; {
	case to.Kind() == reflect.Struct && c == '{':
		return d.intoStruct(to, depth)
	case to.Kind() == reflect.Map && c == '{':
		return d.intoMap(to)
	case to.Kind() == reflect.Slice && c == '[':
		return d.intoSlice(to)
	case to.Kind() == reflect.String && c == '"':
		s, err := d.text()
		to.SetString(s)
		return err
	case to.Kind() == reflect.Bool && (d.word("true") || d.word("false")):
		to.SetBool(c == 't')
		return nil
	case to.Kind() == reflect.Int64 && (c == '-' || c >= '0' && c <= '9'):
		n, err := d.number()
		if err != nil {
			return err
		}
		return assignInteger(json.Number(n), to)
	}
	return errIndirect
}

// members are the members of a struct in the order of its fields, which is how
// both assign and intoStruct find them.
type members []string

var membersOf sync.Map // reflect.Type -> members

func membersIn(t reflect.Type) (members, error) {
	if known, ok := membersOf.Load(t); ok {
		return known.(members), nil
	}
	list := make(members, t.NumField())
	for i := range list {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" || name == "-" || !field.IsExported() {
			return nil, errNoName(field, t)
		}
		list[i] = name
	}
	membersOf.Store(t, list)
	return list, nil
}

// intoStruct takes each member once: 64 fields at most, as many as fit into seen.
func (d *decoder) intoStruct(to reflect.Value, depth int) error {
	names, err := membersIn(to.Type())
	if err != nil || len(names) > 64 {
		return errIndirect
	}
	var seen uint64
	d.pos++
	if d.take('}') {
		return nil
	}
	for {
		name, err := d.name()
		if err != nil {
			return err
		}
		i := 0
		for i < len(names) && names[i] != name {
			i++
		}
		if i == len(names) || seen&(1<<i) != 0 || !d.take(':') {
			return errIndirect
		}
		seen |= 1 << i
		if err := d.into(to.Field(i), depth+1); err != nil {
			return err
		}
		if d.take('}') {
			return nil
		}
		if !d.take(',') {
			return errIndirect
		}
	}
}

func (d *decoder) name() (string, error) {
	d.space()
	if d.pos == len(d.raw) || d.raw[d.pos] != '"' {
		return "", errIndirect
	}
	return d.text()
}

// intoMap takes maps of strings.
func (d *decoder) intoMap(to reflect.Value) error {
	p, ok := to.Addr().Interface().(*map[string]string)
	if !ok {
		return errIndirect
	}
	m := map[string]string{}
	d.pos++
	for first := true; ; first = false {
		if first && d.take('}') {
			break
		}
		name, err := d.name()
		if err != nil {
			return err
		}
		if !d.take(':') {
			return errIndirect
		}
		if m[name], err = d.unique(m, name); err != nil {
			return err
		}
		if d.take('}') {
			break
		}
		if !d.take(',') {
			return errIndirect
		}
	}
	*p = m
	return nil
}

// unique reads the value of a member that the map does not have yet.
func (d *decoder) unique(m map[string]string, name string) (string, error) {
	if _, twice := m[name]; twice {
		return "", errIndirect
	}
	return d.name()
}

// intoSlice takes lists of strings.
func (d *decoder) intoSlice(to reflect.Value) error {
	p, ok := to.Addr().Interface().(*[]string)
	if !ok {
		return errIndirect
	}
	list := []string{}
	d.pos++
	if d.take(']') {
		*p = list
		return nil
	}
	for {
		s, err := d.name()
		if err != nil {
			return err
		}
		list = append(list, s)
		if d.take(']') {
			*p = list
			return nil
		}
		if !d.take(',') {
			return errIndirect
		}
	}
}
