//go:build e2e

package e2e

import (
	"fmt"
	"strings"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// readerBinding gives a role to users.
func readerBinding(role string, users ...string) string {
	var subjects []string
	for _, u := range users {
		subjects = append(subjects, fmt.Sprintf("{apiGroup: rbac.authorization.k8s.io, kind: User, name: %s}", u))
	}
	return fmt.Sprintf(`apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: readers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %s}
subjects: [%s]
`, role, strings.Join(subjects, ", "))
}

func (r redTeam) TestRedTeamF11ForceIsRefusedWhileNothingIsDeletedYet() {
	r.deploy(stream(readerBinding("view", "alice"), hookJob("hook", harness.Image("work:1")), one("StatefulSet", "db", harness.Image("db:1"))))
	for _, annotation := range []string{"argocd.argoproj.io/sync-options=Force=true,Replace=true", "argocd.argoproj.io/sync-options=Replace=true", "kustomize.toolkit.fluxcd.io/force=enabled"} {
		key, _, _ := strings.Cut(annotation, "=")
		text := r.refused(r.as(deployer, "annotate", "rolebinding/readers", annotation), "ForceNotAllowed", "RoleBinding %s/readers: ", key, "would delete a running object before its change is refused")
		if strings.Contains(strings.ToLower(text), "immutable") {
			r.T.Errorf("got %q, which makes Flux delete the object", text)
		}
		r.passed(r.as(deployer, "annotate", "job/hook", "--overwrite", annotation))
	}
	// Together with a change of an immutable field the API server is faster: it
	// answers 422 and asks nobody, and who forces deletes then. The threat model
	// says so (F11).
	before := r.asked()
	other := strings.Replace(readerBinding("edit", "alice"), "name: readers", `name: readers, annotations: {kustomize.toolkit.fluxcd.io/force: enabled}`, 1)
	result := r.send(deployer, other, "apply", "--server-side", "--force-conflicts", "--dry-run=server", "--filename", "-")
	if text := string(result.Stderr); result.Status == 0 || !strings.Contains(text, "field is immutable") || r.asked() != before {
		r.T.Errorf("got status %d, %q, and %v reviews, want the API server's own refusal and none", result.Status, text, r.asked()-before)
	}
	r.T.Logf("by the API server: %s", result.Stderr)
	// What policy lists under gatedDeletes is not deleted, so not forced either.
	r.refused(r.as(deployer, "delete", "statefulset/db"), "DigestMismatch", "StatefulSet %s/db: ")
	for _, u := range []*unstructured.Unstructured{r.Get(harness.RoleBindings, r.ns, "readers"), r.Get(harness.StatefulSets, r.ns, "db")} {
		if u == nil || u.GetDeletionTimestamp() != nil {
			r.T.Errorf("an object is gone, or going: %v", u)
		}
	}
}

// TestRedTeamF13...: the API server shows these kinds to nobody. What keeps them
// is RBAC; doctor finds out afterwards (TestDoctorPassesOnlyWhenConverged).
func (r redTeam) TestRedTeamF13AdmissionIsRBACsToKeep() {
	kinds := []string{
		"validatingwebhookconfigurations", "mutatingwebhookconfigurations", "validatingadmissionpolicies",
		"validatingadmissionpolicybindings", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings",
	}
	for _, kind := range kinds { // what admin may not, edit may not
		for _, verb := range []string{"create", "patch"} {
			r.may(owner, verb, kind+".admissionregistration.k8s.io", false)
		}
	}
	before := r.asked()
	r.passed(r.As(deployer).TryKubectl(nil, "delete", "validatingwebhookconfiguration/syncgate", "--dry-run=server"))
	r.passed(r.As(deployer).TryKubectl(nil, "annotate", "validatingwebhookconfiguration/syncgate", "a=b", "--dry-run=server"))
	if n := r.asked() - before; n != 0 {
		r.T.Errorf("reviews: got %v, want none", n)
	}
}

func (r redTeam) TestRedTeamF23DeletingIsGatedWherePolicySaysSo() {
	closed := `{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: closed}, spec: {podSelector: {}}}` + "\n"
	r.deploy(closed)
	r.refused(r.as(developer, "delete", "networkpolicy/closed"), "DigestMismatch", "NetworkPolicy %s/closed: ", "was signed")
	r.passed(r.as(developer, "annotate", "networkpolicy/closed", "syncgate.io/receipt-"))
	r.refused(r.as(developer, "delete", "networkpolicy/closed"), "ReceiptMissing", "NetworkPolicy %s/closed: no receipt for network")
	r.refused(r.as(developer, "delete", "networkpolicy", "--all"), "ReceiptMissing", "NetworkPolicy %s/closed: ")
	// A receipt for the object without its fields lets it go.
	var u unstructured.Unstructured
	r.decodeInto(&u, r.release.Reclaim(r.sign(closed), func(claims map[string]any) {
		delete(claims, "leaves")
		claims["digest"] = emptyDigest(claims["covers"].([]any))
	}))
	r.passed(r.as(developer, "annotate", "networkpolicy/closed", "syncgate.io/receipt="+u.GetAnnotations()["syncgate.io/receipt"]))
	r.passed(r.as(developer, "delete", "networkpolicy/closed"))
	// A namespace takes along what is in it.
	ns := r.NewNamespace("f23")
	at := *r.gated
	at.ns = ns
	at.deploy(closed)
	at.Kubectl(nil, "delete", "namespace", ns, "--timeout=120s")
}

func (r redTeam) BeforeF24() {
	for _, account := range []string{"airflow", "builder"} {
		r.Kubectl(nil, "create", "serviceaccount", account, "--namespace", r.ns)
	}
	r.Bind("edit", r.ns, "system:serviceaccount:"+r.ns+":airflow")
}

func (r redTeam) TestRedTeamF24WhoIsATrustedWriterWritesWhatItIsTrustedWithAlone() {
	user := "system:serviceaccount:" + r.ns + ":airflow"
	token := strings.TrimSpace(string(r.as(developer, "create", "token", "airflow").Stdout))
	if token == "" {
		r.T.Fatal("the role edit mints no token")
	}
	for name, be := range map[string][]string{"impersonated": {"--as=" + user}, "by its token": {"--token=" + token}} {
		name = strings.ReplaceAll(name, " ", "-")
		create := func(manifest string) harness.Result {
			return r.sendToken(be, manifest)
		}
		r.passed(create(barePod(name, harness.Image("airflow:1"), "")))
		pod := "Pod %s/" + name + "-2: "
		r.refused(create(barePod(name+"-2", harness.Image("evil:1"), "")), "ReceiptMissing", pod+"no receipt for image (spec.containers[web].image)", written(user))
		r.refused(create(barePod(name+"-2", harness.Image("airflow:1"), "hostPID: true,")), "ReceiptMissing", pod, "privilege (spec.hostPID", written(user))
		r.refused(create(barePod(name+"-2", harness.Image("airflow:1"), "serviceAccountName: builder,")), "ReceiptMissing", pod, "identity (spec.serviceAccountName", written(user))
		r.refused(create(hookJob(name+"-2", harness.Image("airflow:1"))), "ReceiptMissing", "Job %s/"+name+"-2: no receipt for image", written(user))
	}
	// The audit log says what passed by trust, and who it was really.
	event := r.WaitAudit("the impersonation", func(a harness.AuditEvent) bool {
		return a.ObjectRef.Namespace == r.ns && a.ImpersonatedUser.Username == user && a.Annotations["pods.syncgate.io/how"] == "trusted"
	})
	if event.User.Username != developer || event.Annotations["pods.syncgate.io/note"] != user {
		r.T.Errorf("got user %q and note %q, want %q and %q", event.User.Username, event.Annotations["pods.syncgate.io/note"], developer, user)
	}
	// Whoever names such a writer has to say that he knows.
	unaware := harness.NewPolicy(r.Env, r.ns+"-unaware", strings.ReplaceAll(r.text, ", acceptImpersonation: true", ""), r.release, r.security, r.glass)
	result := r.Try(r.Dir, nil, r.b.Syncgate, "manifests", "webhook", "--configuration", "--policy", unaware.Path())
	if text := string(result.Stderr); result.Status == 0 || !strings.Contains(text, "acceptImpersonation") || !strings.Contains(text, "trustedWriters[0]") {
		r.T.Errorf("a policy that does not accept impersonation: got status %d, %q", result.Status, text)
	} else {
		r.T.Logf("%s", text)
	}
}

// sendToken creates a manifest as the developer who is somebody else.
func (r redTeam) sendToken(be []string, manifest string) harness.Result {
	r.T.Helper()
	as := developer
	if strings.HasPrefix(be[0], "--token=") {
		// A client certificate would win over the token.
		file := r.Write(r.ns+".kubeconfig", fmt.Appendf(nil, "{apiVersion: v1, kind: Config, clusters: [{name: e2e, cluster: {server: %q, certificate-authority: %q}}], contexts: [{name: e2e, context: {cluster: e2e}}], current-context: e2e}", r.URL, r.CAFile()))
		view := *r.Cluster
		view.Kubeconfig = file
		return view.TryKubectl([]byte(manifest), append(be, "create", "--filename", "-", "--namespace", r.ns)...)
	}
	return r.send(as, manifest, append(be, "create", "--filename", "-")...)
}

// BeforeF31 leaves a ReplicaSet behind with an image from before the gate.
func (r redTeam) BeforeF31() {
	for _, image := range []string{"vulnerable:1", "fixed:2"} {
		r.Apply([]byte(one("Deployment", "web", image)), "--namespace", r.ns)
		r.Kubectl(nil, "rollout", "status", "deployment/web", "--timeout=120s", "--namespace", r.ns)
	}
}

// TestRedTeamF31...: the threat model says that one can be taken out of its
// Deployment, and what helps.
func (r redTeam) TestRedTeamF31ADormantReplicaSetIsOldStockAndNoMore() {
	var old unstructured.Unstructured
	for _, set := range r.List(harness.ReplicaSets, r.ns, "app=web") {
		if cmp.Equal(harness.Images(&set), []string{"vulnerable:1"}) {
			old = set
		}
	}
	name := "replicaset/" + old.GetName()
	// A copy of it, or another image in it, is a change.
	r.refused(r.as(developer, "set", "image", name, "web="+harness.Image("evil:1")), "ReceiptMissing", "ReplicaSet %s/"+old.GetName()+": no receipt for image", written(developer))
	r.refused(r.send(developer, one("ReplicaSet", "copy", "vulnerable:1"), "create", "--filename", "-"), "ImageNotPinned", "ReplicaSet %s/copy: containers[web].image is vulnerable:1, which has no digest"+written(developer))
	// Itself it can be revived: nobody is asked.
	before := r.asked()
	r.passed(r.as(developer, "patch", name, "--type=json", "--patch", `[{"op":"remove","path":"/metadata/ownerReferences"},{"op":"replace","path":"/metadata/labels/app","value":"free"}]`))
	r.passed(r.as(developer, "scale", name, "--replicas=1"))
	r.Eventually("its Pod to run", func() (string, bool) {
		n := 0
		for _, p := range r.pods("app=web") {
			if harness.Maps(&p, "spec", "containers")[0]["image"] == "vulnerable:1" {
				n++
			}
		}
		return fmt.Sprint(n), n == 1
	})
	if n := r.asked() - before; n != 0 {
		r.T.Errorf("reviews: got %v; if the webhook is asked now, the threat model is wrong", n)
	}
	// The advice: without history there is none to revive.
	r.passed(r.as(developer, "delete", name))
	r.passed(r.as(developer, "patch", "deployment/web", "--patch", `{"spec":{"revisionHistoryLimit":0}}`))
	r.passed(r.as(developer, "rollout", "restart", "deployment/web"))
	r.Eventually("the old ReplicaSets to go", func() (string, bool) {
		n := len(r.List(harness.ReplicaSets, r.ns, ""))
		return fmt.Sprint(n), n == 1
	})
}

// BeforeF35 makes what cannot be projected: the API server accepts a variable
// twice.
func (r redTeam) BeforeF35() {
	double := `env: [{name: LD_PRELOAD, value: a}, {name: LD_PRELOAD, value: b}], image: "web:1"`
	r.Kubectl([]byte(strings.Replace(one("Deployment", "web", "web:1"), `image: "web:1"`, double, 1)), "create", "--filename", "-", "--namespace", r.ns)
}

func (r redTeam) TestRedTeamF35WhatCannotBeProjectedCanStillBeOperated() {
	r.passed(r.as(developer, "scale", "deployment/web", "--replicas=2"))
	r.passed(r.as(developer, "label", "deployment/web", "team=shop"))
	r.passed(r.as(developer, "set", "resources", "deployment/web", "--limits=cpu=200m"))
	r.passed(r.as(developer, "rollout", "restart", "deployment/web"))
	r.passed(r.as(developer, "rollout", "status", "deployment/web", "--timeout=120s"))
	if n := len(r.pods("app=web")); n != 2 {
		r.T.Errorf("Pods: got %d, want 2", n)
	}
	r.refused(r.as(developer, "set", "image", "deployment/web", "web="+harness.Image("evil:1")), "ObjectMalformed", "Deployment %s/web: ", "LD_PRELOAD")
	// The way out is an object that can be projected, signed.
	r.passed(r.send(developer, r.sign(one("Deployment", "web", harness.Image("web:1"))), "replace", "--filename", "-"))
}

func (r redTeam) BeforeF41() {
	r.Kubectl(nil, "create", "serviceaccount", "rollouts", "--namespace", r.ns)
	r.Bind("edit", r.ns, "system:serviceaccount:"+r.ns+":rollouts")
}

func (r redTeam) TestRedTeamF41APresetWritesItsOwnObjects() {
	rollouts := r.AsServiceAccount(r.ns, "rollouts")
	user := "system:serviceaccount:" + r.ns + ":rollouts"
	create := func(manifest string) harness.Result {
		return rollouts.TryKubectl([]byte(manifest), "create", "--filename", "-", "--namespace", r.ns)
	}
	r.passed(create(one("ReplicaSet", "web-1", harness.Image("web:1"))))
	r.refused(create(strings.Replace(one("ReplicaSet", "web-2", harness.Image("web:1")), "{name: web-2}", "{name: web-2, annotations: {kustomize.toolkit.fluxcd.io/force: enabled}}", 1)), "ForceNotAllowed", "ReplicaSet %s/web-2: ")
	r.refused(create(one("Deployment", "web", harness.Image("web:1"))), "ReceiptMissing", "Deployment %s/web: ")
	r.refused(create(barePod("web", harness.Image("web:1"), "")), "ReceiptMissing", "Pod %s/web: ", written(user))
}

// TestRedTeamTerminating...: RBAC honours a binding until it is gone, so that one
// that is being deleted is judged, unlike a workload.
func (r redTeam) TestRedTeamTerminatingRoleBindingsStillGrantAndAreJudged() {
	held := strings.Replace(readerBinding("view", "alice"), "name: readers", "name: readers, finalizers: [example.com/held]", 1)
	r.deploy(held)
	r.passed(r.as(owner, "delete", "rolebinding/readers", "--wait=false"))
	if r.Get(harness.RoleBindings, r.ns, "readers").GetDeletionTimestamp() == nil {
		r.T.Fatal("it is not being deleted")
	}
	r.may("alice", "list", "pods", true)
	r.may(owner, "update", "rolebindings", true)
	add := `[{"op":"add","path":"/subjects/-","value":{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"eve"}}]`
	r.refused(r.as(owner, "patch", "rolebinding/readers", "--type=json", "--patch", add), "DigestMismatch", "RoleBinding %s/readers: subjects is ")
	r.may("eve", "list", "pods", false)
	r.passed(r.as(owner, "label", "rolebinding/readers", "a=b"))
	r.passed(r.as(owner, "patch", "rolebinding/readers", "--type=json", "--patch", `[{"op":"remove","path":"/metadata/finalizers"}]`))
	r.Eventually("the binding to be gone", func() (string, bool) {
		return "there", r.Get(harness.RoleBindings, r.ns, "readers") == nil
	})
	r.may("alice", "list", "pods", false)

	// A workload runs nothing more once it is being deleted, but others may read
	// it: only the write that takes its last finalizer, which is never stored, may
	// hold anything.
	r.deploy(strings.Replace(one("Deployment", "web", harness.Image("web:1")), "name: web}\nspec", "name: web, finalizers: [example.com/held]}\nspec", 1))
	r.Kubectl(nil, "rollout", "status", "deployment/web", "--timeout=120s", "--namespace", r.ns)
	r.passed(r.as(owner, "delete", "deployment/web", "--wait=false"))
	r.refused(r.as(owner, "set", "image", "deployment/web", "web="+harness.Image("evil:1")), "DigestMismatch", "Deployment %s/web: containers[web].image is ")
	r.passed(r.as(owner, "patch", "deployment/web", "--type=json", "--patch", fmt.Sprintf(
		`[{"op":"remove","path":"/metadata/finalizers"},{"op":"replace","path":"/spec/template/spec/containers/0/image","value":%q}]`, harness.Image("evil:1"))))
	r.Eventually("it to be gone", func() (string, bool) {
		return "there", r.Get(harness.Deployments, r.ns, "web") == nil
	})
	for _, p := range r.List(harness.Pods, r.ns, "app=web") {
		if got := harness.Maps(&p, "spec", "containers")[0]["image"]; got != harness.Image("web:1") {
			r.T.Errorf("%s: got image %v, want that from before", p.GetName(), got)
		}
	}
}
