package app

import (
	"fmt"
	"slices"
	"strings"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/lock"
	"github.com/syncgate/syncgate/plugin/render"
)

// inputs are what a render depended on beside the repository.
func inputs(r render.Result) lock.RenderInputs {
	name, version, _ := strings.Cut(r.Renderer, " ")
	return lock.RenderInputs{
		KubeVersion: r.KubeVersion, APIVersions: r.APIVersions,
		Renderers: map[string]string{name: version},
	}
}

// writeInputs records them beside new receipts. There is no file for what
// depends on nothing but the repository, unless it has to be put right.
func (b *Build) writeInputs(dir string) error {
	signed, err := lock.ReadRenderInputs(dir)
	if err != nil {
		return err
	}
	in := b.Inputs
	if in.KubeVersion == "" && len(signed.Renderers) == 0 {
		plain := true
		for _, version := range in.Renderers {
			plain = plain && version == ""
		}
		if plain {
			return nil
		}
	}
	return lock.WriteRenderInputs(dir, in)
}

// explain adds to the first digest that does not match that it was signed for
// other inputs: that is no tampering. Nothing is decided by it.
func (b *Build) explain(results []Result) {
	text := difference(b.Inputs, b.signedFor)
	if text == "" {
		return
	}
	for _, r := range results {
		for i := range r.Items {
			if r.Items[i].Reason == gate.DigestMismatch {
				r.Items[i].Text += "; " + text
				return
			}
		}
	}
}

// difference says how the inputs differ from those that were signed for,
// which may be unknown.
func difference(now, signed lock.RenderInputs) string {
	var parts []string
	if a, b := kubeVersion(now), kubeVersion(signed); a != b && a != "" && b != "" {
		parts = append(parts, fmt.Sprintf("rendered for Kubernetes %s, signed for %s", a, b))
	}
	if a, b := rendererText(now), rendererText(signed); a != b && a != "" && b != "" {
		parts = append(parts, fmt.Sprintf("rendered by %s, signed with %s", a, b))
	}
	if now.KubeVersion != "" && signed.KubeVersion != "" {
		if list := missing(groupVersions(signed), now.APIVersions); len(list) > 0 {
			parts = append(parts, "rendered without the API versions "+short(list)+", which signing had")
		}
		if list := missing(groupVersions(now), signed.APIVersions); len(list) > 0 {
			parts = append(parts, "rendered with the API versions "+short(list)+", which signing had not")
		}
	}
	return strings.Join(parts, ", ")
}

func kubeVersion(in lock.RenderInputs) string {
	return strings.TrimPrefix(render.FullKubeVersion(in.KubeVersion), "v")
}

func rendererText(in lock.RenderInputs) string {
	var out []string
	for name, version := range in.Renderers {
		out = append(out, strings.TrimSpace(name+" "+version))
	}
	slices.Sort(out)
	return strings.Join(out, " and ")
}

// groupVersions are the API versions that are not of a built-in group: those
// Helm assumes anyhow. A cluster also lists every kind of each, "g/v1/Kind".
func groupVersions(in lock.RenderInputs) []string {
	var out []string
	for _, v := range in.APIVersions {
		group, _, _ := strings.Cut(v, "/")
		if strings.Count(v, "/") == 1 && strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io") {
			out = append(out, v)
		}
	}
	slices.Sort(out)
	return out
}

func missing(list, in []string) []string {
	return slices.DeleteFunc(list, func(v string) bool { return slices.Contains(in, v) })
}

func short(list []string) string {
	const most = 3
	if len(list) > most {
		return strings.Join(list[:most], ", ") + fmt.Sprintf(" and %d more", len(list)-most)
	}
	return strings.Join(list, ", ")
}
