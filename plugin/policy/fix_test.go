package policy_test

import (
	"testing"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/policy"
	"github.com/syncgate/syncgate/plugin/projection"
	"github.com/syncgate/syncgate/plugin/receipt"
)

func TestFixSaysWhoMaySignWhatIsMissing(t *testing.T) {
	object, err := projection.Project(map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "web", "namespace": "shop"},
		"spec": map[string]any{"hostPID": true, "automountServiceAccountToken": false, "containers": []any{map[string]any{"name": "web", "image": "web", "command": []any{"x"}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	issuers := map[string]gate.Issuer{
		"release":  {Categories: []projection.Category{projection.Image, projection.Command}, Subjects: []gate.Glob{"*/*/shop/*"}},
		"security": {AllSubjects: true},
		"audit":    {AllSubjects: true, Categories: []projection.Category{projection.Privilege}},
		"glass":    {AllSubjects: true, BreakGlass: true},
	}
	privilege := gate.Requirement{Categories: []projection.Category{projection.Privilege}, Issuers: []string{"security"}, Threshold: 1}
	both := gate.Requirement{Categories: []projection.Category{projection.Privilege}, Issuers: []string{"audit", "security"}, Threshold: 2}
	none := gate.Requirement{Categories: []projection.Category{projection.Privilege}, Issuers: []string{"gone"}, Threshold: 1}
	for _, tt := range []struct {
		name         string
		requirements []gate.Requirement
		namespace    string
		reason       gate.Reason
		missing      []projection.Category
		want         string
	}{
		{"one issuer may", []gate.Requirement{privilege}, "shop", gate.ReceiptMissing, []projection.Category{projection.Privilege}, "syncgate sign --key FILE --issuer security --environment prod, commit .syncgate"},
		{"either may", nil, "shop", gate.ReceiptMissing, []projection.Category{projection.Image}, "syncgate sign --key FILE --issuer NAME --environment prod, commit .syncgate (NAME: release or security for image)"},
		{"each category has another", []gate.Requirement{privilege}, "shop", gate.DigestMismatch, []projection.Category{projection.Privilege, projection.Image, projection.Command},
			"syncgate sign --key FILE --issuer NAME --environment prod, commit .syncgate (NAME: release or security for command, image; security for privilege)"},
		{"two are needed", []gate.Requirement{both}, "shop", gate.ThresholdNotMet, []projection.Category{projection.Privilege}, "syncgate sign --key FILE --issuer NAME --environment prod, commit .syncgate (NAME: 2 of audit, security for privilege)"},
		{"nobody may", []gate.Requirement{none}, "shop", gate.ReceiptMissing, []projection.Category{projection.Privilege}, "syncgate sign --key FILE --issuer NAME --environment prod, commit .syncgate (NAME: nobody whom policy names for privilege)"},
		{"another object, another issuer", nil, "bank", gate.ReceiptMissing, []projection.Category{projection.Image}, "syncgate sign --key FILE --issuer security --environment prod, commit .syncgate"},
		{"what only tightens may be signed by all", []gate.Requirement{privilege}, "bank", gate.ReceiptMissing, []projection.Category{projection.Identity}, "syncgate sign --key FILE --issuer NAME --environment prod, commit .syncgate (NAME: audit or security for identity)"},
		{"a category without fields asks for nobody", []gate.Requirement{privilege}, "shop", gate.ReceiptMissing, []projection.Category{projection.Privilege, projection.Network}, "syncgate sign --key FILE --issuer security --environment prod, commit .syncgate"},
		{"no signature helps", nil, "shop", gate.ImageNotPinned, []projection.Category{projection.Image}, "syncgate pin, commit .syncgate"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := policy.Effective{Rules: gate.Rules{Environment: "prod", Issuers: issuers, Requirements: tt.requirements}}
			lack := policy.Lack{
				Subject: receipt.Subject{Kind: "Pod", Namespace: tt.namespace, Name: "web"}, Object: object,
				Finding: gate.Finding{Reason: tt.reason, Categories: tt.missing},
			}
			if got := e.Fix(tt.reason, lack); got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}
