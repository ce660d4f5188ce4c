package lock

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/syncgate/syncgate/plugin/receipt"
)

// Entry is one receipt of the lock.
type Entry struct {
	Environment string
	Subject     receipt.Subject
	Issuer      string
	// Comment is one line for people, without the "# " before it.
	Comment string
	// Receipt is the compact form. It is not verified; that its sub, iss and
	// environment are those above is checked.
	Receipt string
	// Previous says that a newer receipt of the same subject and issuer has
	// taken its place.
	Previous bool
}

// maxComment bounds the comment line, in bytes.
const maxComment = 500

// Receipts returns the entries of a subject in an environment: the current
// ones by issuer, then the previous ones by issuer.
func (l *Lock) Receipts(environment string, s receipt.Subject) []Entry {
	var list []Entry
	for _, e := range l.Entries() {
		if e.Environment == environment && e.Subject == s {
			list = append(list, e)
		}
	}
	return list
}

// Entries returns every entry, sorted by environment and subject, and for each
// subject as Receipts does.
func (l *Lock) Entries() []Entry {
	list := make([]Entry, 0, len(l.receipts))
	for _, e := range l.receipts {
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b Entry) int {
		return cmp.Or(
			cmp.Compare(a.Environment, b.Environment),
			cmp.Compare(identity(a.Subject), identity(b.Subject)),
			cmp.Compare(order(a.Previous), order(b.Previous)),
			cmp.Compare(a.Issuer, b.Issuer),
		)
	})
	return list
}

func order(previous bool) int {
	if previous {
		return 1
	}
	return 0
}

// PutReceipt puts a current receipt into the lock. If one for other gated fields
// of the same subject and issuer is there, that becomes the previous one; if it
// is for the same ones, it is replaced; if the same receipt is there, nothing
// changes, the comment neither. An empty comment stands
// for the subject's short form.
//
// It returns an error for a comment that is not one printable line, a receipt
// that cannot be read, and one that says another subject, issuer or
// environment.
func (l *Lock) PutReceipt(e Entry) error {
	if e.Previous {
		return errors.New("putting receipt: want a current one, the previous one is kept by itself")
	}
	if e.Comment == "" {
		e.Comment = e.Subject.Short()
	}
	err := e.check()
	if err != nil {
		return fmt.Errorf("putting receipt: %w", err)
	}
	path := receiptPath(e)
	for other, there := range l.receipts {
		if strings.EqualFold(other, path) && !same(there, e) {
			return fmt.Errorf("putting receipt: %s and %s would share the file %s on some systems", there.Subject, e.Subject, path)
		}
	}
	there, ok := l.receipts[path]
	if ok && there.Receipt == e.Receipt {
		return nil
	}
	if ok && !renews(e, there) {
		there.Previous = true
		l.receipts[receiptPath(there)] = there
	}
	l.receipts[path] = e
	return nil
}

// renews reports whether e says what the older receipt says, for another time:
// then the older one is no step to go back to, and keeping it would leave an
// approval behind that revoking the new one does not take back.
func renews(e, older Entry) bool {
	a, errA := receipt.ParseUnverified(e.Receipt)
	b, errB := receipt.ParseUnverified(older.Receipt)
	return errA == nil && errB == nil && a.Claims.Digest == b.Claims.Digest && a.Claims.Profile == b.Claims.Profile &&
		slices.Equal(a.Claims.Covers, b.Claims.Covers)
}

// same reports whether two entries are of one subject, issuer and environment.
func same(a, b Entry) bool {
	return a.Environment == b.Environment && a.Subject == b.Subject && a.Issuer == b.Issuer
}

// Remove drops the entries for which drop is true and returns how many.
func (l *Lock) Remove(drop func(Entry) bool) int {
	n := 0
	for _, e := range l.Entries() {
		if drop(e) {
			delete(l.receipts, receiptPath(e))
			n++
		}
	}
	return n
}

func (e Entry) check() error {
	if len(e.Comment) > maxComment {
		return fmt.Errorf("comment of %d bytes, want at most %d", len(e.Comment), maxComment)
	}
	for _, r := range e.Comment {
		if !strconv.IsPrint(r) {
			return fmt.Errorf("comment %.80q holds a character that cannot be printed", e.Comment)
		}
	}
	said, err := read(e.Receipt)
	if err != nil {
		return err
	}
	for _, claim := range []struct{ name, got, want string }{
		{"iss", said.Issuer, e.Issuer},
		{"sub", identity(said.Subject), identity(e.Subject)},
		{"environment", said.Environment, e.Environment},
	} {
		if claim.got != claim.want {
			return fmt.Errorf("%s: got %.80q in the receipt, want %.80q", claim.name, claim.got, claim.want)
		}
	}
	return nil
}

// read returns the entry that a receipt says it is.
func read(compact string) (Entry, error) {
	r, err := receipt.ParseUnverified(compact)
	if err != nil {
		return Entry{}, fmt.Errorf("parsing receipt: %w", err)
	}
	// A name that verifying would refuse anyway must not get into a file name.
	err = r.Claims.Validate()
	if err != nil {
		return Entry{}, fmt.Errorf("parsing receipt: claims: %w", err)
	}
	s, err := receipt.ParseSubject(r.Claims.Subject)
	if err != nil {
		return Entry{}, fmt.Errorf("parsing receipt: %w", err)
	}
	s.Generated = r.Claims.Generated
	return Entry{Environment: r.Claims.Environment, Subject: s, Issuer: r.Claims.Issuer, Receipt: compact}, nil
}

func formatReceipt(e Entry) string {
	return "# " + e.Comment + "\n" + e.Receipt + "\n"
}

func isPrevious(path string) bool { return strings.HasSuffix(path, prevEnding) }

func (l *Lock) loadReceipt(f file) error {
	lines := f.lines()
	if len(lines) != 2 {
		return fmt.Errorf("got %d lines, want a comment and a receipt", len(lines))
	}
	comment, ok := strings.CutPrefix(lines[0], "# ")
	if !ok {
		return fmt.Errorf(`line 1: got %.80q, want a comment, "# ..."`, lines[0])
	}
	e, err := read(lines[1])
	if err != nil {
		return fmt.Errorf("line 2: %w", err)
	}
	e.Comment = comment
	e.Previous = isPrevious(f.path)
	err = e.check()
	if err != nil {
		return fmt.Errorf("line 1: %w", err)
	}
	if want := receiptPath(e); want != f.path {
		return fmt.Errorf("line 2: the receipt is for %s in %q by %q, which belongs into %s", e.Subject, e.Environment, e.Issuer, want)
	}
	l.receipts[f.path] = e
	return nil
}
