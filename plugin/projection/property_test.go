package projection

import (
	"encoding/json"
	"strings"
	"testing"
)

// unseen are members inside whole specs that do not count.
var unseen = map[string]bool{"weight": true, "caBundle": true, "targetRevision": true}

func TestEveryLeafOfTheCorpusIsSensitive(t *testing.T) {
	var mutants, errors, aliases, defaults int
	eachGated(t, func(d document, p *Projection) {
		before := digestOf(t, d.obj)
		try := func(what string, l Leaf, path []any, to func(any) any) bool {
			mutants++
			after, err := tryDigest(change(d.obj, path, to).(map[string]any))
			if err != nil {
				errors++
			}
			if err == nil && after == before {
				if what != "" {
					t.Errorf("%s: %s %v: %s changes nothing", d.where, l.Path, path, what)
				}
				return false
			}
			return true
		}
		for _, l := range p.Leaves() {
			if list, ok := strings.CutSuffix(l.Path, orderPath); ok {
				path, _ := resolve(d.obj, list)
				try("the first one last", l, path, func(v any) any { return append(append([]any{}, v.([]any)[1:]...), v.([]any)[0]) })
				continue
			}
			path, ok := resolve(d.obj, l.Path)
			if !ok {
				if !madeByRule(l) {
					t.Errorf("%s: no place for %s", d.where, l)
				}
				aliases++
				continue
			}
			if !l.binding && !strings.HasSuffix(l.Path, "#repository") {
				what := "removing it"
				if madeByRule(l) { // what is written is what absence, or an alias, says too
					what = ""
				}
				if !try(what, l, path, func(any) any { return nil }) {
					defaults++
				}
			}
			for _, inner := range scalars(valueAt(d.obj, path), path, nil) {
				if name, ok := inner[len(inner)-1].(string); ok && unseen[name] {
					continue
				}
				what := "another value"
				if strings.HasSuffix(l.Path, ".tolerations") { // holds only those that reach control-plane nodes
					what = ""
				}
				try(what, l, inner, another)
				if len(inner) > len(path) && !try("", l, inner, func(any) any { return nil }) {
					defaults++
				}
			}
			if n := len(path); n > 0 {
				if i, ok := path[n-1].(int); ok {
					try("a second one", l, path[:n-1], func(v any) any { return append(append([]any{}, v.([]any)...), v.([]any)[i]) })
				}
			}
		}
	})
	t.Logf("%d mutants, %d of them malformed, %d that spelled a default out, %d leaves made by a rule", mutants, errors, defaults, aliases)
	if mutants == 0 {
		t.Error("nothing was tried")
	}
}

// madeByRule tells the leaves whose value stands elsewhere or nowhere.
func madeByRule(l Leaf) bool {
	for _, end := range []string{".serviceAccountName", ".executable", ".targetPort", ".podSelector", ".policyTypes", ".value", ".image#repository", ".subjects", ".envFrom[#0].prefix"} {
		if strings.HasSuffix(l.Path, end) {
			return true
		}
	}
	return strings.Contains(l.Path, ".appArmorProfile.") || strings.Contains(l.Path, ".dataSourceRef.")
}

func valueAt(v any, path []any) any {
	for _, at := range path {
		switch k := at.(type) {
		case string:
			v = v.(map[string]any)[k]
		case int:
			v = v.([]any)[k]
		}
	}
	return v
}

// another returns a value that differs from v and from what v may default to.
func another(v any) any {
	switch t := v.(type) {
	case bool:
		return !t
	case json.Number:
		return t + "7"
	case string:
		return "syncgate-" + t + "/x"
	case []any:
		return []any{"syncgate"}
	case map[string]any:
		return map[string]any{"syncgate": "x"}
	}
	return "syncgate"
}

func TestWhatIsNotGatedChangesNothingInTheCorpus(t *testing.T) {
	tried := 0
	eachGated(t, func(d document, _ *Projection) {
		before := digestOf(t, d.obj)
		for what, touch := range untouched {
			obj := clone(d.obj).(map[string]any)
			touch(obj)
			tried++
			if after, err := tryDigest(obj); err != nil || after != before {
				p, _ := Project(d.obj)
				q, _ := Project(obj)
				t.Errorf("%s: %s of a %s changes the digest: %v %v", d.where, what, str(obj["kind"]), err, Diff(p, q))
			}
		}
	})
	t.Logf("%d edits", tried)
}

