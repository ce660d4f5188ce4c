package hook

import (
	"strings"
	"testing"
)

func TestPlaceholdersAreBare(t *testing.T) {
	for text, want := range map[string]string{
		"${syncgate_pin_web}":            "syncgate_pin_web",
		"${syncgate_receipt_web}":        "syncgate_receipt_web",
		"${syncgate_pin_web:-x}":         "",
		"${syncgate_pin_web/a/b}":        "",
		"${ syncgate_pin_web}":           "",
		"${syncgate_PIN}":                "",
		"${pin_web}":                     "",
		"$${syncgate_pin_web}":           "",
		"${syncgate_pin_web} ":           "",
		"${syncgate_pin_web}${syncgate}": "",
		"":                               "",
	} {
		got, ok := ParsePlaceholder(text)
		if got != want || ok != (want != "") {
			t.Errorf("%q: got %q, %v; want %q", text, got, ok, want)
		}
	}
}

func TestPinsStandWhereTheDigestDoes(t *testing.T) {
	for image, want := range map[string][2]string{
		"ghcr.io/acme/web:1.5@${syncgate_pin_web}":      {"ghcr.io/acme/web:1.5", "syncgate_pin_web"},
		"web@${syncgate_pin_a}":                         {"web", "syncgate_pin_a"},
		"web:1@${syncgate_receipt_web}":                 {},
		"web:1@${syncgate_pin_}":                        {},
		"web:1@sha256:${syncgate_pin_web}":              {},
		"web:${syncgate_pin_web}":                       {},
		"ghcr.io/acme/web:1.5@${syncgate_pin_web:-abc}": {},
	} {
		reference, variable, ok := Pin(image)
		if !ok {
			reference, variable = "", ""
		}
		if got := [2]string{reference, variable}; got != want {
			t.Errorf("%q: got %q, want %q", image, got, want)
		}
	}
}

func TestNamesThatFit(t *testing.T) {
	if got, err := Name("shop"); err != nil || got != "syncgate-flux-shop" {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := Name(strings.Repeat("a", 239)); err != nil || len(got) != 253 {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := Name(strings.Repeat("a", 240)); err == nil {
		t.Errorf("got %q, want an error", got)
	}
}
