//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

var clusterRoleBindings = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"}

// judgesRBAC is a policy by which the webhook judges what gives rights across the
// cluster, and the end of a Deployment.
const judgesRBAC = "scope: {admission: {clusterScoped: [Namespace, ClusterRole, ClusterRoleBinding]}}\ngatedDeletes: [Deployment]\n"

// binds is the ClusterRoleBinding of the shop; annotations in braces.
func (s *fluxShop) binds(who, annotations string) string {
	return fmt.Sprintf(`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: %s, annotations: %s},
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %s}]}
`, s.Namespace, annotations, who)
}

// bound are the subjects of it that the cluster has.
func (s *fluxShop) bound() []string {
	s.T.Helper()
	var all []string
	if u := s.Get(clusterRoleBindings, "", s.Namespace); u != nil {
		for _, x := range harness.Maps(u, "subjects") {
			all = append(all, fmt.Sprint(x["name"]))
		}
	}
	return all
}

// writeBinding writes a version with a ClusterRoleBinding, to be signed.
func (s *fluxShop) writeBinding(tag, who string) {
	s.T.Helper()
	annotations := "{}"
	if s.mode == byPostBuild {
		annotations = `{syncgate.io/receipt: "${syncgate_receipt_binding}"}`
	}
	s.write(tag, 1, "hello", map[string]string{"apps/shop/binding.yaml": s.binds(who, annotations)})
	s.repo.Write(map[string]string{"apps/shop/kustomization.yaml": strings.Replace(string(s.Run(s.repo.Work, nil, "cat", "apps/shop/kustomization.yaml")), "config.yaml]", "config.yaml, binding.yaml]", 1)})
}

// needsNoVariable pushes a revision that Flux builds without the gate's ConfigMap:
// it gives eve rights across the cluster, and leaves the Deployment out.
func (s *fluxShop) needsNoVariable() string {
	s.T.Helper()
	s.repo.Write(map[string]string{
		"apps/shop/binding.yaml":       s.binds("eve", "{}"),
		"apps/shop/kustomization.yaml": "resources: [config.yaml, binding.yaml]\ncommonAnnotations: {kustomize.toolkit.fluxcd.io/substitute: disabled}\n",
	})
	return s.push("Give eve rights")
}

