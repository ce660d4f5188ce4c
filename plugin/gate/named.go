package gate

import (
	"slices"
	"strings"
)

// named puts the field in front of what is wrong with a receipt: the first leaf
// that wanted it, and the other categories that did, too. A reader with room for
// 200 bytes learns from them what to look at; the receipt's name says it only to
// who has signed it. Other findings name a field or a category already.
func (e *evaluation) named(findings []Finding) []Finding {
	for i := range findings {
		f := &findings[i]
		if f.Path != "" || !e.aboutReceipt(f) {
			continue
		}
		slices.Sort(f.Categories)
		var list []string
		for _, c := range f.Categories {
			text := e.fields(c)
			if text != "" && len(list) > 0 {
				text = string(c)
			}
			if text != "" {
				list = append(list, text)
			}
		}
		if len(list) > 0 {
			f.Text = strings.Join(list, ", ") + ": " + f.Text
		}
	}
	return findings
}

// aboutReceipt reports whether a finding is what was wrong with a receipt.
func (e *evaluation) aboutReceipt(f *Finding) bool {
	return slices.ContainsFunc(e.candidates, func(c candidate) bool {
		return c.problem != nil && c.problem.Reason == f.Reason && c.problem.Text == f.Text
	})
}
