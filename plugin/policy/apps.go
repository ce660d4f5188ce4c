package policy

import (
	"slices"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/projection"
)

// app is one rule of apps. One that matches on something outside Argo CD's
// cache key may only tighten.
type app struct {
	appDoc
	match    matchDoc
	tightens bool
}

// is reports whether a mode is given and is m.
func (m *mode) is(want mode) bool { return m != nil && *m == want }

func (v *validator) appRules(base Effective) []app {
	var out []app
	for i, d := range v.doc.Apps {
		path := item("apps", i)
		v.match(path+".match", d.Match, true)
		v.helpText(path+".help", d.Help)
		v.expiredMode(path+".receipts.expired", d.Receipts.Expired)
		outside := d.Match.outsideCacheKey()
		a := app{appDoc: d, match: d.Match, tightens: len(outside) > 0}
		if a.tightens {
			for _, setting := range a.relaxes(base, v.required) {
				v.fail(path+"."+setting, "relaxes the check, but match.%s is not in Argo CD's cache key; match on name, namespace, path or env", outside[0])
			}
		}
		out = append(out, a)
	}
	return out
}

// relaxes returns the settings that are laxer than the policy's own.
func (a app) relaxes(base Effective, required map[projection.Category]int64) []string {
	var out []string
	add := func(laxer bool, setting string) {
		if laxer {
			out = append(out, setting)
		}
	}
	add(a.Mode.Render.is(warn) && !base.Warn, "mode.render")
	for i, d := range a.Categories {
		since, on := required[projection.Category(d.Name)]
		add(on && (d.off() || d.since() > since), item("categories", i))
	}
	add(a.UnknownImages != nil && *a.UnknownImages > base.UnknownImages, "unknownImages")
	add(a.Images.Pins != nil && *a.Images.Pins > base.Pins, "images.pins")
	add(len(a.Images.AllowUnpinned) > 0, "images.allowUnpinned")
	add(a.Receipts.MinRemaining != nil && int64(*a.Receipts.MinRemaining) < base.Rules.MinRemaining, "receipts.minRemaining")
	add(a.Receipts.Expired != nil && gate.ExpiredMode(*a.Receipts.Expired) != gate.RefuseExpired && gate.ExpiredMode(*a.Receipts.Expired) != base.Rules.Expired, "receipts.expired")
	return out
}

// apply overrides settings with those of the rule.
func (a app) apply(e *Effective, required map[projection.Category]int64) {
	if a.Mode.Render != nil {
		e.Warn = a.Mode.Render.is(warn)
	}
	if a.Help != "" {
		e.Help = a.Help
	}
	for _, d := range a.Categories {
		change(required, d)
	}
	if a.UnknownImages != nil {
		e.UnknownImages = *a.UnknownImages
	}
	if a.Images.Pins != nil {
		e.Pins = *a.Images.Pins
	}
	// Clipped, or two applications would append to one array.
	e.Rules.AllowUnpinned = append(slices.Clip(e.Rules.AllowUnpinned), globs(a.Images.AllowUnpinned)...)
	if a.Receipts.MinRemaining != nil {
		e.Rules.MinRemaining = int64(*a.Receipts.MinRemaining)
	}
	if a.Receipts.Expired != nil {
		e.Rules.Expired = gate.ExpiredMode(*a.Receipts.Expired)
	}
}

// tighten takes of each setting the stricter one, so that whatever other rules
// gave, this one cannot relax it.
func (a app) tighten(e *Effective, required map[projection.Category]int64) {
	if a.Mode.Render.is(enforce) {
		e.Warn = false
	}
	if a.Help != "" {
		e.Help = a.Help
	}
	for _, d := range a.Categories {
		since, on := required[projection.Category(d.Name)]
		if !d.off() && (!on || d.since() < since) {
			required[projection.Category(d.Name)] = d.since()
		}
	}
	if a.UnknownImages != nil {
		e.UnknownImages = min(e.UnknownImages, *a.UnknownImages)
	}
	if a.Images.Pins != nil {
		e.Pins = min(e.Pins, *a.Images.Pins)
	}
	if a.Receipts.MinRemaining != nil {
		e.Rules.MinRemaining = max(e.Rules.MinRemaining, int64(*a.Receipts.MinRemaining))
	}
	if a.Receipts.Expired != nil && gate.ExpiredMode(*a.Receipts.Expired) == gate.RefuseExpired {
		e.Rules.Expired = gate.RefuseExpired
	}
}
