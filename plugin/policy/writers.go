package policy

import (
	"slices"
	"strings"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/projection"
)

// trustedWriters returns what an entry stands for: itself, or the parts of its
// preset.
func (v *validator) trustedWriters(path string, d writerDoc, a Admission) []TrustedWriter {
	p := preset{user: d.User, parts: []part{{kinds: d.Kinds, names: globs(d.Names), categories: categories(d.Categories), images: globs(d.Images)}}}
	if d.Preset != "" {
		known := false
		if p, known = findPreset(d.Preset); !known {
			v.fail(path+".preset", "got %.40q, want one of %s", d.Preset, strings.Join(presetNames(), ", "))
			return nil
		}
		if d.User != "" {
			p.user = d.User
		}
	}
	v.writerUser(path, d, p, a)
	v.writerKinds(path+".kinds", d.Kinds)
	unique(v, path+".categories", d.Categories)
	if d.Preset != "" {
		p.parts = v.narrowed(path, d, p)
	} else if len(d.Categories) == 0 {
		v.fail(path+".categories", "missing: what this writer may write")
	}
	v.writerNamespaces(path+".namespaces", d, p.parts)
	exempt := v.exempt(path, d, p.parts)
	var out []TrustedWriter
	for i, x := range p.parts {
		w := TrustedWriter{
			Preset: d.Preset, User: p.user, Namespaces: globs(d.Namespaces),
			Kinds: x.kinds, Names: x.names, Categories: x.categories, Images: x.images, Exempt: exempt[i],
		}
		if d.Until != nil {
			w.Until = int64(*d.Until)
		}
		out = append(out, w)
	}
	return out
}

func (v *validator) writerUser(path string, d writerDoc, p preset, a Admission) {
	if p.user == "" && d.Preset != "" {
		v.fail(path+".user", "missing: %s runs as the service account of a driver; name that", d.Preset)
		return
	}
	if v.user(path+".user", p.user) {
		v.impersonation(path+".user", p.user, d.AcceptImpersonation, a)
	}
	if p.until && d.Until == nil {
		v.fail(path+".until", "missing: %s writes everything that was backed up; trust it for a restore and no longer", d.Preset)
	}
}

func (v *validator) writerKinds(path string, kinds []string) {
	for i, k := range kinds {
		v.word(item(path, i), k, kindRefWord, "a kind such as Pod")
	}
	unique(v, path, kinds)
}

// writerNamespaces: '*' is every namespace and not what has none, so that a
// writer of Pods everywhere is not one of Namespaces.
func (v *validator) writerNamespaces(path string, d writerDoc, parts []part) {
	if len(d.Namespaces) == 0 {
		v.fail(path, "missing: where this writer is trusted")
		return
	}
	for i, g := range d.Namespaces {
		v.word(item(path, i), string(g), namespaceGlob, "a namespace, with '*' for any run, or '-' for cluster-scoped objects")
	}
	if slices.Contains(d.Namespaces, ClusterScope) {
		return
	}
	for _, x := range parts {
		for _, k := range x.kinds {
			for _, known := range tableKinds(kindRef(k)) {
				if known.ClusterScoped {
					v.fail(path, "%s has no namespace; write '-'", k)
				}
			}
		}
	}
}

// narrowed returns the parts of a preset as far as the entry lets them: kinds
// and categories take away, names and images stand instead of the preset's.
func (v *validator) narrowed(path string, d writerDoc, p preset) []part {
	kinds, all := p.kinds(), p.categories()
	for i, k := range d.Kinds {
		if len(kinds) > 0 && !slices.Contains(kinds, k) {
			v.fail(item(path+".kinds", i), "preset %s does not write %.40q but %s; for more, an entry without preset", p.name, k, strings.Join(kinds, ", "))
		}
	}
	for i, c := range d.Categories {
		if !strings.HasPrefix(string(c), "x-") && !slices.Contains(all, projection.Category(c)) {
			v.fail(item(path+".categories", i), "preset %s does not write %q; for more, an entry without preset", p.name, string(c))
		}
	}
	var out []part
	for _, x := range p.parts {
		if len(d.Kinds) > 0 {
			x.kinds = slices.DeleteFunc(slices.Clone(d.Kinds), func(k string) bool { return len(x.kinds) > 0 && !slices.Contains(x.kinds, k) })
			if len(x.kinds) == 0 {
				continue
			}
		}
		if len(d.Categories) > 0 {
			x.categories = categories(slices.DeleteFunc(slices.Clone(d.Categories), func(c category) bool {
				return !strings.HasPrefix(string(c), "x-") && !slices.Contains(x.categories, projection.Category(c))
			}))
			if len(x.categories) == 0 {
				continue
			}
		}
		if len(d.Names) > 0 {
			x.names = globs(d.Names)
		}
		if len(d.Images) > 0 && slices.Contains(x.categories, projection.Image) {
			x.images = globs(d.Images)
		}
		out = append(out, x)
	}
	if len(out) == 0 && len(v.errs) == 0 {
		v.fail(path, "these kinds and categories leave nothing of preset %s", p.name)
	}
	return out
}

