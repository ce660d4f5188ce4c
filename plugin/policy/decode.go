package policy

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"github.com/syncgate/syncgate/plugin/gate"
)

// decoder fills structs from YAML and remembers the line of every field, so
// that what is found wrong later can be named by line too. yaml.v3's own strict
// mode knows neither paths nor wrong-case keys, converts numbers to strings,
// and takes an empty value for an absent one.
type decoder struct {
	file  string
	lines map[string]int // path -> line
	errs  Errors
}

// fail records an error at a path, whose line is that of the nearest field
// around it.
func (d *decoder) fail(path, format string, args ...any) {
	d.failWith(gate.PolicyInvalid, path, format, args...)
}

func (d *decoder) failWith(reason gate.Reason, path, format string, args ...any) {
	line, found := 0, false
	for at := path; !found && at != ""; at = at[:max(0, strings.LastIndexAny(at, ".["))] {
		line, found = d.lines[at]
	}
	d.errs = append(d.errs, &Error{Reason: reason, File: d.file, Line: line, Path: path, Msg: fmt.Sprintf(format, args...)})
}

func (d *decoder) failAt(n *yaml.Node, path, format string, args ...any) {
	d.errs = append(d.errs, &Error{Reason: gate.PolicyInvalid, File: d.file, Line: n.Line, Path: path, Msg: fmt.Sprintf(format, args...)})
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// document decodes the one document of a file into a pointer to a struct.
func (d *decoder) document(data []byte, into any) {
	if len(data) > maxFile {
		d.fail("", "%d bytes, want at most %d", len(data), maxFile)
		return
	}
	if isPEM(string(data)) {
		d.fail("", "this is a PEM file; want a %s", FileKind)
		return
	}
	y := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	err := y.Decode(&doc)
	if err == nil {
		err = y.Decode(&second)
		if err == nil {
			d.failAt(&second, "", "a second document; a policy is one")
			return
		}
	} else if errors.Is(err, io.EOF) {
		d.fail("", "empty; want a %s", FileKind)
		return
	}
	if !errors.Is(err, io.EOF) {
		line := 0
		if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
			line, _ = strconv.Atoi(m[1])
		}
		d.failAt(&yaml.Node{Line: line}, "", "reading YAML: %s", yamlLine.ReplaceAllString(err.Error(), ""))
		return
	}
	if len(doc.Content) != 1 || doc.Content[0].ShortTag() == "!!null" {
		d.fail("", "empty; want a %s", FileKind)
		return
	}
	if pem := findPEM(&doc); pem != nil {
		d.failAt(pem, "", "a PEM block; a policy holds no key, it names the file of a key set")
		return
	}
	d.value(doc.Content[0], reflect.ValueOf(into).Elem(), "")
}

// isPEM recognises what may be a private key, which no message may show.
func isPEM(s string) bool { return strings.HasPrefix(strings.TrimSpace(s), "-----BEGIN") }

// findPEM returns the first key or value that holds a PEM block: every check
// that comes later may quote what it finds.
func findPEM(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.ScalarNode && strings.Contains(n.Value, "-----BEGIN") {
		return n
	}
	for _, c := range n.Content {
		if found := findPEM(c); found != nil {
			return found
		}
	}
	return nil
}

// value decodes n into v, which is settable.
func (d *decoder) value(n *yaml.Node, v reflect.Value, path string) {
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		d.failAt(n, path, "anchors and aliases are not used in a policy")
		return
	case n.ShortTag() == "!!null":
		d.failAt(n, path, "no value")
		return
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.value(n, v.Elem(), path)
		return
	}
	if t, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if n.Kind != yaml.ScalarNode {
			d.failAt(n, path, "got %s, want a word", kindName(n))
			return
		}
		if err := t.UnmarshalText([]byte(n.Value)); err != nil {
			d.failAt(n, path, "%v", err)
		}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.object(n, v, path)
	case reflect.Slice:
		d.list(n, v, path)
	case reflect.Map:
		d.table(n, v, path)
	default:
		d.scalar(n, v, path)
	}
}

func (d *decoder) object(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.MappingNode {
		got := kindName(n)
		if path == "" && n.Kind == yaml.ScalarNode {
			got = "text" // of a file that is no policy: nobody knows what it holds
		}
		d.failAt(n, path, "got %s, want keys and values", got)
		return
	}
	fields := map[string]int{}
	var names []string
	for i := range v.NumField() {
		name := v.Type().Field(i).Tag.Get("yaml")
		fields[name] = i
		names = append(names, name)
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		name := key.Value
		at := join(path, name)
		index, known := fields[name]
		switch {
		case key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str":
			d.failAt(key, path, "a key that is not a word")
		case !known:
			d.unknown(key, path, names)
		case seen[name]:
			d.failAt(key, at, "duplicate key")
		default:
			seen[name] = true
			d.lines[at] = key.Line
			d.value(value, v.Field(index), at)
		}
	}
}

func (d *decoder) unknown(key *yaml.Node, path string, names []string) {
	for _, name := range names {
		if strings.EqualFold(name, key.Value) {
			d.failAt(key, path, "unknown key %q; it is spelt %q", key.Value, name)
			return
		}
	}
	slices.Sort(names)
	d.failAt(key, path, "unknown key %.40q, want one of %s", key.Value, strings.Join(names, ", "))
}

func (d *decoder) list(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.SequenceNode {
		d.failAt(n, path, "got %s, want a list", kindName(n))
		return
	}
	// Never nil: an empty list is said, an absent one is not.
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, item := range n.Content {
		at := fmt.Sprintf("%s[%d]", path, i)
		d.lines[at] = item.Line
		d.value(item, v.Index(i), at)
	}
}

// table decodes a map whose keys are the operator's.
func (d *decoder) table(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.MappingNode {
		d.failAt(n, path, "got %s, want keys and values", kindName(n))
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		at := join(path, key.Value)
		k := reflect.ValueOf(key.Value)
		switch {
		case key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str":
			d.failAt(key, path, "a key that is not a word")
		case v.MapIndex(k).IsValid():
			d.failAt(key, at, "duplicate key")
		default:
			d.lines[at] = key.Line
			x := reflect.New(v.Type().Elem()).Elem()
			d.value(value, x, at)
			v.SetMapIndex(k, x)
		}
	}
}

// scalar takes a value only for what it is: a name such as 123 or true must be
// quoted, so that it cannot be one thing here and another elsewhere.
func (d *decoder) scalar(n *yaml.Node, v reflect.Value, path string) {
	switch tag := n.ShortTag(); {
	case n.Kind != yaml.ScalarNode:
	case v.Kind() == reflect.String && tag == "!!str":
		if n.Value == "" {
			d.failAt(n, path, "empty")
			return
		}
		v.SetString(n.Value)
		return
	case v.Kind() == reflect.Bool && (n.Value == "true" || n.Value == "false") && tag == "!!bool":
		v.SetBool(n.Value == "true")
		return
	case v.Kind() == reflect.Int64 && tag == "!!int":
		i, err := strconv.ParseInt(n.Value, 10, 64)
		if err == nil && i >= 0 && strconv.FormatInt(i, 10) == n.Value {
			v.SetInt(i)
			return
		}
	}
	want := map[reflect.Kind]string{reflect.String: "a string", reflect.Bool: "true or false", reflect.Int64: "a whole number"}[v.Kind()]
	d.failAt(n, path, "got %s, want %s", kindName(n), want)
}

func kindName(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "keys and values"
	case yaml.SequenceNode:
		return "a list"
	}
	return fmt.Sprintf("%.40q", n.Value)
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
