package projection

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

// policies are sets of required categories: all that are built in, what
// docs/policy.md requires by default, and single ones.
var policies = map[string]func(Category) bool{
	"all":       func(Category) bool { return true },
	"default":   func(c Category) bool { return c != Service },
	"image":     func(c Category) bool { return c == Image },
	"secret":    func(c Category) bool { return c == Secret },
	"privilege": func(c Category) bool { return c == Privilege },
	"network":   func(c Category) bool { return c == Network },
	"command":   func(c Category) bool { return c == Command },
	"service":   func(c Category) bool { return c == Service },
}

// conditionsOf compiles the conditions of kinds once.
type conditionsOf struct {
	projector *Projector
	requires  func(Category) bool
	byKind    map[kindKey]*compiled
	byText    map[string]conditionSet
}

// compiled are the conditions of a kind, compiled when they are first needed.
type compiled struct {
	text Conditions
	of   *conditionsOf
}

func (c *compiled) update(t testing.TB, old, obj runtime.Object) outcome {
	t.Helper()
	return c.of.compile(t, c.text.Update...).evaluate(t, old, obj)
}

func (c *compiled) create(t testing.TB, obj runtime.Object) outcome {
	t.Helper()
	return c.of.compile(t, c.text.Create).evaluate(t, nil, obj)
}

func newConditions(p *Projector, requires func(Category) bool) *conditionsOf {
	return &conditionsOf{p, requires, map[kindKey]*compiled{}, map[string]conditionSet{}}
}

func (c *conditionsOf) of(obj map[string]any) *compiled {
	group, kind := groupKind(obj)
	key := kindKey{group, kind}
	if done, seen := c.byKind[key]; seen {
		return done
	}
	c.byKind[key] = nil
	if text, ok := c.projector.CEL(group, kind, c.requires); ok {
		c.byKind[key] = &compiled{text, c}
	}
	return c.byKind[key]
}

func (c *conditionsOf) compile(t testing.TB, text ...string) conditionSet {
	key := strings.Join(text, "\n")
	if _, done := c.byText[key]; !done {
		c.byText[key] = compileConditions(t, newestServer, text...)
	}
	return c.byText[key]
}

// gatedIn is all that Project finds in an object, and all that it faults; where
// policy requires only some categories, what it finds in those: a fault stands
// in a field of some category too.
func gatedIn(p *Projector, obj map[string]any, requires func(Category) bool) string {
	w := &walker{}
	if p != nil {
		w.variables = p.variables
	}
	switch k := lookup(obj); {
	case k != nil:
		w.kind(k, obj)
	default:
		w.structural(obj)
	}
	for _, f := range p.of(obj) {
		_, v := w.get(obj, f.Path)
		w.takeAny(f.Category, f.Path, v, nil)
	}
	_, _ = w.finish(&Projection{})
	var b []byte
	for _, l := range w.leaves {
		if requires(l.Category) {
			b = append(append(append(append(b, l.Category...), ' '), l.Path...), " = "...)
			b = append(appendValue(b, l.Value), '\n')
		}
	}
	for _, f := range w.faults {
		if !requires(Service) || !requires(Image) {
			break
		}
		b = append(append(append(append(append(b, "fault "...), f.Path...), ' '), f.Text...), '\n')
	}
	return string(b)
}

// agreement counts pairs of states and what the conditions say of them.
type agreement struct {
	pairs, differ, equal, needless, typed map[string]int
	unsendable                            int

	base    map[string]any
	baseRaw runtime.Object
}

func newAgreement() *agreement {
	return &agreement{map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}, 0, nil, nil}
}

func total(m map[string]int) (n int) {
	for _, v := range m {
		n += v
	}
	return n
}

func (a *agreement) log(t *testing.T, what string) {
	t.Logf("%s: %d pairs, of which %d differ in a required category; %d that do as typed objects; asked without need about %d of %d that do not; %d that no API server can hold",
		what, total(a.pairs), total(a.differ), total(a.typed), total(a.needless), total(a.equal), a.unsendable)
	for _, k := range slices.Sorted(maps.Keys(a.pairs)) {
		t.Logf("%6d pairs, %6d differ, %6d of %d needless: %s", a.pairs[k], a.differ[k], a.needless[k], a.equal[k], k)
	}
}

// oneIn of the pairs that do not differ are evaluated: for errors, and to count
// needless calls.
const oneIn = 8

// check evaluates the conditions of a pair in both directions.
func (a *agreement) check(t testing.TB, where string, c *conditionsOf, old, obj map[string]any, oldGated, gated string) {
	t.Helper()
	a.checkOne(t, where, c, old, obj, oldGated, gated)
	a.checkOne(t, where, c, obj, old, gated, oldGated)
}

// checkOne evaluates the conditions of a pair.
func (a *agreement) checkOne(t testing.TB, where string, c *conditionsOf, old, obj map[string]any, oldGated, gated string) {
	t.Helper()
	conditions := c.of(obj)
	if conditions == nil {
		return
	}
	kind := str(obj["kind"])
	a.pairs[kind]++
	if gated == oldGated && a.pairs[kind]%oneIn != 0 {
		return
	}
	o := conditions.update(t, a.raw(old), a.raw(obj))
	switch differ := gated != oldGated; {
	case o.err != nil:
		if sendable(old) && sendable(obj) {
			t.Errorf("%s: %s: evaluating fails: %v", where, kind, o.err)
		}
		a.unsendable++
	case differ && !o.asked() && onlyInUnsendable(t, c, old, obj, oldGated, gated):
		a.unsendable++
	case differ && !o.asked():
		t.Errorf("%s: %s: the conditions hide a change (%v): %s", where, kind, o.values, difference(oldGated, gated))
		fallthrough
	case differ:
		a.differ[kind]++
	default:
		a.equal[kind]++
		if o.asked() {
			a.needless[kind]++
		}
	}
}