// exempt says which parts are never sent to the webhook. That is decided by a
// condition of the API server, which sees the user, the kind, the namespace and
// the name, but no images and no clock, and must work when the webhook does not.
func (v *validator) exempt(path string, d writerDoc, parts []part) []bool {
	out := make([]bool, len(parts))
	if !d.Exempt {
		return out
	}
	if d.Until != nil {
		v.fail(path+".until", "given beside exempt: a condition of the API server sees no clock, so the exemption would not end")
	}
	if len(d.Images) > 0 {
		v.fail(path+".images", "nobody judges the images of an exempt writer")
	}
	for i, x := range parts {
		out[i] = len(x.kinds) > 0 && len(x.images) == 0 && !slices.ContainsFunc(x.kinds, func(k string) bool { return k != "ReplicaSet" && k != "Pod" })
	}
	if len(d.Images) == 0 && len(parts) > 0 && !slices.Contains(out, true) {
		if d.Preset != "" {
			v.fail(path+".exempt", "preset %s writes no ReplicaSet or Pod of any image; nothing of it can be exempt", d.Preset)
		} else {
			v.fail(path+".exempt", "for writers of ReplicaSet and Pod alone; name them in kinds")
		}
	}
	return out
}

// Write is one write of an object as the API server shows it to the webhook.
type Write struct {
	User        string
	Group, Kind string
	Namespace   string // empty: the object is cluster-scoped
	Name        string
	Now         int64 // seconds since the epoch
}

// Trusted returns the trusted writers that a write may be by, in the order of
// the policy; [TrustedWriter.Allows] then says what it may be of.
func (a Admission) Trusted(w Write) []TrustedWriter {
	var out []TrustedWriter
	for _, t := range a.TrustedWriters {
		if t.User == w.User && (t.Until == 0 || w.Now < t.Until) && t.in(w.Namespace) && t.writes(w.Group, w.Kind) &&
			(len(t.Names) == 0 || anyMatches(t.Names, w.Name)) {
			out = append(out, t)
		}
	}
	return out
}

func (t TrustedWriter) in(namespace string) bool {
	if namespace == "" {
		return slices.Contains(t.Namespaces, ClusterScope)
	}
	return anyMatches(t.Namespaces, namespace)
}

func (t TrustedWriter) writes(group, kind string) bool {
	return len(t.Kinds) == 0 || slices.ContainsFunc(t.Kinds, func(k string) bool { return kindRef(k).matches(group, kind) })
}

// Allows reports whether the writer may write, without a receipt, what an object
// has in a category: the category is one of its own, and, where Images limit,
// every image of the object is one of them. What is created with values that
// only tighten needs no trust; old is nil then.
func (t TrustedWriter) Allows(c projection.Category, object, old *projection.Projection) bool {
	if !object.Valid() {
		return false
	}
	if !slices.Contains(t.Categories, c) {
		return old == nil && object.Harmless(c)
	}
	if len(t.Images) == 0 || c != projection.Image {
		return true
	}
	return !slices.ContainsFunc(object.Images(), func(l projection.Leaf) bool {
		ref, ok := l.Value.(string)
		return !ok || !anyMatches(t.Images, ref)
	})
}

func anyMatches(globs []gate.Glob, s string) bool {
	return slices.ContainsFunc(globs, func(g gate.Glob) bool { return g.Match(s) })
}
