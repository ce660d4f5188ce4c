package app_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/syncgate/syncgate/plugin/gate"
)

// scenarios are failures of systems of this kind, and what must hold here. The
// numbers are those of the research that they come from.
var scenarios = []tabled{
	{1, "TestTheControllerKeepsArgoCDsCacheHonest"},
	{2, "TestRedTeamF20TighteningHasADayAndKeysAreRetired, TestEveryGatedApplicationIsRefreshedForAPolicy"},
	{3, "TestArgoCDSyncsWhatIsSignedAndNothingElse"},
	{4, "TestCase013ARateLimitIsWaitedForAndThenGivenUp, TestWhatHangsIsRefusedInTime"},
	{5, "TestTheSidecarWhateverHappens, TestAPanicIsARefusal"},
	{6, "TestPinningWebhookMakesOneReplicaSetOfOurOutput"},
	{7, "TestArgoCDSyncsWhatIsSignedAndNothingElse"},
	{8, "TestCase003ATagThatMovedChangesNothingThatWasPinned"},
	{9, "TestAnOutageOfTheWebhookStopsNothingOrdinary"},
	{10, "git: TestTheSidecarWhateverHappens; undo: TestHandTypedKubectlIsAnsweredRightly"},
	{11, "TestTheSidecarWhateverHappens, TestCase053AnObjectThatIsBeingDeletedLosesItsFinalizerWithoutAReceipt"},
	{12, "measured: docs/benchmarks.md"},
	{13, "TestCase019AnExemptImageIsDecidedWithoutARegistry; what the webhook links has no registry: TestPackagesLinkOnlyWhatTheyMay"},
	{14, "TestCase035TheWordThatAnInjectorReplacesIsNeverLookedUp, TestRedTeamF36ATokenVolumeByHandIsALeaf, TestCase071DefaultsOfOneNamespaceDoNotChangeTheDigest"},
	{15, ""},
	{16, "TestCase069AnOwnerReferenceDoesNotSpeakForAPod"},
	{17, "by policies: TestPoliciesForArgoCDOnARealAPIServer"},
	{18, "TestArgoCDSyncsWhatIsSignedAndNothingElse, TestCase083EveryRefusalIsOneSentenceWithANextStep"},
	{19, "TestCase085TheVersionThatAChartSeesIsRecordedAndExplained, TestChartsThatDependOnChanceAreRefused, TestDependencies"},
	{20, "TestFluxAppliesWhatIsSignedAndNothingElse"},
}

func TestEveryScenarioIsTested(t *testing.T) {
	checkTable(t, scenarios, "TestScenarioT%02d", func(s tabled) bool { return s.number == 12 })
}

func TestNoScenarioIsForgotten(t *testing.T) {
	rows := regexp.MustCompile(`(?m)^\| T\d+ \|`).FindAllString(shared(t, "research/peers.md"), -1)
	if len(rows) != len(scenarios) {
		t.Errorf("%d scenarios in the research, %d here", len(rows), len(scenarios))
	}
}

// TestScenarioT15AnImageIsFoundWhereverItIsHidden: nobody signed it, and it is
// named with its place.
func TestScenarioT15AnImageIsFoundWhereverItIsHidden(t *testing.T) {
	hidden := webImage("hidden", "b")
	image := `image: "` + hidden + `"`
	pod := func(spec string) string { return object("v1", "Pod", "name: web, namespace: shop", "spec: {"+spec+"}") }
	good := `containers: [{name: web, image: "` + webImage("1.5", "a") + `"}]`
	for _, tc := range []struct{ name, manifest, place string }{
		{"an ephemeral container", pod(good + ", ephemeralContainers: [{name: d, " + image + "}]"), "ephemeralContainers[d].image"},
		{"an image volume", web(`volumes: [{name: v, image: {reference: "`+hidden+`"}}]`, ""), "volumes[v].image.reference"},
		{"an init container", web("initContainers: [{name: i, "+image+"}]", ""), "initContainers[i].image"},
		{"a CronJob", object("batch/v1", "CronJob", "name: web, namespace: shop", "spec: {jobTemplate: {spec: {template: {spec: {containers: [{name: c, "+image+"}]}}}}}"), "containers[c].image"},
		{"a Rollout", object("argoproj.io/v1alpha1", "Rollout", "name: web, namespace: shop", "spec: {template: {spec: {containers: [{name: c, "+image+"}]}}}"), "containers[c].image"},
		{"a List", strings.Replace("{apiVersion: v1, kind: List, items: [POD]}\n", "POD", strings.TrimSuffix(pod("containers: [{name: c, "+image+"}]"), "\n---\n"), 1), "containers[c].image"},
		{"a hook", object("batch/v1", "Job", "generateName: migrate-, namespace: shop, annotations: {argocd.argoproj.io/hook: PreSync}", "spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, "+image+"}]}}}"), "containers[c].image"},
		{"a kind that nobody knows", object("example.com/v1", "Thing", "name: web, namespace: shop", "spec: {deep: {podTemplate: {spec: {containers: [{name: c, "+image+"}]}}}}"), "containers[c].image"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSite(t, "")
			s.write("all.yaml", tc.manifest)
			s.refused(gate.ReceiptMissing)
			// Signed without it, it is still found.
			s.write("all.yaml", strings.ReplaceAll(tc.manifest, hidden, webImage("1.5", "a")))
			s.signed("release")
			s.allowed()
			s.write("all.yaml", tc.manifest)
			s.refused(gate.DigestMismatch, tc.place+" is ghcr.io/acme/web:hidden@sha256:bb")
		})
	}
}
