package gate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/receipt"
)

func TestMismatchNamesTheFieldThatMoved(t *testing.T) {
	signed := deployment(t, image, `"serviceAccountName":"web",`, `"args":["--token=hunter2"],`)
	withLeaves := sign(t, "release", signed, func(c *receipt.Claims) { c.Leaves = leaves(signed) })
	tests := []struct {
		name             string
		img, spec, extra string
		want             string
	}{
		{"image", other, `"serviceAccountName":"web",`, `"args":["--token=hunter2"],`,
			"containers[web].image is ghcr.io/acme/web:1.5@sha256:bbbbbbbbbbbb..., receipt 01J9releasexxxxxxxxxxxxxxxxxxxxxx (issuer release) was signed for another image"},
		{"host access added", image, `"serviceAccountName":"web","hostPID":true,`, `"args":["--token=hunter2"],`,
			"hostPID is true, containers[web].image#repository is ghcr.io/acme/web; receipt"},
		{"service account gone", image, "", `"args":["--token=hunter2"],`, "serviceAccountName is gone"},
		{"arguments are never shown", image, `"serviceAccountName":"web",`, `"args":["--token=correct-horse"],`, "containers[web].args is changed, receipt"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := evaluate(rules(t), nil, deployment(t, tt.img, tt.spec, tt.extra), withLeaves)
			if len(d.Findings) != 1 || d.Findings[0].Reason != gate.DigestMismatch {
				t.Fatalf("got %+v", d.Findings)
			}
			if got := d.Findings[0].Text; !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want it to hold %q", got, tt.want)
			}
			if strings.Contains(d.Findings[0].Text, "horse") {
				t.Errorf("shows an argument: %q", d.Findings[0].Text)
			}
		})
	}
}

func TestSentence(t *testing.T) {
	many := func(n, size int) (out []gate.Item) {
		for i := range n {
			out = append(out, gate.Item{Subject: fmt.Sprintf("Deployment shop/web-%02d", i), Reason: gate.ReceiptMissing, Text: strings.Repeat("x", size)})
		}
		return out
	}
	tests := []struct {
		name     string
		sentence gate.Sentence
		want     string // "": only the form is checked
		exit     int
	}{
		{"one object", gate.Sentence{Gated: 3, Fix: "sign it", Items: []gate.Item{{Subject: "Deployment shop/web", Reason: gate.ReceiptMissing, Text: "no receipt for image"}}},
			"SYNC REFUSED [ReceiptMissing] 1 of 3 gated objects: Deployment shop/web: no receipt for image; Fix: sign it", 10},
		{"another code is named in its item", gate.Sentence{Gated: 2, Items: []gate.Item{
			{Subject: "Service shop/web", Reason: gate.ReceiptExpired, Text: "too late"}, {Subject: "Deployment shop/web", Reason: gate.ReceiptMissing, Text: "none"}}},
			"SYNC REFUSED [ReceiptMissing] 2 of 2 gated objects: (1) Deployment shop/web: none; (2) [ReceiptExpired] Service shop/web: too late", 10},
		{"warn", gate.Sentence{Warn: true, Gated: 1, Items: []gate.Item{{Subject: "Role x", Reason: gate.ReceiptMissing, Text: "none"}}},
			"SYNC WOULD BE REFUSED [ReceiptMissing] 1 of 1 gated objects: Role x: none", 10},
		{"render", gate.Sentence{Items: []gate.Item{{Subject: "", Reason: gate.RenderFailed, Text: "kustomize: no such file"}}}, "RENDER FAILED [RenderFailed] kustomize: no such file", 20},
		{"gate", gate.Sentence{Items: []gate.Item{{Subject: "", Reason: gate.PolicyInvalid, Text: "line 3"}}}, "GATE ERROR [PolicyInvalid] line 3", 30},
		{"the gravest class wins", gate.Sentence{Items: []gate.Item{{Subject: "Role x", Reason: gate.ReceiptMissing, Text: "none"}, {Subject: "", Reason: gate.KeysUnavailable, Text: "no keys"}}}, "", 30},
		{"an unknown code is a gate error", gate.Sentence{Items: []gate.Item{{Subject: "Role x", Reason: gate.Reason("Surprise"), Text: "?"}}}, "", 30},
		{"nothing at all", gate.Sentence{}, "GATE ERROR [PolicyInvalid] nothing was evaluated", 30},
		{"a hundred objects", gate.Sentence{Gated: 100, Fix: "f", Items: many(100, 20)}, "", 10},
		{"long texts", gate.Sentence{Gated: 9, Fix: strings.Repeat("f", 3000), Items: many(9, 5000)}, "", 10},
		{"newlines and other scripts", gate.Sentence{Items: []gate.Item{{Subject: "Role a\nb", Reason: gate.ReceiptMissing, Text: "caf\u00e9\x00\xff\x1b[31m"}}}, "", 10},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := tt.sentence.String()
			if tt.want != "" && got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
			if len(got) > gate.MaxSentence {
				t.Errorf("%d bytes", len(got))
			}
			for i := range len(got) {
				if got[i] < ' ' || got[i] > '~' {
					t.Fatalf("byte %#x in %q", got[i], got)
				}
			}
			if exit := tt.sentence.Class().ExitStatus(); exit != tt.exit {
				t.Errorf("exit %d, want %d", exit, tt.exit)
			}
		})
	}
	if s := (gate.Sentence{Gated: 100, Fix: "the fix", Items: many(100, 20)}).String(); !strings.Contains(s, "(5) ") || !strings.Contains(s, "and 95 more; Fix: the fix") {
		t.Errorf("a hundred objects: %q", s)
	}
}

func TestGlob(t *testing.T) {
	tests := []struct {
		glob, s string
		want    bool
	}{
		{"*/*/*/*", "apps/Deployment/shop/web", true},
		{"*", "apps/Deployment/shop/web", false},
		{"apps/*/shop-*/*", "apps/Deployment/shop-eu/web", true},
		{"apps/*/shop-*/*", "apps/Deployment/bank/web", false},
		{"*/*/-/*", "rbac/ClusterRole/-/x", true},
		{"*/*/-/*", "rbac/Role/shop/x", false},
		{"a*b*c", "aXbYbc", true},
		{"a*b*c", "aXbY", false},
		{"web", "web", true},
		{"web", "webs", false},
		{"*web", "web", true},
	}
	for _, tt := range tests {
		if got := gate.Glob(tt.glob).Match(tt.s); got != tt.want {
			t.Errorf("%q matches %q: got %v, want %v", tt.glob, tt.s, got, tt.want)
		}
	}
}

func TestEveryReasonHasARankAndAClass(t *testing.T) {
	seen := map[gate.Reason]bool{}
	for _, r := range gate.Reasons() {
		if seen[r] {
			t.Errorf("%s is ranked twice", r)
		}
		seen[r] = true
	}
	for _, r := range []gate.Reason{gate.ReceiptMissing, gate.ImageTagMoved, gate.UnknownImage, gate.FieldDropped, gate.ClusterUnavailable} {
		if !seen[r] {
			t.Errorf("%s is not ranked", r)
		}
	}
	if len(seen) != 34 {
		t.Errorf("%d reasons ranked, want 34: a new code needs its place in order and its class", len(seen))
	}
}
