package projection

import (
	"errors"
	"sort"
	"strings"
)

// imagePlace is where an image reference stands in an object.
type imagePlace struct {
	path string
	tree map[string]any
	key  string
}

// EachImage calls fn for every image reference of an object, in the order of
// their paths, and replaces it by what fn returns. These are the leaves of
// category image. All errors are joined; on any error the object is left as it
// was. A reference that is absent or no string is passed over: Project says
// what is wrong with it.
func EachImage(obj map[string]any, fn func(path, ref string) (string, error)) error {
	return eachImage(imagePlaces(obj), fn)
}

func eachImage(places []imagePlace, fn func(path, ref string) (string, error)) error {
	replaced := make([]string, len(places))
	var errs []error
	for i, p := range places {
		r, err := fn(p.path, p.tree[p.key].(string))
		if err != nil {
			errs = append(errs, err)
		}
		replaced[i] = r
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	for i, p := range places {
		if replaced[i] != p.tree[p.key] {
			p.tree[p.key] = replaced[i]
		}
	}
	return nil
}

func imagePlaces(obj map[string]any) []imagePlace {
	if depth(obj, 0) > maxDepth {
		return nil
	}
	var out []imagePlace
	add := func(path string, tree map[string]any, key string) {
		if _, ok := tree[key].(string); ok {
			out = append(out, imagePlace{path, tree, key})
		}
	}
	pods, containers := podPlaces(obj)
	for _, c := range containers {
		add(c.path+".image", c.tree, "image")
	}
	for _, p := range pods {
		volumes, _ := p.spec["volumes"].([]any)
		for i, x := range volumes {
			v, _ := x.(map[string]any)
			img, _ := v["image"].(map[string]any)
			at := index(p.at("volumes"), i)
			if name, ok := v["name"].(string); ok {
				at = p.at("volumes") + key(name)
			}
			add(at+".image.reference", img, "reference")
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].path < out[j].path })
	return out
}

// podPlaces finds the pod specs of an object, of whatever kind, and their
// containers.
func podPlaces(obj map[string]any) ([]*pod, []*container) {
	w := &walker{} // faults are Project's to report
	k := lookup(obj)
	switch {
	case k == nil:
		if s := findPlaces(w, obj); s != nil {
			return s.places, s.all
		}
	case k.pod != nil:
		if spec := w.object(obj, k.pod.spec); spec != nil {
			p := &pod{path: k.pod.spec, spec: spec}
			w.findContainers(p)
			return []*pod{p}, p.containers
		}
	}
	return nil, nil
}

// UnknownImages returns the paths, sorted, of what looks like an image
// reference in a kind outside the table but is not in a container: a string
// under a key "image" or "...Image", a map image: {repository, tag}, and the
// bundle that a Tekton object takes its task from. It is
// neither pinned nor gated; policy (unknownImages) says what becomes of it.
func UnknownImages(obj map[string]any) []string {
	if lookup(obj) != nil || !searched(obj) || depth(obj, 0) > maxDepth {
		return nil
	}
	known := map[string]bool{}
	for _, p := range imagePlaces(obj) {
		known[p.path] = true
	}
	group, _ := groupKind(obj)
	tekton := group == "tekton.dev" // whose bundles are OCI artifacts with what a task runs
	var out []string
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch t := v.(type) {
		case map[string]any:
			for k, x := range t {
				at := fieldName(k)
				if path != "" {
					at = path + "." + at
				}
				switch {
				case k == "metadata" || k == "status":
				case imageKey(k) && looksLikeImage(k, x), tekton && k == "bundle" && looksLikeImage(k, x):
					if !known[at] {
						out = append(out, at)
					}
				case tekton && k == "params" && t["resolver"] == "bundles":
					out = append(out, bundleParams(at, x)...)
				default:
					walk(at, x)
				}
			}
		case []any:
			named := uniqueNames(t)
			for i, x := range t {
				walk(looseItem(path, i, x, named), x)
			}
		}
	}
	walk("", obj)
	sort.Strings(out)
	return out
}

// bundleParams returns the path of the parameter that names the bundle.
func bundleParams(at string, v any) []string {
	params, _ := v.([]any)
	var out []string
	for i, x := range params {
		if p, _ := x.(map[string]any); p["name"] == "bundle" {
			out = append(out, index(at, i)+".value")
		}
	}
	return out
}

func imageKey(k string) bool { return k == "image" || strings.HasSuffix(k, "Image") }

func looksLikeImage(k string, v any) bool {
	switch t := v.(type) {
	case string:
		return t != ""
	case map[string]any:
		_, repository := t["repository"].(string)
		return k == "image" && repository && t["tag"] != nil
	}
	return false
}
