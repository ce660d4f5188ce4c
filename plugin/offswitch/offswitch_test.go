package offswitch_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/plugin/offswitch"
)

var now = time.Date(2027, 1, 15, 3, 0, 0, 0, time.UTC)

func TestASwitchSaysWhatIsWrongWithIt(t *testing.T) {
	good := offswitch.Switch{Namespace: "shop", Until: "2027-01-15T07:00:00Z", Reason: "incident 7", By: "alice"}
	if err := good.Check(now); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		want   string
		change func(*offswitch.Switch)
	}{
		{"want a namespace or an app", func(s *offswitch.Switch) { s.Namespace = "" }},
		{"want a namespace or an app", func(s *offswitch.Switch) { s.App = "web" }},
		{"is no name", func(s *offswitch.Switch) { s.Namespace = "*" }},
		{"is no name", func(s *offswitch.Switch) { s.Namespace = "../policy" }},
		{"until", func(s *offswitch.Switch) { s.Until = "" }},
		{"until", func(s *offswitch.Switch) { s.Until = "4h" }},
		{"more than 24h", func(s *offswitch.Switch) { s.Until = "2027-01-16T03:02:00Z" }},
		{"want a reason", func(s *offswitch.Switch) { s.Reason = "" }},
		{"want a reason", func(s *offswitch.Switch) { s.Reason = "two\nlines" }},
		{"want a name", func(s *offswitch.Switch) { s.By = "" }},
	} {
		s := good
		tt.change(&s)
		if err := s.Check(now); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: got %v, want %q", s, err, tt.want)
		}
		if _, err := s.Encode(now); err == nil {
			t.Errorf("%+v is encoded", s)
		}
	}
}

func TestLoadReadsAMountedConfigMap(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []offswitch.Switch{
		{Namespace: "shop", Until: "2027-01-15T07:00:00Z", Reason: "incident 7", By: "alice"},
		{App: "web", Until: "2027-01-15T02:00:00Z", Reason: "over", By: "bob"},
	} {
		text, err := s.Encode(now)
		if err != nil {
			t.Fatal(err)
		}
		put(s.Key(), text)
	}
	put("..data", "not ours")
	set, err := offswitch.Load(dir, now)
	if err != nil {
		t.Fatal(err)
	}
	why, off := set.Namespace("shop", now.Unix())
	if want := "off until 2027-01-15T07:00:00Z by alice: incident 7"; !off || why != want {
		t.Errorf("shop: got %t %q, want %q", off, why, want)
	}
	if _, off := set.Namespace("shop", now.Add(4*time.Hour).Unix()); off {
		t.Error("the switch did not end")
	}
	for _, name := range []string{"", "bank", "web"} {
		if _, off := set.Namespace(name, now.Unix()); off {
			t.Errorf("namespace %q is off", name)
		}
	}
	if _, off := set.App("web", now.Unix()); off {
		t.Error("an ended switch counts")
	}
	if got := len(set.All()); got != 2 {
		t.Errorf("switches: got %d, want 2", got)
	}
	again, err := offswitch.Load(dir, now)
	if err != nil || !set.Equal(again) {
		t.Errorf("the same files give another set: %v", err)
	}

	for name, text := range map[string]string{
		"namespace.bank": `{"namespace":"shop","until":"2027-01-15T07:00:00Z","reason":"r","by":"b"}`,
		"namespace.a":    `{"namespace":"a","until":"2027-01-15T07:00:00Z","reason":"r","by":"b","also":"c"}`,
		"namespace.b":    `{"namespace":"b","namespace":"c","until":"2027-01-15T07:00:00Z","reason":"r","by":"b"}`,
		"namespace.c":    `{`,
		"namespace.d":    strings.Repeat(" ", 5<<10),
	} {
		put(name, text)
		set, err := offswitch.Load(dir, now)
		var wrong offswitch.Errors
		if !errors.As(err, &wrong) || len(wrong) != 1 || wrong[0].File != name {
			t.Errorf("%s: got %+v, %v, want an error that names it", name, set.All(), err)
		}
		if _, off := set.Namespace("shop", now.Unix()); !off || len(set.All()) != 2 {
			t.Errorf("%s: got %+v, want the switches beside it and no other", name, set.All())
		}
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	var none *offswitch.Set
	if _, off := none.Namespace("shop", now.Unix()); off {
		t.Error("no set is a switch")
	}
	empty, err := offswitch.Load(filepath.Join(dir, "absent"), now)
	if diff := cmp.Diff([]offswitch.Switch{}, empty.All()); err != nil || diff != "" {
		t.Errorf("an absent directory: %v %s", err, diff)
	}
}
