package app_test

import (
	"strings"
	"testing"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/keys"
	"github.com/syncgate/syncgate/plugin/policy"
	"github.com/syncgate/syncgate/plugin/receipt"
	"github.com/syncgate/syncgate/plugin/settings"
)

func TestWhoChoosesTheEnvironmentIsToldWhere(t *testing.T) {
	const text = "apiVersion: syncgate.io/v1alpha1\nkind: GatePolicy\nenvironments: [{name: prod}, {name: stage}, {name: bank, match: {name: bank}}]\n" +
		"issuers: [{name: release, keys: {file: release}, subjects: ['*/*/*/*']}]\n"
	p, err := policy.Parse([]byte(text), "policy.yaml", func(path string) ([]byte, error) {
		return keys.PublicJWKS([]receipt.Key{signer(t, "release").Key()})
	})
	must(t, err)
	for _, tc := range []struct {
		name, kind, operator, asked string
		entry                       settings.Entry
		fix                         string
	}{
		{name: "an Application, of a wrong one", kind: app.Application, asked: "bank", fix: "change SYNCGATE_ENVIRONMENT in plugin.env of the Application to one of these"},
		{name: "an Application, of none", kind: app.Application, fix: "name one of these as SYNCGATE_ENVIRONMENT in plugin.env of the Application"},
		{name: "a Kustomization, of none", kind: app.Kustomization, fix: "name one of these in the annotation syncgate.io/environment of the Kustomization"},
		{name: "a command line, of none", fix: "name one of these with --environment"},
		{name: "an operator, of a wrong one", kind: app.Application, operator: "moon", fix: "whoever operates the gate: change --environment to one of these"},
		{name: "an annotation, of a wrong one", kind: app.Application, entry: settings.Entry{Environment: "bank"}, fix: "change or remove the annotation of the Application"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := app.EffectiveAsking(p, tc.kind, policy.App{Name: "web", Environment: tc.asked}, tc.operator, tc.entry)
			if err == nil || !strings.HasSuffix(err.Error(), "; Fix: "+tc.fix) {
				t.Errorf("got %v, want the next step %q", err, tc.fix)
			}
		})
	}
}