// untouched are edits that must pass freely.
var untouched = map[string]func(map[string]any){
	"the status": func(o map[string]any) {
		o["status"] = map[string]any{"image": "x", "containers": []any{map[string]any{"image": "x"}}}
	},
	"the server's own fields": func(o map[string]any) {
		m := sub(o, "metadata")
		m["managedFields"] = []any{map[string]any{"manager": "x", "fieldsV1": map[string]any{"f:spec": map[string]any{}}}}
		m["resourceVersion"], m["uid"], m["creationTimestamp"] = "5", "u", "2026-01-01T00:00:00Z"
		m["generation"] = json.Number("7")
	},
	"tracking of Argo CD": func(o map[string]any) {
		sub(o, "metadata", "annotations")["argocd.argoproj.io/tracking-id"] = "x"
		sub(o, "metadata", "labels")["app.kubernetes.io/instance"] = "x"
	},
	"tracking of Flux": func(o map[string]any) {
		sub(o, "metadata", "labels")["kustomize.toolkit.fluxcd.io/name"] = "x"
		sub(o, "metadata", "labels")["kustomize.toolkit.fluxcd.io/namespace"] = "x"
	},
	"kubectl's record": func(o map[string]any) {
		sub(o, "metadata", "annotations")["kubectl.kubernetes.io/last-applied-configuration"] = "{}"
	},
	"a receipt": func(o map[string]any) { sub(o, "metadata", "annotations")["syncgate.io/receipt"] = "x" },
	"an ordinary annotation of the template, and labels": func(o map[string]any) {
		if k := lookup(o); k != nil && k.pod != nil && !k.pod.isPod {
			m := sub(o, strings.Split(k.pod.meta, ".")...)
			sub(m, "annotations")["checksum/config"] = "x"
			sub(m, "labels")["version"] = "x"
			sub(o, "spec")["replicas"] = json.Number("77")
		}
	},
	"resources, probe timings and ordinary variables": func(o map[string]any) {
		_, containers := podPlaces(o)
		for _, c := range containers {
			claims := sub(c.tree, "resources")["claims"]
			c.tree["resources"] = map[string]any{"limits": map[string]any{"cpu": "7"}, "claims": claims}
			c.tree["imagePullPolicy"], c.tree["terminationMessagePath"] = "Always", "/x"
			for _, probe := range []string{"livenessProbe", "readinessProbe", "startupProbe"} {
				if p, ok := c.tree[probe].(map[string]any); ok {
					p["periodSeconds"], p["failureThreshold"] = json.Number("77"), json.Number("7")
				}
			}
			if env, ok := c.tree["env"].([]any); ok {
				c.tree["env"] = append(env, map[string]any{"name": "SYNCGATE_TEST", "value": "x"})
			}
		}
	},
	"nulls": func(o map[string]any) {
		_, containers := podPlaces(o)
		for _, c := range containers {
			for _, k := range []string{"args", "securityContext", "volumeMounts", "env", "resources", "lifecycle"} {
				if c.tree[k] == nil {
					c.tree[k] = nil
				}
			}
		}
	},
}

// sub returns an object inside an object, made if it is not there.
func sub(o map[string]any, path ...string) map[string]any {
	for _, k := range path {
		m, ok := o[k].(map[string]any)
		if !ok {
			m = map[string]any{}
			o[k] = m
		}
		o = m
	}
	return o
}

func clone(v any) any {
	switch t := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(t))
		for k, x := range t {
			out[k] = clone(x)
		}
		return out
	case []any:
		out := make([]any, len(t))
		for i, x := range t {
			out[i] = clone(x)
		}
		return out
	}
	return v
}

// A tree pruned of everything whose removal alone changes nothing has the
// same projection: no leaf hangs on what is not gated.
func TestATreePrunedToItsLeavesHasTheSameProjection(t *testing.T) {
	pruned, kept := 0, 0
	eachGated(t, func(d document, _ *Projection) {
		before := digestOf(t, d.obj)
		tree := clone(d.obj).(map[string]any)
		for _, path := range scalars(d.obj, nil, nil) {
			name, ok := path[len(path)-1].(string)
			if !ok || twins[name] {
				continue
			}
			after, err := tryDigest(change(d.obj, path, func(any) any { return nil }).(map[string]any))
			if err != nil || after != before {
				kept++
				continue
			}
			delete(valueAt(tree, path[:len(path)-1]).(map[string]any), name)
			pruned++
		}
		if after, err := tryDigest(tree); err != nil || after != before {
			p, _ := Project(d.obj)
			q, _ := Project(tree)
			t.Errorf("%s: %s: pruning changes the projection: %v %v", d.where, str(d.obj["kind"]), err, Diff(p, q))
		}
	})
	t.Logf("%d scalars pruned, %d kept", pruned, kept)
}

// twins are fields of which either alone says the same as both.
var twins = map[string]bool{"serviceAccount": true, "serviceAccountName": true, "dataSource": true, "dataSourceRef": true, "policyTypes": true}