// TestFluxRevisionThatNeedsNoVariable: in postBuild mode Flux applies it although
// the gate refuses it, and the gate says so; artifact mode, an account without
// such rights and a webhook that judges them stop it.
func TestFluxRevisionThatNeedsNoVariable(t *testing.T) {
	e := harness.New(t)
	w := newFluxWorld(e, harness.BasicPolicy("release"))
	release := func(mode string) *fluxShop {
		s := w.newShop(mode)
		s.writeBinding("1", "alice")
		s.sign()
		s.create()
		s.WaitApplied(s.push("Release the shop"))
		s.approved("of the release")
		return s
	}
	holds := func(t *testing.T, s *fluxShop, what string) {
		t.Helper()
		if diff := cmp.Diff([]string{"alice"}, s.bound()); diff != "" {
			t.Errorf("%s: subjects (-want +got):\n%s", what, diff)
		}
		if diff := cmp.Diff([]string{harness.Image("web:1")}, s.running()); diff != "" {
			t.Errorf("%s: images (-want +got):\n%s", what, diff)
		}
		if st := s.Status(); st.ApprovedReason == "AppliedAnyway" {
			t.Errorf("%s: %s", what, st)
		}
	}

	t.Run("applied anyway", func(t *testing.T) {
		s := release(byPostBuild)
		revision := s.needsNoVariable()
		st := s.Wait("word that it is applied", func(st harness.KustomizationStatus) bool { return st.ApprovedReason == "AppliedAnyway" })
		report(t, "status", st.String())
		if st.Approved != "False" || st.Applied != revision || !strings.HasPrefix(st.Sentence, "APPLIED ANYWAY "+revision+": ") || !strings.Contains(st.Sentence, "; SYNC REFUSED [") {
			t.Errorf("status: %s", st)
		}
		s.Eventually("the event", func() (string, bool) {
			all := s.Events("syncgate-controller")
			return strings.Join(all, "\n"), slices.Contains(all, "Warning AppliedAnyway: "+st.Sentence)
		})
		s.Eventually("the notification", func() (string, bool) {
			all := w.Sink.Notifications("syncgate-controller", "Kustomization", s.Namespace, "shop")
			return fmt.Sprint(all), slices.ContainsFunc(all, func(n harness.Notification) bool {
				return n.Reason == "AppliedAnyway" && n.Severity == "error" && n.Message == st.Sentence && n.Metadata["kustomize.toolkit.fluxcd.io/revision"] == revision
			})
		})
		if got := w.gate.Metric("syncgate_flux_applied_anyway_total", map[string]string{"namespace": s.Namespace, "name": "shop"}); got != 1 {
			t.Errorf("metric: got %v, want 1", got)
		}
		// What docs/flux.md says that the webhook does not stop, by default.
		s.Reconcile()
		if diff := cmp.Diff([]string{"eve"}, s.bound()); diff != "" || w.Get(harness.Deployments, s.Namespace, "web") != nil {
			t.Errorf("subjects (-want +got):\n%s\nDeployment: %v", diff, w.Get(harness.Deployments, s.Namespace, "web"))
		}
		s.writeBinding("1", "alice")
		s.sign()
		s.WaitApplied(s.push("Take it back"))
		s.approved("of what takes it back")
		holds(t, s, "after it was taken back")
	})

	t.Run("artifact mode", func(t *testing.T) {
		s := release(byArtifact)
		s.needsNoVariable()
		report(t, "condition", s.WaitRefused("SYNC REFUSED ["))
		if st := s.Reconcile(); st.Ready != "True" {
			t.Errorf("status: %s", st)
		}
		holds(t, s, "in artifact mode")
	})

	t.Run("an account of its own", func(t *testing.T) {
		s := w.newShop(byPostBuild)
		s.Kubectl(nil, "create", "serviceaccount", "flux", "--namespace", s.Namespace)
		w.Apply([]byte(w.signer.Sign(w.policy, `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: flux, namespace: `+s.Namespace+`},
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin}, subjects: [{kind: ServiceAccount, name: flux, namespace: `+s.Namespace+`}]}`, s.Namespace)))
		s.write("1", 1, "hello", nil)
		s.sign()
		s.Replace(fluxSpec(s.mode, s.Namespace)+"  serviceAccountName: flux\n", nil)
		s.WaitApplied(s.push("Release the shop"))
		s.approved("of the release")
		s.needsNoVariable()
		s.WaitRefused("SYNC REFUSED [")
		report(t, "Ready", s.WaitNotReady("clusterrolebindings", "system:serviceaccount:"+s.Namespace+":flux", "forbidden"))
		if got := s.bound(); len(got) > 0 {
			t.Errorf("subjects: %q", got)
		}
		if diff := cmp.Diff([]string{harness.Image("web:1")}, s.running()); diff != "" {
			t.Errorf("images (-want +got):\n%s", diff)
		}
	})

	// What a race is, without the haste: the next revision is there before the gate
	// has taken the ConfigMap away.
	t.Run("a race that is over", func(t *testing.T) {
		s := release(byPostBuild)
		w.gate.Stop()
		s.writeBinding("1", "eve")
		revision := s.push("Give eve rights")
		s.WaitApplied(revision)
		w.gate.Start()
		for _, when := range []string{"at first", "when Flux cannot build it any more"} {
			st := s.Wait("word that it was applied, "+when, func(st harness.KustomizationStatus) bool {
				return st.ApprovedReason == "AppliedAnyway" && (when == "at first" || st.Ready == "False" && strings.Contains(st.Message, `configmaps "syncgate-flux-shop" not found`))
			})
			if !strings.HasPrefix(st.Sentence, "APPLIED ANYWAY "+revision+": ") || !strings.Contains(st.Sentence, "; SYNC REFUSED [DigestMismatch]") {
				t.Errorf("%s: %s", when, st)
			}
		}
		if got := w.gate.Metric("syncgate_flux_applied_anyway_total", map[string]string{"namespace": s.Namespace}); got != 1 {
			t.Errorf("metric: got %v, want 1", got)
		}
		if diff := cmp.Diff([]string{"eve"}, s.bound()); diff != "" { // until something is approved
			t.Errorf("subjects (-want +got):\n%s", diff)
		}
		s.writeBinding("1", "alice")
		s.sign()
		s.WaitApplied(s.push("Take it back"))
		s.approved("of what takes it back")
		holds(t, s, "after it was taken back")
	})

	t.Run("a webhook that judges them", func(t *testing.T) {
		s := release(byPostBuild)
		w.policy.SwapPolicy(harness.BasicPolicy("release")+judgesRBAC, w.signer)
		w.webhooks.Install(harness.WebhookConfiguration(e, w.b, w.policy.Path()))
		w.WaitRefused([]byte(strings.Replace(s.binds("eve", "{}"), "name: "+s.Namespace, "name: probe", 1)), "SYNC REFUSED [ReceiptMissing]")
		s.needsNoVariable()
		s.WaitRefused("SYNC REFUSED [")
		report(t, "Ready", s.WaitNotReady("SYNC REFUSED [", "ClusterRoleBinding"))
		holds(t, s, "with a webhook that judges it")

		// The Deployment is left out alone: the webhook refuses its end.
		s.repo.Write(map[string]string{
			"apps/shop/kustomization.yaml": "resources: [config.yaml]\ncommonAnnotations: {kustomize.toolkit.fluxcd.io/substitute: disabled}\n",
		})
		s.push("Leave the Deployment out")
		s.Wait("a deletion that is refused", func(st harness.KustomizationStatus) bool {
			return st.Ready == "False" && strings.Contains(st.Message, "SYNC REFUSED [") && strings.Contains(st.Message, "Deployment")
		})
		if diff := cmp.Diff([]string{harness.Image("web:1")}, s.running()); diff != "" {
			t.Errorf("images (-want +got):\n%s", diff)
		}
	})
}
