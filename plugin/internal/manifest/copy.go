package manifest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// copier copies a tree of another maker, and makes it one of ours.
type copier struct{ budget *budget }

// copy returns the copy, or what is wrong with v.
func (c *copier) copy(v any, depth int) (any, string) {
	if depth > MaxDepth {
		// Also the end of a tree that holds itself.
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
	case map[string]any:
		if v == nil {
			return nil, ""
		}
		out := make(map[string]any, len(v))
		for k, x := range v {
			if _, problem := c.str(k); problem != "" {
				return nil, problem
			}
			y, problem := c.copy(x, depth+1)
			if problem != "" {
				return nil, problem
			}
			out[k] = y
		}
		return out, ""
	case []any:
		if v == nil {
			return nil, ""
		}
		out := make([]any, len(v))
		for i, x := range v {
			y, problem := c.copy(x, depth+1)
			if problem != "" {
				return nil, problem
			}
			out[i] = y
		}
		return out, ""
	}
	return number(v)
}

func (c *copier) str(s string) (any, string) {
	if !utf8.ValidString(s) {
		return nil, "invalid UTF-8 in a string"
	}
	if !c.budget.spend(len(s)) {
		return nil, tooLarge
	}
	return s, ""
}

func number(v any) (any, string) {
	switch v := v.(type) {
	case json.Number:
		if n := numberLen([]byte(v)); n == 0 || n != len(v) {
			return nil, "malformed number " + quote(string(v))
		}
		return v, ""
	case int:
		return json.Number(strconv.Itoa(v)), ""
	case int32:
		return json.Number(strconv.FormatInt(int64(v), 10)), ""
	case int64:
		return json.Number(strconv.FormatInt(v, 10)), ""
	case uint32:
		return json.Number(strconv.FormatUint(uint64(v), 10)), ""
	case uint64:
		return json.Number(strconv.FormatUint(v, 10)), ""
	case float32:
		return float(float64(v))
	case float64:
		return float(v)
	}
	return nil, fmt.Sprintf("a value of type %T, which JSON does not have", v)
}
