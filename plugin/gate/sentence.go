package gate

import (
	"cmp"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// MaxSentence bounds a message, in bytes: Argo CD wraps it, and gRPC trailers
// beyond 8 KiB are about to be dropped (docs/spec/refusal.md).
const MaxSentence = 2000

// maxItems is how many items a message lists before "and N more".
const maxItems = 5

// Item is one thing that a message names: an object and what is wrong with it.
type Item struct {
	Subject string // "Deployment shop/web"; empty for the render as a whole
	Reason  Reason
	Text    string
	Fix     string // the next step, if this item knows a better one than its reason
}

// Sentence is the whole message of a verdict: what a person reads as the sync
// error. Gated is how many gated objects there were (0: not told), Fix the
// next step. Warn makes it a warning that nothing was refused. Stored says that an
// object was to be stored and nothing was rendered: then what is malformed is
// refused, in these words, like all the rest.
type Sentence struct {
	Items  []Item
	Gated  int
	Fix    string
	Warn   bool
	Stored bool
}

// Class returns the class of the gravest item; a sentence without items is a
// gate error.
func (s Sentence) Class() Class {
	items := s.sorted()
	if len(items) == 0 {
		return GateError
	}
	return items[0].Reason.Class()
}

// Reason returns the code in the sentence's brackets.
func (s Sentence) Reason() Reason {
	items := s.sorted()
	if len(items) == 0 {
		return ""
	}
	return items[0].Reason
}

func (s Sentence) sorted() []Item {
	items := append([]Item(nil), s.Items...)
	sort.SliceStable(items, func(i, j int) bool {
		a, b := items[i], items[j]
		if x, y := a.Reason.rank(), b.Reason.rank(); x != y {
			return x < y
		}
		if a.Subject != b.Subject {
			return a.Subject < b.Subject
		}
		return a.Text < b.Text
	})
	return items
}

// String returns one line of printable ASCII of at most MaxSentence bytes,
// the same for the same verdict.
func (s Sentence) String() string {
	items := s.sorted()
	words := s.Class().Words()
	switch {
	case s.Warn:
		words = "SYNC WOULD BE REFUSED"
	case s.Stored && s.Class() == RenderFailure:
		words = Refused.Words()
	}
	if len(items) == 0 {
		return words + " [PolicyInvalid] nothing was evaluated"
	}
	head := words + " [" + string(items[0].Reason) + "]"
	if objects := countSubjects(items); s.Gated > 0 && objects > 0 {
		head += fmt.Sprintf(" %d of %d gated objects:", objects, s.Gated)
	}
	tail := ""
	if fix := cmp.Or(items[0].Fix, s.Fix); fix != "" {
		tail = "; Fix: " + clip(ASCII(fix), 400)
	}
	parts := make([]string, 0, maxItems)
	room := MaxSentence - len(head) - len(tail) - len("; and 1000000 more")
	for i, it := range items {
		text := s.item(items, i, it)
		if i == maxItems || len(text)+2 > room && i > 0 {
			parts = append(parts, fmt.Sprintf("and %d more", len(items)-i))
			break
		}
		text = clip(text, room-2)
		room -= len(text) + 2
		parts = append(parts, text)
	}
	return head + " " + strings.Join(parts, "; ") + tail
}

func (s Sentence) item(items []Item, i int, it Item) string {
	text := ""
	if len(items) > 1 {
		text = fmt.Sprintf("(%d) ", i+1)
	}
	if it.Reason != items[0].Reason {
		text += "[" + string(it.Reason) + "] "
	}
	if it.Subject != "" {
		text += ASCII(it.Subject) + ": "
	}
	return text + ASCII(it.Text)
}

func countSubjects(items []Item) int {
	seen := map[string]bool{}
	for _, it := range items {
		if it.Subject != "" {
			seen[it.Subject] = true
		}
	}
	return len(seen)
}

// ASCII returns s as one line of printable ASCII: white space becomes a space,
// everything else that is not printable its Go escape.
func ASCII(s string) string {
	clean := true
	for i := 0; i < len(s); i++ {
		if s[i] < ' ' || s[i] > '~' {
			clean = false
			break
		}
	}
	if clean {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			b.WriteByte(' ')
		case r >= ' ' && r <= '~':
			b.WriteRune(r)
		default:
			q := strconv.QuoteRuneToASCII(r)
			b.WriteString(q[1 : len(q)-1])
		}
	}
	return strings.TrimSpace(b.String())
}

// clip cuts s to n bytes at a rune's start, and says that it did.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	n = max(n-3, 0)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "..."
}

// utc writes a time as people compare it. The clock is the caller's.
func utc(seconds int64) string {
	return time.Unix(seconds, 0).UTC().Format("2006-01-02T15:04:05Z")
}
