package app

import (
	"slices"

	"github.com/syncgate/syncgate/plugin/gate"
)

// MaySwitchOff reports whether an off-switch can let a refusal pass. What could
// not be rendered or judged stays refused, and so does what goes to a namespace
// that policy protects: that is about others.
func MaySwitchOff(s gate.Sentence) bool {
	return s.Class() == gate.Refused && !slices.ContainsFunc(s.Items, func(i gate.Item) bool { return i.Reason == gate.ProtectedTarget })
}

// NoSwitchCounts adds to a refusal why no off-switch lets it pass.
func NoSwitchCounts(s *gate.Sentence, err error) {
	s.Items = append(s.Items, gate.Item{Reason: s.Reason(), Text: "no off-switch counts: " + err.Error()})
}
