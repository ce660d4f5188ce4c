package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v2"
)

// yamlError is a fault of a document; line counts from 1 in its text, 0 if it
// is not known.
type yamlError struct {
	line int
	msg  string
}

const tooLarge = "document too large once its aliases are expanded"

// parseYAML decodes the one document in text with the parser that
// sigs.k8s.io/yaml wraps, so that every scalar means what it means there. It
// returns nil for a document without content.
func parseYAML(text []byte, b *budget) (any, *yamlError) {
	if len(text) > MaxDocument {
		return nil, &yamlError{msg: fmt.Sprintf("YAML document of %d bytes, want at most %d", len(text), MaxDocument)}
	}
	value, err := decodeYAML(text, true)
	if err != nil && bytes.Contains(text, []byte("<<")) && duplicatesOnly(err) {
		// Strict decoding calls it a duplicate when a map overrides what it
		// merged, which is what merging is for.
		if found := mergeConflict(text); found != nil {
			return nil, found
		}
		value, err = decodeYAML(text, false)
	}
	if err != nil {
		return nil, describeYAML(err)
	}
	c := converter{budget: b}
	tree, problem := c.convert(value, 0)
	if problem != "" {
		return nil, &yamlError{msg: problem}
	}
	return tree, nil
}

var errSecondDocument = errors.New("a second document begins after an unusual line break")

func decodeYAML(text []byte, strict bool) (any, error) {
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.SetStrict(strict)
	var value any
	if err := d.Decode(&value); err != nil {
		if err == io.EOF {
			return nil, nil
		}
		return nil, err
	}
	// split looks for \n only. YAML 1.1 knows more line breaks; a reader that
	// takes the first document alone would never show what follows.
	var second any
	switch err := d.Decode(&second); {
	case err == io.EOF:
		return value, nil
	case err == nil:
		return nil, errSecondDocument
	default:
		return nil, err
	}
}

func duplicatesOnly(err error) bool {
	var list *yaml.TypeError
	if !errors.As(err, &list) {
		return false
	}
	for _, s := range list.Errors {
		if !strings.HasSuffix(s, " already set in map") {
			return false
		}
	}
	return true
}

var (
	yamlLine  = regexp.MustCompile(`^line (\d+): `)
	yamlValue = regexp.MustCompile("`[^`]*`?")
	yamlKey   = regexp.MustCompile(`^key (.*) already set in map$`)
)

// describeYAML turns the parser's message into ours, without the values of the
// document that it quotes.
func describeYAML(err error) *yamlError {
	if errors.Is(err, errSecondDocument) {
		return &yamlError{msg: err.Error()}
	}
	msg := err.Error()
	var list *yaml.TypeError
	if errors.As(err, &list) && len(list.Errors) > 0 {
		msg = list.Errors[0]
	}
	msg = strings.TrimPrefix(msg, "yaml: ")
	out := &yamlError{}
	if m := yamlLine.FindStringSubmatch(msg); m != nil {
		out.line, _ = strconv.Atoi(m[1])
		msg = msg[len(m[0]):]
	}
	if m := yamlKey.FindStringSubmatch(msg); m != nil {
		key, unquoted := strconv.Unquote(m[1])
		if unquoted != nil {
			key = m[1]
		}
		out.msg = "duplicate key " + quote(key)
		return out
	}
	if strings.HasPrefix(msg, "invalid map key") {
		msg = "a map or list as a key"
	}
	msg = yamlValue.ReplaceAllString(msg, "a value")
	out.msg = "reading YAML: " + oneLine(msg)
	return out
}

// converter makes a tree of what the YAML parser returns, as sigs.k8s.io/yaml
// does on its way to JSON.
type converter struct{ budget *budget }

// convert returns the tree, or what is wrong with it.
func (c converter) convert(v any, depth int) (any, string) {
	if depth > MaxDepth {
		return nil, fmt.Sprintf("nested deeper than %d levels", MaxDepth)
	}
	if !c.budget.spend(2) {
		return nil, tooLarge
	}
	switch v := v.(type) {
	case nil, bool:
		return v, ""
	case string:
		return c.str(v)
	case int:
		return json.Number(strconv.Itoa(v)), ""
	case int64:
		return json.Number(strconv.FormatInt(v, 10)), ""
	case uint64:
		return json.Number(strconv.FormatUint(v, 10)), ""
	case float64:
		return float(v)
	case []any:
		return c.list(v, depth)
	case map[any]any:
		return c.object(v, depth)
	}
	return nil, fmt.Sprintf("a value of type %T, which JSON does not have", v)
}

func (c converter) str(s string) (any, string) {
	if !utf8.ValidString(s) {
		return nil, "a binary value that is not UTF-8, which JSON does not have"
	}
	if !c.budget.spend(len(s)) {
		return nil, tooLarge
	}
	return s, ""
}

// float prints a number as encoding/json does.
func float(f float64) (any, string) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, "not a number or infinity, which JSON does not have"
	}
	b, err := json.Marshal(f)
	if err != nil {
		return nil, "a number that JSON does not have"
	}
	return json.Number(b), ""
}

func (c converter) list(v []any, depth int) (any, string) {
	out := make([]any, len(v))
	for i, x := range v {
		y, problem := c.convert(x, depth+1)
		if problem != "" {
			return nil, problem
		}
		out[i] = y
	}
	return out, ""
}

func (c converter) object(v map[any]any, depth int) (any, string) {
	out := make(map[string]any, len(v))
	for k, x := range v {
		key, ok := keyText(k)
		if !ok || !utf8.ValidString(key) {
			return nil, "a key that is null, binary, a map or a list"
		}
		if !c.budget.spend(len(key)) {
			return nil, tooLarge
		}
		if _, dup := out[key]; dup {
			// 1 and "1" are two keys in YAML and one in JSON.
			return nil, "duplicate key " + quote(key)
		}
		y, problem := c.convert(x, depth+1)
		if problem != "" {
			return nil, problem
		}
		out[key] = y
	}
	return out, ""
}

// keyText returns a key as sigs.k8s.io/yaml spells it in JSON.
func keyText(k any) (string, bool) {
	switch k := k.(type) {
	case string:
		return k, true
	case int:
		return strconv.Itoa(k), true
	case int64:
		return strconv.FormatInt(k, 10), true
	case bool:
		return strconv.FormatBool(k), true
	case float64:
		switch s := strconv.FormatFloat(k, 'g', -1, 32); s {
		case "+Inf":
			return ".inf", true
		case "-Inf":
			return "-.inf", true
		case "NaN":
			return ".nan", true
		default:
			return s, true
		}
	}
	return "", false
}

// quote quotes untrusted text for a message, cut to a readable length.
func quote(s string) string {
	const most = 100
	if len(s) > most {
		return strconv.QuoteToASCII(s[:most]) + "..."
	}
	return strconv.QuoteToASCII(s)
}

// oneLine makes a foreign message printable ASCII of a bounded length.
func oneLine(s string) string {
	q := quote(s)
	if strings.HasSuffix(q, "...") {
		return q[1:len(q)-4] + "..."
	}
	return q[1 : len(q)-1]
}
