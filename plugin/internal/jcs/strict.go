package jcs

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
)

// Strict decodes one JSON text into v, a non-nil pointer to a struct made of
// strings, booleans, integers, structs, pointers to structs, slices, maps with
// string keys, and any. It refuses what Decode refuses, and also a member that
// the struct does not name (case counts: "ISS" is not "iss", which
// encoding/json would take for it), a value of another type, null, and an
// integer that is not written as a plain one within 2^53-1.
//
// What is ordinary is parsed once, the rest twice, to the same end. On an error v
// is not changed.
func Strict(raw []byte, v any) error {
	target := reflect.ValueOf(v)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		return fmt.Errorf("decoding into %T: want a non-nil pointer", v)
	}
	fresh := reflect.New(target.Type().Elem()).Elem()
	if direct(raw, fresh) != nil {
		fresh.SetZero()
		if err := byTree(raw, fresh); err != nil {
			return err
		}
	}
	target.Elem().Set(fresh)
	return nil
}

// byTree decodes into a zero value: what Strict means, and what its errors say.
func byTree(raw []byte, to reflect.Value) error {
	tree, err := Decode(raw)
	if err != nil {
		return err
	}
	return assign(tree, to)
}

func assign(v any, to reflect.Value) error {
	switch to.Kind() {
	case reflect.Interface:
		if v != nil {
			to.Set(reflect.ValueOf(v))
		}
		return nil
	case reflect.String:
		s, ok := v.(string)
		if !ok {
			return wrongType(v, "a string")
		}
		to.SetString(s)
		return nil
	case reflect.Bool:
		b, ok := v.(bool)
		if !ok {
			return wrongType(v, "a boolean")
		}
		to.SetBool(b)
		return nil
	case reflect.Int, reflect.Int64:
		return assignInteger(v, to)
	case reflect.Pointer:
		to.Set(reflect.New(to.Type().Elem()))
		return assign(v, to.Elem())
	case reflect.Slice:
		return assignSlice(v, to)
	case reflect.Map:
		return assignMap(v, to)
	case reflect.Struct:
		return assignStruct(v, to)
	}
	return fmt.Errorf("cannot decode into %s", to.Type())
}

func assignInteger(v any, to reflect.Value) error {
	number, ok := v.(json.Number)
	if !ok {
		return wrongType(v, "an integer")
	}
	n, err := strconv.ParseInt(string(number), 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != string(number) {
		return fmt.Errorf("got number %.40q, want a plain integer", string(number))
	}
	if n > maxSafeInteger || n < -maxSafeInteger || to.OverflowInt(n) {
		return fmt.Errorf("integer %d is past 2^53-1", n)
	}
	to.SetInt(n)
	return nil
}

func assignSlice(v any, to reflect.Value) error {
	list, ok := v.([]any)
	if !ok {
		return wrongType(v, "an array")
	}
	to.Set(reflect.MakeSlice(to.Type(), len(list), len(list)))
	for i, item := range list {
		err := assign(item, to.Index(i))
		if err != nil {
			return fmt.Errorf("item %d: %w", i, err)
		}
	}
	return nil
}

func assignMap(v any, to reflect.Value) error {
	object, ok := v.(map[string]any)
	if !ok {
		return wrongType(v, "an object")
	}
	if to.Type().Key().Kind() != reflect.String {
		return fmt.Errorf("cannot decode into %s", to.Type())
	}
	to.Set(reflect.MakeMapWithSize(to.Type(), len(object)))
	// In the order of the names, so that of several errors always the same
	// one is told.
	for _, name := range slices.Sorted(maps.Keys(object)) {
		value := reflect.New(to.Type().Elem()).Elem()
		err := assign(object[name], value)
		if err != nil {
			return fmt.Errorf("member %.80q: %w", name, err)
		}
		to.SetMapIndex(reflect.ValueOf(name).Convert(to.Type().Key()), value)
	}
	return nil
}

func assignStruct(v any, to reflect.Value) error {
	object, ok := v.(map[string]any)
	if !ok {
		return wrongType(v, "an object")
	}
	names, err := membersIn(to.Type())
	if err != nil {
		return err
	}
	used := 0
	for i, name := range names {
		member, present := object[name]
		if !present {
			continue
		}
		used++
		err := assign(member, to.Field(i))
		if err != nil {
			return fmt.Errorf("member %q: %w", name, err)
		}
	}
	if used == len(object) {
		return nil
	}
	return unknownMember(object, names)
}

func errNoName(field reflect.StructField, t reflect.Type) error {
	return fmt.Errorf("field %s of %s has no JSON name", field.Name, t)
}

// unknownMember names the least unknown member, so that the error does not
// depend on the order of a map.
func unknownMember(object map[string]any, names members) error {
	least, found := "", false
	for name := range object {
		if !slices.Contains(names, name) && (!found || name < least) {
			least, found = name, true
		}
	}
	if !found {
		return errors.New("unknown member")
	}
	return fmt.Errorf("unknown member %.80q", least)
}

// wrongType says what was found in JSON's own words.
func wrongType(v any, want string) error {
	got := "null"
	switch v.(type) {
	case string:
		got = "a string"
	case bool:
		got = "a boolean"
	case json.Number:
		got = "a number"
	case []any:
		got = "an array"
	case map[string]any:
		got = "an object"
	}
	return fmt.Errorf("got %s, want %s", got, want)
}
