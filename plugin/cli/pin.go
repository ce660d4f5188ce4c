package cli

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"sync"

	"github.com/spf13/cobra"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/lock"
	"github.com/syncgate/syncgate/plugin/pin"
	"github.com/syncgate/syncgate/plugin/policy"
)

func newPin() *cobra.Command {
	var t target
	var check, update bool
	c := &cobra.Command{
		Use:   "pin [DIR]",
		Short: "Resolve image tags and write the pins to the lock",
		Long: `Pin looks up the tags that the application uses and writes their digests to
.syncgate/images. A tag that has a pin is not looked up again unless --update
is given; --check looks up every one, changes nothing, and is refused if a tag
has moved. Pins that no image uses are removed.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			t.arg(args)
			if check && update {
				return usage(c, "--check and --update exclude each other")
			}
			return runPin(c, &t, check, update)
		},
	}
	t.flags(c)
	c.Flags().BoolVar(&check, "check", false, "change nothing; refuse if a tag has moved")
	c.Flags().BoolVar(&update, "update", false, "look up tags that have a pin, too")
	return c
}

func runPin(c *cobra.Command, t *target, check, update bool) error {
	e, err := t.effective(c, false)
	if err != nil {
		return err
	}
	if t.dir == "-" {
		return usage(c, "pins are written beside an application: give its directory")
	}
	reg, err := newRegistry(e)
	if err != nil {
		return err
	}
	e.Pins = policy.AlreadyPinned // see the tags, not their pins
	s, err := t.settings(c, e)
	if err != nil {
		return err
	}
	s.LeaveUnpinned = true
	b, err := app.New(c.Context(), s)
	if err != nil {
		return err
	}
	refs, items, tests := references(b, e)
	used := map[[2]string]bool{}
	var asked []*lookUp
	for _, r := range refs {
		used[[2]string{r.ref.Name(), r.ref.LookupTag()}] = true
		old, have := b.Lock.Pin(r.ref.Name(), r.ref.LookupTag())
		if !have || check || update {
			asked = append(asked, &lookUp{reference: r, old: old, have: have})
		}
	}
	lookUpAll(c, reg, asked)
	report := []string{}
	for _, l := range asked {
		switch {
		case l.err != nil:
			tests = tests && l.tests
			items = append(items, gate.Item{Subject: l.subject, Reason: unresolved(l.err), Text: fmt.Sprintf("%s: %v", l.ref, l.err)})
		case l.have && l.old == l.digest:
		case check && l.have:
			items = append(items, gate.Item{Subject: l.subject, Reason: gate.ImageTagMoved,
				Text: fmt.Sprintf("%s is pinned to %s, the registry now has %s", l.ref, l.old, l.digest)})
		case check:
			tests = tests && l.tests
			items = append(items, gate.Item{Subject: l.subject, Reason: gate.ImageNotPinned, Text: fmt.Sprintf("%s has no pin", l.ref)})
		default:
			if err := b.Lock.SetPin(lock.Pin{Name: l.ref.Name(), Tag: l.ref.LookupTag(), Digest: l.digest}); err != nil {
				return fmt.Errorf("locking %s: %w", l.ref, err)
			}
			report = append(report, fmt.Sprintf("pinned %s:%s %s", l.ref.Name(), l.ref.LookupTag(), l.digest))
		}
	}
	if len(items) > 0 {
		s := gate.Sentence{Items: items, Fix: pinFix(items, e)}
		if r := s.Reason(); tests && (r == gate.ImageNotPinned || r == gate.ImageUnresolvable) {
			for i := range s.Items {
				s.Items[i].Fix = cmp.Or(s.Items[i].Fix, s.Fix) + app.WithoutTests
			}
		}
		return &app.Refusal{Sentence: s}
	}
	if check {
		_, err := fmt.Fprintf(c.OutOrStdout(), "%d tags, none moved\n", len(refs))
		return err
	}
	b.Lock.KeepPins(func(p lock.Pin) bool { return used[[2]string{p.Name, p.Tag}] })
	if err := b.Lock.Save(); err != nil {
		return fmt.Errorf("saving the lock: %w", err)
	}
	for _, line := range report {
		fmt.Fprintln(c.OutOrStdout(), line)
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "%d tags, %d newly pinned\n", len(refs), len(report))
	return err
}

// reference is one tag that the application uses, and one object that uses it.
type reference struct {
	ref     pin.Reference
	subject string
	tests   bool // only a chart's tests use it
}

// lookUp is a tag that a registry is asked for.
type lookUp struct {
	reference
	old    string // the pin that there is
	have   bool
	digest string
	err    error
}

// lookUpAll asks for all tags at once; the resolver bounds how many wait for
// an answer at a time.
func lookUpAll(c *cobra.Command, r pin.Resolver, tags []*lookUp) {
	p := newProgress(c.ErrOrStderr(), "looking up tags:", len(tags))
	defer p.done()
	var wg sync.WaitGroup
	for _, l := range tags {
		wg.Go(func() {
			l.digest, l.err = r.Resolve(c.Context(), l.ref)
			p.step()
		})
	}
	wg.Wait()
}

// references lists the tags of all objects, each once, sorted. What is no
// reference at all is named, never looked up.
//
// tests says that what is named concerns nothing but a chart's tests.
func references(b *app.Build, e policy.Effective) (refs []reference, items []gate.Item, tests bool) {
	seen := map[string]int{} // where in refs
	tests = true
	for _, o := range b.Objects {
		if o.Problem != nil {
			items, tests = append(items, *o.Problem), tests && o.Test
			continue
		}
		_ = e.Projector.EachImage(o.Tree, func(path, ref string) (string, error) {
			if slices.ContainsFunc(e.Rules.AllowUnpinned, func(g gate.Glob) bool { return g.Match(ref) }) {
				return ref, nil
			}
			r, err := pin.Parse(ref)
			key := r.Name() + " " + r.LookupTag()
			i, have := seen[key]
			switch {
			case err != nil:
				tests = tests && o.Test
				items = append(items, gate.Item{Subject: o.Subject.Short(), Reason: gate.ImageNotPinned,
					Text: fmt.Sprintf("%s: %v", gate.ShortPath(path), err), Fix: app.WriteReference})
			case r.Digest() != "":
			case have:
				refs[i].tests = refs[i].tests && o.Test
			default:
				seen[key] = len(refs)
				refs = append(refs, reference{r, o.Subject.Short(), o.Test})
			}
			return ref, nil
		})
	}
	sort.Slice(refs, func(i, j int) bool { return refs[i].ref.String() < refs[j].ref.String() })
	return refs, items, tests
}

func unresolved(err error) gate.Reason {
	if app.Unanswered(err) {
		return gate.ImageUnresolvable
	}
	return gate.ImageNotPinned
}

func pinFix(items []gate.Item, e policy.Effective) string {
	s := gate.Sentence{Items: items}
	switch s.Reason() {
	case gate.ImageTagMoved:
		return "find out who moved the tag; syncgate pin --update takes the new one, which then needs a receipt"
	case gate.ImageUnresolvable:
		return "mend the reference or the access it names, then run syncgate pin again"
	}
	return e.Fix(s.Reason())
}
