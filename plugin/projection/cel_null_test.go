package projection

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
)

// An evaluation error would refuse a request, whoever makes it. So the
// conditions are asked about objects of which any part is null or missing.
func TestTheConditionsNeverFailOnWhatIsMissing(t *testing.T) {
	t.Parallel()
	c, n := newConditions(nil, policies["all"]), 0
	try := func(what string, old, obj map[string]any) {
		t.Helper()
		conditions := c.of(obj)
		for mode, pair := range asObjects(old, obj) {
			if mode == "raw" && typed(obj) != nil {
				continue // an API server hands over what it has decoded
			}
			for _, p := range [][2]runtime.Object{pair, {pair[1], pair[0]}} {
				n++
				if o := conditions.update(t, p[0], p[1]); o.err != nil {
					t.Errorf("%s of a %s, %s: on UPDATE: %v", what, str(obj["kind"]), mode, o.err)
				}
				if o := conditions.create(t, p[0]); o.err != nil { // most are just "true"
					t.Errorf("%s of a %s, %s: on CREATE: %v", what, str(obj["kind"]), mode, o.err)
				}
			}
		}
	}
	for i := range kindTable {
		k := &kindTable[i]
		if k.group == admissionGroup {
			continue
		}
		full := wholeObject(t, k)
		bare := map[string]any{"apiVersion": full["apiVersion"], "kind": k.kind}
		try("everything", full, bare)
		if k.pod != nil && k.kind != "Deployment" && k.kind != "Pod" {
			continue // the same expression but for its way to the pod
		}
		seen := map[string]bool{}
		var walk func(v any, path []any, deep int)
		walk = func(v any, path []any, deep int) {
			if len(path) > 0 {
				if at := fmt.Sprint(path); path[0] != "apiVersion" && path[0] != "kind" && !seen[at] {
					seen[at] = true
					try(at+" removed", full, change(full, path, func(any) any { return nil }).(map[string]any))
					if _, item := path[len(path)-1].(int); !item && typed(full) == nil { // decoding a null leaves nothing
						try(at+" null", full, change(full, path, func(any) any { return explicitNull{} }).(map[string]any))
					}
				}
			}
			if deep == 0 {
				return
			}
			switch x := v.(type) {
			case map[string]any:
				for name, y := range x {
					walk(y, append(path[:len(path):len(path)], name), deep-1)
				}
			case []any:
				for i, y := range x {
					walk(y, append(path[:len(path):len(path)], i), deep-1)
				}
			}
		}
		walk(full, nil, 9)
	}
	t.Logf("%d pairs", n)
}

// wholeObject has something in every part of a kind that a condition looks into.
func wholeObject(t testing.TB, k *kindSpec) map[string]any {
	t.Helper()
	switch {
	case k.pod != nil:
		return inKind(t, k, celPod)
	case apiTypes[k.name()] != nil:
		return (&filler{seeds: seedsOf(k)[0]}).object(k, apiTypes[k.name()])
	}
	for _, f := range freeInKinds {
		if o := parse(t, f.doc); str(o["kind"]) == k.kind && strings.HasPrefix(str(o["apiVersion"]), k.group+"/") {
			sub(o, "metadata", "annotations")["a"] = "b"
			sub(o, "metadata", "labels")["a"] = "b"
			return o
		}
	}
	return parse(t, `{apiVersion: `+k.group+`/v1, kind: `+k.kind+`, metadata: {annotations: {a: b}}, spec: {rules: [{backendRefs: [{weight: 1}]}], sources: [{targetRevision: a}], syncPolicy: {automated: {}}, chart: {spec: {version: a}}}}`)
}

// explicitNull stands for a null that is written out.
type explicitNull struct{}

func (explicitNull) MarshalJSON() ([]byte, error) { return []byte("null"), nil }
