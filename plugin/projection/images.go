package projection

import (
	"errors"
	"sort"
)

// EachImage calls fn for every image reference of an object, in the order of
// their paths, and replaces it by what fn returns. All errors are joined; on
// any error the object is left as it was.
func EachImage(obj map[string]any, fn func(path, ref string) (string, error)) error {
	type place struct {
		path string
		tree map[string]any
		key  string
	}
	var places []place
	visit := func(path string, tree map[string]any, key string) {
		places = append(places, place{path, tree, key})
	}
	eachPodSpec(obj, func(at string, spec map[string]any) {
		for _, list := range containerLists {
			items, _ := spec[list].([]any)
			for i, x := range items {
				if c, ok := x.(map[string]any); ok {
					visit(itemPath(at+"."+list, i, c)+".image", c, "image")
				}
			}
		}
		volumes, _ := spec["volumes"].([]any)
		for i, x := range volumes {
			v, _ := x.(map[string]any)
			if img, ok := v["image"].(map[string]any); ok {
				visit(itemPath(at+".volumes", i, v)+".image.reference", img, "reference")
			}
		}
	})
	sort.SliceStable(places, func(i, j int) bool { return places[i].path < places[j].path })
	replaced := make([]string, len(places))
	var errs []error
	for i, p := range places {
		ref, ok := p.tree[p.key].(string)
		if !ok {
			continue // absent, or malformed: Project says so
		}
		r, err := fn(p.path, ref)
		if err != nil {
			errs = append(errs, err)
		}
		replaced[i] = r
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	for i, p := range places {
		if ref, ok := p.tree[p.key].(string); ok && replaced[i] != ref {
			p.tree[p.key] = replaced[i]
		}
	}
	return nil
}

func itemPath(list string, i int, item map[string]any) string {
	if name, ok := item["name"].(string); ok && name != "" {
		return list + key(name)
	}
	return index(list, i)
}

// eachPodSpec calls fn with every pod spec of an object and its path.
func eachPodSpec(obj map[string]any, fn func(path string, spec map[string]any)) {
	if k := lookup(obj); k != nil && k.pod != nil {
		w := &walker{}
		if spec := w.object(obj, k.pod.spec); spec != nil {
			fn(k.pod.spec, spec)
		}
	}
}
