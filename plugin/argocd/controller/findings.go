package controller

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/settings"
)

// Finding is one way in which the gate is not in the path of an Application, or
// is asked for what it refuses. Codes are stable: they are the reasons of
// events and a label of the metric.
type Finding struct {
	Code string
	Text string // one ASCII line
}

// The codes, in the order in which findings are reported.
const (
	PluginMissing            = "PluginMissing"            // no source names the plugin
	UngatedSource            = "UngatedSource"            // some do, another one does not
	SourceHydrator           = "SourceHydrator"           // what is synced was rendered elsewhere
	LocalSync                = "LocalSync"                // manifests in the operation itself
	UngatedOperation         = "UngatedOperation"         // a sync, or rollback, of a source without the plugin
	RespectIgnoreDifferences = "RespectIgnoreDifferences" // live values win over signed ones
	AnnotationRefused        = "AnnotationRefused"        // asks for what policy forbids
	OnlyWarned               = "OnlyWarned"               // what would be refused syncs
	SwitchedOff              = "SwitchedOff"              // by an off-switch, for a while
	WouldBeRefused           = "WouldBeRefused"           // of what only warns: which objects, and why
)

// findingCodes returns all codes.
func findingCodes() []string {
	return []string{PluginMissing, UngatedSource, SourceHydrator, LocalSync, UngatedOperation, RespectIgnoreDifferences, AnnotationRefused, OnlyWarned, SwitchedOff, WouldBeRefused}
}

// standing is what holds for an Application beside what it says itself.
type standing struct {
	entry   settings.Entry
	warn    bool     // policy only warns at render
	warning *warning // and what of; nil: nobody looked
	off     string   // until when an off-switch is in force, and why; empty: none is
}

// findings are those of one Application of a gated project, at most one of a
// code, in the order of the codes.
func (a application) findings(st standing) []Finding {
	var out []Finding
	add := func(code, format string, args ...any) {
		out = append(out, Finding{code, gate.ASCII(fmt.Sprintf(format, args...))})
	}
	spec := a.spec()
	hydrated := spec.has("sourceHydrator")
	all := sources(spec)
	bare := ungated(all)
	switch {
	case hydrated: // then source and sources do not count
	case len(bare) == len(all):
		add(PluginMissing, "no source names the plugin %s: nothing of this Application is judged before it syncs; syncgate migrate moves it", plugin)
	case len(bare) > 0:
		add(UngatedSource, "%d of %d sources do not name the plugin %s, %s first: what it renders takes the place of the same object of a gated source", len(bare), len(all), plugin, describe(bare[0]))
	}
	if hydrated {
		add(SourceHydrator, "spec.sourceHydrator: what is synced is a branch that nobody judged")
	}
	asked, state := tree(a.object.Object).object("operation").object("sync"), a.status().object("operationState").object("operation").object("sync")
	for _, sync := range []tree{asked, state} {
		if len(sync.texts("manifests")) > 0 {
			add(LocalSync, "an operation syncs manifests of its own (app sync --local): the plugin is not asked, and until the next operation the Application is compared with them")
			break
		}
	}
	for _, sync := range []tree{asked, state, a.goingOn()} {
		if bare := ungated(sources(sync)); len(bare) > 0 {
			add(UngatedOperation, "an operation syncs %s, which does not name the plugin %s: a rollback to before the gate", describe(bare[0]), plugin)
			break
		}
	}
	if paths := a.respected(asked); len(paths) > 0 {
		add(RespectIgnoreDifferences, "RespectIgnoreDifferences=true with ignoreDifferences on %.200q: the live value is applied instead of the signed one", paths[0])
	}
	if st.entry.Refused != "" {
		add(AnnotationRefused, "%s", st.entry.Refused)
	}
	if st.warn {
		add(OnlyWarned, "%s", st.warning.text())
	}
	if st.off != "" {
		add(SwitchedOff, "an off-switch lets what would be refused pass until %s", st.off)
	}
	if st.warn && st.warning != nil && len(st.warning.items) > 0 {
		add(WouldBeRefused, "%s", st.warning.sentence())
	}
	return out
}

// goingOn is the result so far of an operation that is not over. Argo CD 3 goes on
// with its sources, whatever the operation names (controller/sync.go).
func (a application) goingOn() tree {
	state := a.status().object("operationState")
	result := state.object("syncResult")
	over := slices.Contains([]string{"Succeeded", "Failed", "Error"}, state.text("phase"))
	if over || result.object("source").text("repoURL") == "" && len(result.objects("sources")) == 0 {
		return nil
	}
	return result
}

func ungated(list []tree) []tree {
	return slices.DeleteFunc(slices.Clone(list), gated)
}

func describe(source tree) string {
	what := source.text("path")
	if what == "" {
		what = source.text("chart")
	}
	return fmt.Sprintf("%.80q of %.120q", what, source.text("repoURL"))
}

var respect = regexp.MustCompile(`^\s*RespectIgnoreDifferences\s*=\s*true\s*$`)

// respected returns the paths whose live value a sync puts in the place of the
// signed one, but for those that are never gated. The policy in
// manifests/policies/argocd goes by the same paths.
func (a application) respected(asked tree) []string {
	options := append(a.spec().object("syncPolicy").texts("syncOptions"), asked.texts("syncOptions")...)
	if !slices.ContainsFunc(options, respect.MatchString) {
		return nil
	}
	var out []string
	for _, d := range a.spec().objects("ignoreDifferences") {
		for _, p := range d.texts("jsonPointers") {
			if p != "/spec/replicas" && !strings.HasPrefix(p, "/metadata/") && !strings.HasPrefix(p, "/status") {
				out = append(out, p)
			}
		}
		out = append(out, d.texts("jqPathExpressions")...)
		for _, m := range d.texts("managedFieldsManagers") {
			out = append(out, "fields of "+m)
		}
	}
	return out
}

// statusText is the value of the annotation: empty without findings.
func statusText(list []Finding) string {
	var parts []string
	for _, f := range list {
		parts = append(parts, "["+f.Code+"] "+f.Text)
	}
	const room = 3 << 10 // a whole sentence, and what else there may be
	text := strings.Join(parts, "; ")
	if len(text) > room {
		text = text[:room-3] + "..."
	}
	return text
}