// onlyInUnsendable reports whether two states differ only in faults that they
// do not have as objects of their API types: a port without a number.
func onlyInUnsendable(t testing.TB, c *conditionsOf, old, obj map[string]any, oldGated, gated string) bool {
	for _, line := range strings.Split(difference(oldGated, gated), "; ") {
		if !strings.HasPrefix(line, "fault ") {
			return false
		}
	}
	x, y := typed(old), typed(obj)
	return x == nil || y == nil || gatedIn(c.projector, reread(t, x), c.requires) == gatedIn(c.projector, reread(t, y), c.requires)
}

// raw is the function raw, which forgets none of the states that many pairs
// have in common.
func (a *agreement) raw(obj map[string]any) runtime.Object {
	if a.base != nil && reflect.ValueOf(a.base).Pointer() == reflect.ValueOf(obj).Pointer() {
		return a.baseRaw
	}
	return raw(obj)
}

// start makes an object the common state of the pairs that follow.
func (a *agreement) start(obj map[string]any) { a.base, a.baseRaw = obj, raw(obj) }

func difference(a, b string) string {
	var out []string
	for _, pair := range [][2]string{{a, b}, {b, a}} {
		have := strings.Split(pair[1], "\n")
		for _, l := range strings.Split(pair[0], "\n") {
			if !slices.Contains(have, l) {
				out = append(out, l)
			}
		}
	}
	return strings.Join(out, "; ")
}

// typed decodes an object into its API type, as an API server does; nil if it
// cannot, or has none.
func typed(obj map[string]any) runtime.Object {
	k := lookup(obj)
	if k == nil {
		return nil
	}
	typ, ok := apiTypes[k.name()]
	if !ok {
		return nil
	}
	b, err := json.Marshal(obj)
	if err != nil {
		return nil
	}
	out := reflect.New(reflect.TypeOf(typ))
	if json.Unmarshal(b, out.Interface()) != nil {
		return nil
	}
	return out.Interface().(runtime.Object)
}

// sendable reports whether an API server can hold an object: one of another
// form than its API type is refused before any webhook is asked.
func sendable(obj map[string]any) bool {
	k := lookup(obj)
	if k == nil || apiTypes[k.name()] == nil {
		return true
	}
	return typed(obj) != nil
}

// reread is a typed object as a webhook gets it.
func reread(t testing.TB, obj runtime.Object) map[string]any {
	t.Helper()
	b, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, b)
}

// mutants calls fn with changed copies of an object: another value, and none,
// for up to most of its scalars and empty collections, chosen by chance, with
// an item twice, one less, and another order, of the list around each.
func mutants(r *rand.Rand, most int, obj map[string]any, fn func(path []any, mutant map[string]any)) {
	paths := scalars(obj, nil, nil)
	r.Shuffle(len(paths), func(i, j int) { paths[i], paths[j] = paths[j], paths[i] })
	for _, path := range paths[:min(most, len(paths))] {
		if path[0] == "apiVersion" || path[0] == "kind" {
			continue
		}
		for _, to := range []func(any) any{another, func(any) any { return nil }} {
			fn(path, change(obj, path, to).(map[string]any))
		}
		for i := len(path) - 1; i > 0; i-- {
			if at, ok := path[i].(int); ok {
				fn(path, change(obj, path[:i], func(v any) any { return append(slices.Clone(v.([]any)), v.([]any)[at]) }).(map[string]any))
				fn(path, change(obj, path[:i+1], func(any) any { return nil }).(map[string]any))
				fn(path, change(obj, path[:i], func(v any) any { return append(slices.Clone(v.([]any)[1:]), v.([]any)[0]) }).(map[string]any))
				break
			}
		}
	}
}

// celBudget bounds what of the corpus one run tries; the order is shuffled, so
// that runs together see all of it.
const celBudget = 12 * time.Second

// chance is other in each run, and says how to have the same again.
func chance(t *testing.T) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

func TestTheConditionsHideNoChangeInTheCorpus(t *testing.T) {
	t.Parallel()
	docs, r := corpus(t), chance(t)
	r.Shuffle(len(docs), func(i, j int) { docs[i], docs[j] = docs[j], docs[i] })
	a, n, start := newAgreement(), 0, time.Now()
	c := newConditions(nil, policies["all"])
	for _, d := range docs {
		before := gatedIn(nil, d.obj, c.requires)
		if before == "" {
			continue
		}
		if time.Since(start) > celBudget || t.Failed() && n > 0 {
			break
		}
		n++
		a.start(d.obj)
		mutants(r, 30, d.obj, func(path []any, m map[string]any) {
			a.check(t, fmt.Sprint(d.where, path), c, d.obj, m, before, gatedIn(nil, m, c.requires))
			if r.IntN(oneIn) == 0 {
				a.checkTyped(t, fmt.Sprint(d.where, path), c, d.obj, m)
			}
		})
	}
	t.Logf("%d of %d objects", n, len(docs))
	a.log(t, "corpus")
	if total(a.differ) == 0 {
		t.Error("nothing was tried")
	}
}
