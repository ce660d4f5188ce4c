package projection

import (
	"fmt"
	"strings"
	"testing"
)

// Every field of the API types, and a field that they do not know, is changed
// in an object that has all of them; every struct, and every other scalar, is
// removed and added.
func TestTheConditionsHideNoChangeOfAnyAPIField(t *testing.T) {
	t.Parallel()
	all, a, r, n := newConditions(nil, policies["all"]), newAgreement(), chance(t), 0
	for i := range kindTable {
		k := &kindTable[i]
		typ, ok := apiTypes[k.name()]
		if !ok || k.group == admissionGroup {
			continue
		}
		for _, seed := range seedsOf(k) {
			f := &filler{seeds: seed}
			tree := f.object(k, typ)
			before := gatedIn(nil, tree, all.requires)
			a.start(tree)
			try := func(path []any, to func(any) any, backwards bool) {
				m := change(tree, path, to).(map[string]any)
				gated := gatedIn(nil, m, all.requires)
				a.checkOne(t, fmt.Sprint(path), all, tree, m, before, gated)
				if backwards {
					a.checkOne(t, fmt.Sprint(path), all, m, tree, gated, before)
				}
				if n++; n%15 == 0 { // decoding costs more than evaluating
					a.checkTyped(t, fmt.Sprint(path), all, tree, m)
				}
			}
			for _, s := range f.scalar {
				if k.pod != nil && s.depthInPod() > walked[k.name()] {
					continue // the same expression; once is enough
				}
				if list := fmt.Sprint(s.path); r.IntN(5) > 0 && (strings.Contains(list, "spec containers ") || strings.Contains(list, "spec initContainers ")) {
					continue // compared by the same text as ephemeral ones
				}
				try(s.path, another, false)
				if r.IntN(2) == 0 {
					try(s.path, func(any) any { return nil }, true)
				}
			}
			for _, s := range f.structs {
				if k.pod != nil && s.depthInPod() > walked[k.name()] || len(s.path) == 0 {
					continue
				}
				try(s.path, func(v any) any { return with(v.(map[string]any), map[string]any{"newerField": "x"}) }, true)
				try(s.path, func(any) any { return map[string]any{} }, true)
				try(s.path, func(any) any { return nil }, true)
			}
		}
	}
	a.log(t, "maximal objects")
	if total(a.differ) < 2000 || total(a.typed) < 100 {
		t.Error("hardly anything was tried")
	}
}

// checkTyped is check for objects as the API server holds them: decoded into
// API types, and handed to CEL as they are (1.37 and later).
func (a *agreement) checkTyped(t testing.TB, where string, c *conditionsOf, old, obj map[string]any) {
	t.Helper()
	conditions, x, y := c.of(obj), typed(old), typed(obj)
	if conditions == nil || x == nil || y == nil {
		return
	}
	oldGated, gated := gatedIn(nil, reread(t, x), c.requires), gatedIn(nil, reread(t, y), c.requires)
	if oldGated == gated {
		return
	}
	o := conditions.update(t, x, y)
	if o.err != nil {
		t.Errorf("%s: typed %s: evaluating fails: %v", where, str(obj["kind"]), o.err)
	}
	a.typed[str(obj["kind"])]++
	if !o.asked() {
		t.Errorf("%s: typed %s: the conditions hide a change: %s", where, str(obj["kind"]), difference(oldGated, gated))
	}
}
