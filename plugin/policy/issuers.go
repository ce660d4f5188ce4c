package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/keys"
	"github.com/syncgate/syncgate/plugin/receipt"
)

func (v *validator) issuerTable() {
	v.issuers = map[string]gate.Issuer{}
	v.keys = map[string][]receipt.Key{}
	ordinary := 0
	for _, d := range v.doc.Issuers {
		if !d.BreakGlass {
			ordinary++
		}
	}
	if ordinary == 0 {
		v.fail("issuers", "no issuer but break-glass; want at least one")
	}
	var names []string
	for i, d := range v.doc.Issuers {
		path := item("issuers", i)
		names = append(names, d.Name)
		if !v.word(path+".name", d.Name, nameWord, "a name of at most 63 letters, digits, '.', '_' or '-'") {
			continue
		}
		v.issuers[d.Name] = v.issuer(path, d, ordinary > 1)
	}
	unique(v, "issuers", names)
	v.keysAreDistinct()
}

func (v *validator) issuer(path string, d issuerDoc, several bool) gate.Issuer {
	out := gate.Issuer{
		Issuer:       receipt.Issuer{Name: d.Name, Algorithms: d.Algorithms, Keys: v.keySet(path, d)},
		Categories:   categories(d.Categories),
		Subjects:     globs(d.Subjects),
		Environments: d.Environments,
		Retired:      map[string]bool{},
		MaxLifetime:  defaultMaxLifetime,
		BreakGlass:   d.BreakGlass,
	}
	if d.MaxLifetime != nil {
		out.MaxLifetime = int64(*d.MaxLifetime)
		if out.MaxLifetime == 0 {
			v.fail(path+".maxLifetime", "0 lets no receipt count")
		}
	}
	for i, a := range d.Algorithms {
		if !slices.Contains(receipt.Algorithms(), a) {
			v.fail(item(path+".algorithms", i), "got %.40q, want one of %s", a, strings.Join(receipt.Algorithms(), ", "))
		}
	}
	v.notEmpty(path, map[string]bool{
		"algorithms": d.Algorithms != nil && len(d.Algorithms) == 0, "categories": d.Categories != nil && len(d.Categories) == 0,
		"subjects": d.Subjects != nil && len(d.Subjects) == 0, "environments": d.Environments != nil && len(d.Environments) == 0})
	unique(v, path+".algorithms", d.Algorithms)
	unique(v, path+".categories", d.Categories)
	unique(v, path+".subjects", d.Subjects)
	v.subjects(path, d, several)
	out.AllSubjects = len(d.Subjects) == 0
	known := v.knownEnvironments()
	for i, e := range d.Environments {
		if !known[e] {
			v.fail(item(path+".environments", i), "%.40q is not an environment of this policy", e)
		}
	}
	for i, id := range d.Retired {
		out.Retired[id] = true
		// A typo would leave the key good, and a retired key that is no longer
		// in the set is unknown: what runs would not go on.
		if len(v.keys[d.Name]) > 0 && !hasKey(v.keys[d.Name], id) {
			v.fail(item(path+".retired", i), "key ID %.80q is not in %.200q; retired keys stay there", id, d.Keys.File)
		}
	}
	for _, k := range v.keys[d.Name] {
		if !fits(k, d.Algorithms) {
			v.fail(path+".algorithms", "none fits the key %.80q", k.ID)
		}
	}
	return out
}

// notEmpty refuses a list that is there and empty: it reads like "none" and
// would mean "all".
func (v *validator) notEmpty(path string, empty map[string]bool) {
	for _, name := range []string{"algorithms", "categories", "subjects", "environments"} {
		if empty[name] {
			v.fail(path+"."+name, "an empty list; leave it out to mean all")
		}
	}
}

func (v *validator) subjects(path string, d issuerDoc, several bool) {
	if len(d.Subjects) == 0 && several && !d.BreakGlass {
		v.fail(path+".subjects", "missing: with a second issuer, say what each may sign, for example %q", "*/*/shop-*/*")
	}
	for i, s := range d.Subjects {
		parts := strings.Split(string(s), "/")
		if len(parts) != 4 || slices.Contains(parts, "") {
			v.fail(item(path+".subjects", i), "got %.40q, want group/Kind/namespace/name, each with '*' for any run", string(s))
		}
	}
}

func (v *validator) keySet(path string, d issuerDoc) []receipt.Key {
	if d.Keys.File == "" {
		v.fail(path+".keys.file", "missing: the public keys of this issuer")
		return nil
	}
	data, err := v.open(d.Keys.File)
	if err != nil {
		v.failNamed(path+".keys.file", d.Keys.File, "reading %.200q: %s", d.Keys.File, cause(err))
		return nil
	}
	list, err := keys.LoadJWKS(data)
	if err != nil {
		v.failNamed(path+".keys.file", d.Keys.File, "reading %.200q: %v", d.Keys.File, err)
		return nil
	}
	v.keys[d.Name] = list
	return list
}

