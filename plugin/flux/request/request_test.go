package request_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/syncgate/syncgate/plugin/application"
	"github.com/syncgate/syncgate/plugin/flux/request"
)

func TestRead(t *testing.T) {
	const (
		git      = "sourceRef: {kind: GitRepository, name: shop}"
		own      = "sourceRef: {kind: ExternalArtifact, name: syncgate-flux-web}"
		says     = "syncgate.io/source: GitRepository/shop"
		required = git + ", postBuild: {substituteFrom: [{kind: ConfigMap, name: syncgate-flux-web}]}"
	)
	for name, c := range map[string]struct {
		annotations, spec string
		mode              application.Mode
		wrong             string // in the refusal; empty: there is none
	}{
		"neither":                {"", git, application.Plain, ""},
		"postBuild mode":         {"", required, application.PostBuild, ""},
		"artifact mode":          {says, own, application.Artifact, ""},
		"another's artifact":     {"", "sourceRef: {kind: ExternalArtifact, name: syncgate-flux-api}", application.Plain, ""},
		"its own artifact":       {"syncgate.io/source: ExternalArtifact/syncgate-flux-web", own, application.Artifact, "what the gate itself publishes: name the GitRepository"},
		"no source":              {"", own, application.Artifact, "syncgate.io/source"},
		"the annotation alone":   {says, git, application.Artifact, "the gate is not in the path"},
		"both":                   {says, required, application.PostBuild, "is for artifact mode"},
		"force":                  {"", required + ", force: true", application.PostBuild, "ForceNotAllowed"},
		"force of one ungated":   {"", git + ", force: true", application.Plain, ""},
		"optional":               {"", strings.Replace(required, "web}", "web, optional: true}", 1), application.PostBuild, "optional"},
		"patches after the gate": {says, own + ", patches: [{patch: a}]", application.Artifact, "patches"},
		"a field of tomorrow":    {"", required + ", shiny: true", application.PostBuild, "shiny"},
	} {
		t.Run(name, func(t *testing.T) {
			var object map[string]any
			text := "{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: web, namespace: shop, annotations: {" + c.annotations + "}}, spec: {interval: 1h, prune: true, " + c.spec + "}}"
			if err := yaml.Unmarshal([]byte(text), &object); err != nil {
				t.Fatal(err)
			}
			r := request.Read(object, "flux-system")
			if r.Mode != c.mode || r.Own != "syncgate-flux-web" {
				t.Errorf("mode %q of %q, want %q", r.Mode, r.Own, c.mode)
			}
			switch {
			case c.wrong == "" && r.Wrong != nil:
				t.Errorf("refused: %v", r.Wrong)
			case c.wrong != "" && (r.Wrong == nil || !strings.Contains(r.Wrong.Error(), c.wrong)):
				t.Errorf("refusal %v, want one with %q", r.Wrong, c.wrong)
			case c.wrong != "" && strings.Contains(r.Wrong.Error(), "document"):
				t.Errorf("refusal %v: there is one object, and no document", r.Wrong)
			case c.wrong == "" && c.mode != application.Plain && r.Says.App.Name != "shop_web":
				t.Errorf("policy calls it %q", r.Says.App.Name)
			}
		})
	}
}
