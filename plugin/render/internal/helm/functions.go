package helm

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/Masterminds/sprig/v3"
)

// shift is how much later it is in the second run: enough to change every
// part of a date, the year, the month and the weekday too.
const shift = 400*24*time.Hour + time.Hour + time.Minute + time.Second

// functions are the template functions that would answer differently another
// time or on another machine. Those that need not are made to agree; the
// others note that they were called, and surely answer differently in the
// second run.
type functions struct {
	again  bool
	now    time.Time
	chance bool
}

// all returns them by name.
func (f *functions) all() template.FuncMap {
	theirs := sprig.TxtFuncMap()
	out := template.FuncMap{
		// Sorted: Helm leaves the order to chance.
		"keys":   keys,
		"values": values,

		// In UTC, where the cluster's containers run, and not in the time zone
		// of the laptop.
		"date":           func(format string, t any) string { return f.date(format, t, "UTC") },
		"htmlDate":       func(t any) string { return f.date(time.DateOnly, t, "UTC") },
		"toDate":         func(format, s string) time.Time { t, _ := time.Parse(format, s); return t },
		"mustToDate":     time.Parse,
		"dateInZone":     f.date,
		"date_in_zone":   f.date,
		"htmlDateInZone": func(t any, zone string) string { return f.date(time.DateOnly, t, zone) },
		"now":            f.clock,
		"ago":            f.ago,
		"durationRound":  f.durationRound(theirs["durationRound"]),
		"randInt":        f.randInt,
		"shuffle":        f.shuffle,
		"randAlphaNum":   func(n int) string { return f.repeat("a", "b", n) },
		"randAlpha":      func(n int) string { return f.repeat("a", "b", n) },
		"randAscii":      func(n int) string { return f.repeat("a", "b", n) },
		"randNumeric":    func(n int) string { return f.repeat("1", "2", n) },
	}
	for _, name := range []string{
		"randBytes", "uuidv4", "bcrypt", "htpasswd", "encryptAES", "genPrivateKey", "genCA", "genCAWithKey",
		"genSelfSignedCert", "genSelfSignedCertWithKey", "genSignedCert", "genSignedCertWithKey",
	} {
		out[name] = f.noting(theirs[name])
	}
	return out
}

// noting wraps a function of any type.
func (f *functions) noting(fn any) any {
	v := reflect.ValueOf(fn)
	return reflect.MakeFunc(v.Type(), func(args []reflect.Value) []reflect.Value {
		f.chance = true
		if v.Type().IsVariadic() {
			return v.CallSlice(args)
		}
		return v.Call(args)
	}).Interface()
}

func (f *functions) clock() time.Time {
	f.chance = true
	if f.again {
		return f.now.Add(shift)
	}
	return f.now
}

// date is sprig's, which takes anything that is no time for the present.
func (f *functions) date(format string, t any, zone string) string {
	loc, err := time.LoadLocation(zone)
	if err != nil || zone == "Local" {
		loc = time.UTC
	}
	at, ok := moment(t)
	if !ok {
		at = f.clock()
	}
	return at.In(loc).Format(format)
}

func (f *functions) ago(t any) string {
	at, ok := moment(t)
	if !ok {
		return "0s"
	}
	return f.clock().Sub(at).Round(time.Second).String()
}

// durationRound is sprig's, but for the time since a time.
func (f *functions) durationRound(theirs any) any {
	round, ok := theirs.(func(any) string)
	if !ok {
		return f.noting(theirs)
	}
	return func(d any) string {
		if t, ok := d.(time.Time); ok {
			d = f.clock().Sub(t).String()
		}
		return round(d)
	}
}

func moment(t any) (time.Time, bool) {
	switch t := t.(type) {
	case time.Time:
		return t, true
	case *time.Time:
		if t != nil {
			return *t, true
		}
	case int64:
		return time.Unix(t, 0), true
	case int:
		return time.Unix(int64(t), 0), true
	case int32:
		return time.Unix(int64(t), 0), true
	}
	return time.Time{}, false
}

// repeat stands for a random text: what it returns is only ever written out
// if it made no difference.
func (f *functions) repeat(once, again string, n int) string {
	f.chance = true
	if f.again {
		once = again
	}
	return strings.Repeat(once, max(n, 0))
}

func (f *functions) randInt(low, high int) int {
	f.chance = f.chance || high-low > 1
	if f.again {
		return max(low, high-1)
	}
	return low
}

func (f *functions) shuffle(s string) string {
	f.chance = true
	r := []rune(s)
	slices.Sort(r)
	if f.again {
		slices.Reverse(r)
	}
	return string(r)
}

func keys(dicts ...map[string]any) []string {
	out := []string{}
	for _, d := range dicts {
		out = append(out, slices.Sorted(maps.Keys(d))...)
	}
	return out
}

func values(dict map[string]any) []any {
	out := []any{}
	for _, k := range keys(dict) {
		out = append(out, dict[k])
	}
	return out
}