// failNamed is a fault of a file that the policy names.
func (v *validator) failNamed(path, file, format string, args ...any) {
	v.failWith(gate.KeysUnavailable, path, format, args...)
	v.errs[len(v.errs)-1].Named = file
}

func fits(k receipt.Key, algorithms []string) bool {
	if len(algorithms) == 0 {
		return true
	}
	for _, a := range receipt.AlgorithmsFor(k.Public) {
		if slices.Contains(algorithms, a) {
			return true
		}
	}
	return false
}

// keysAreDistinct: "a key or key ID under two issuers" would let one party
// count as two.
func (v *validator) keysAreDistinct() {
	type owner struct{ issuer, id string }
	ids, thumbprints := map[string]owner{}, map[string]owner{}
	for i, d := range v.doc.Issuers {
		path := item("issuers", i) + ".keys.file"
		for _, k := range v.keys[d.Name] {
			if o, taken := ids[k.ID]; taken && o.issuer != d.Name {
				v.fail(path, "key ID %.80q is also one of issuer %q", k.ID, o.issuer)
				continue
			}
			ids[k.ID] = owner{d.Name, k.ID}
			o, taken := thumbprints[k.Thumbprint]
			switch {
			case taken && o.issuer != d.Name:
				v.fail(path, "key %.80q is the key %.80q of issuer %q", k.ID, o.id, o.issuer)
			case taken && o.id != k.ID:
				// Retiring one name of it would leave the other good.
				v.fail(path, "key %.80q is the key %.80q under another ID", k.ID, o.id)
			default:
				thumbprints[k.Thumbprint] = owner{d.Name, k.ID}
			}
		}
	}
}

// active reports whether an issuer has a key that is not retired.
func (v *validator) active(name string) bool {
	for _, k := range v.keys[name] {
		if !v.issuers[name].Retired[k.ID] {
			return true
		}
	}
	return false
}

func hasKey(list []receipt.Key, id string) bool {
	return slices.ContainsFunc(list, func(k receipt.Key) bool { return k.ID == id })
}

// revocationList reads and verifies the list. Only the issuers that are named
// for it may sign it, and not with a retired key: whoever stole that one could
// take revocations back.
func (v *validator) revocationList() *gate.Revocations {
	d := v.doc.Revocations
	v.rules = len(v.loaded)
	if d == nil {
		return nil
	}
	if d.File == "" {
		v.fail("revocations.file", "missing: the signed list")
	}
	if len(d.Issuers) == 0 {
		v.fail("revocations.issuers", "missing: who may sign the list")
	}
	unique(v, "revocations.issuers", d.Issuers)
	for i, name := range d.Issuers {
		if _, known := v.issuers[name]; !known {
			v.fail(item("revocations.issuers", i), "%.40q is not an issuer of this policy", name)
		}
	}
	if len(v.errs) > 0 {
		return nil // the list would be called invalid for want of keys
	}
	data, err := v.open(d.File)
	if err != nil {
		v.failNamed("revocations.file", d.File, "reading %.200q: %s", d.File, cause(err))
		return nil
	}
	out, err := d.verify(data, v.issuers)
	if err != nil {
		v.failNamed("revocations.file", d.File, "%v", err)
		return nil
	}
	return out
}

// verify returns the list that a file holds, if one of the issuers that may has
// signed it.
func (d *revocationsDoc) verify(data []byte, issuers map[string]gate.Issuer) (*gate.Revocations, error) {
	list, err := receipt.VerifyRevocations(strings.TrimSpace(string(data)), func(name string) (receipt.Issuer, bool) {
		issuer, known := issuers[name]
		if !known || !slices.Contains(d.Issuers, name) {
			return receipt.Issuer{}, false
		}
		good := issuer.Issuer
		good.Keys = slices.DeleteFunc(slices.Clone(good.Keys), func(k receipt.Key) bool { return issuer.Retired[k.ID] })
		return good, true
	})
	if err != nil {
		return nil, fmt.Errorf("verifying %.200q: %w", d.File, err)
	}
	if list.Serial < d.MinSerial {
		return nil, fmt.Errorf("%.200q has serial %d, want at least %d", d.File, list.Serial, d.MinSerial)
	}
	out := &gate.Revocations{List: list}
	if d.MaxAge != nil {
		out.StaleAt = list.Issued + int64(*d.MaxAge)
	}
	return out, nil
}
