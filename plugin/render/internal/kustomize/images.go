package kustomize

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/syncgate/syncgate/plugin/internal/manifest"
	"sigs.k8s.io/kustomize/api/types"
)

// imageEntries are the `images:` of all kustomizations of a build, and the
// image strings of its inputs. An entry that matches nothing is ignored by
// kustomize without a word, and people then believe that it pins an image.
type imageEntries struct {
	entries []imageEntry
	seen    map[string]bool
	loose   bool // `configurations:` may call any field an image: no guessing
}

type imageEntry struct {
	file string
	types.Image
}

// maxSeen bounds the memory of distinct image strings.
const maxSeen = 100_000

var imageValue = regexp.MustCompile(`(?i)(?:image|reference|value)["']?\s*:\s*["']?([^\s"',}\]]+)`)

// scan remembers what may be an image in the text of a resource or a patch,
// before any kustomization has renamed it.
func (e *imageEntries) scan(data []byte) {
	for _, m := range imageValue.FindAllSubmatch(data, -1) {
		e.note(string(m[1]))
	}
}

func (e *imageEntries) note(ref string) {
	if e.seen == nil {
		e.seen = map[string]bool{}
	}
	if len(e.seen) < maxSeen {
		e.seen[ref] = true
	}
}

func (e *imageEntries) add(file string, k *types.Kustomization) {
	e.loose = e.loose || len(k.Configurations) > 0
	for _, i := range k.Images {
		e.entries = append(e.entries, imageEntry{file, i})
		if i.NewName != "" {
			e.note(i.NewName) // what a base renames, an overlay may name
		}
	}
}

// imageWarnings names the entries that cannot do what they seem to.
func (f *files) imageWarnings(objects []manifest.Object) []string {
	e := &f.images
	if len(e.entries) == 0 {
		return nil
	}
	for _, o := range objects {
		e.collect(o.Tree)
	}
	var out []string
	for _, i := range e.entries {
		switch {
		case hasTag(i.Name):
			out = append(out, fmt.Sprintf("%s: images entry %q: a name with a tag or digest matches, if anything, only images written exactly so; give the name alone", i.file, i.Name))
		case !e.loose && !e.matches(i.Name):
			out = append(out, fmt.Sprintf("%s: images entry %q matches no container", i.file, i.Name))
		}
	}
	return out
}

func (e *imageEntries) collect(v any) {
	switch v := v.(type) {
	case map[string]any:
		for k, item := range v {
			if s, ok := item.(string); ok && (strings.HasSuffix(strings.ToLower(k), "image") || k == "reference") {
				e.note(s)
			}
			e.collect(item)
		}
	case []any:
		for _, item := range v {
			e.collect(item)
		}
	}
}

// matches is kustomize's own test (internal/image.IsImageMatched): a name is
// a regular expression there, anchored at both ends.
func (e *imageEntries) matches(name string) bool {
	re, err := regexp.Compile("^" + name + "(:[a-zA-Z0-9_.{}-]*)?(@[a-zA-Z0-9]+([.+_-][a-zA-Z0-9]+)*:[a-zA-Z0-9_.{}-]*)?$")
	if err != nil {
		return false
	}
	for s := range e.seen {
		if re.MatchString(s) {
			return true
		}
	}
	return false
}

func hasTag(name string) bool {
	return strings.ContainsAny(path.Base(name), ":@")
}
