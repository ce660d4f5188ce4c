//go:build e2e

package e2e

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

const day = 24 * time.Hour

// aged makes the receipts of a signer as old as if they had been signed so long
// ago and expired then.
func aged(s *harness.Signer, manifests string, signed, expired time.Duration) string {
	seconds := func(ago time.Duration) json.Number {
		return json.Number(fmt.Sprint(time.Now().Add(-ago).Unix()))
	}
	return s.Reclaim(manifests, func(claims map[string]any) { claims["iat"], claims["exp"] = seconds(signed), seconds(expired) })
}

// job is one that a hook makes anew with each sync.
func hookJob(name, image string) string {
	return fmt.Sprintf(`{apiVersion: batch/v1, kind: Job, metadata: {name: %s}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: work, image: %q}]}}}}`+"\n", name, image)
}

func (r redTeam) TestRedTeamF09ExpiryHoldsForWhatIsCreatedAnew() {
	web := one("Deployment", "web", harness.Image("web:1"))
	expired := aged(r.release, r.sign(web), 10*day, 2*day)
	create := func(manifest string) harness.Result {
		return r.send(owner, manifest, "create", "--filename", "-")
	}
	r.refused(create(expired), "ReceiptExpired", "Deployment %s/web: ", ": receipt ", "expired at ")
	// Deleting first makes every update a creation.
	r.deploy(web)
	r.passed(r.as(owner, "delete", "deployment/web"))
	r.refused(create(expired), "ReceiptExpired", "Deployment %s/web: ", ": receipt ", "expired at ")

	// Grace is for what is created again and again, loudly, and not for ever.
	for _, manifest := range []string{barePod("hook", harness.Image("web:1"), ""), hookJob("hook", harness.Image("web:1"))} {
		signed := r.sign(manifest)
		text := r.passed(create(aged(r.release, signed, 10*day, 2*day)))
		if !strings.Contains(text, "has expired and counts by grace alone: sign anew") {
			r.T.Errorf("got %q, want a warning", text)
		}
		r.as(owner, "delete", "pod/hook", "job/hook", "--ignore-not-found", "--grace-period=0", "--force")
		r.refused(create(aged(r.release, signed, 20*day, 8*day)), "ReceiptExpired", "%s/hook: ", ": receipt ", "expired at ", written(owner))
		glass := r.signBy(r.glass, manifest, "--lifetime=1h")
		r.refused(create(aged(r.glass, glass, 3*time.Hour, 2*time.Hour)), "ReceiptExpired", "(issuer glass) expired at ", written(owner))
	}
}

// revoke extends the revocation list and has the webhook go by it.
func (r redTeam) revoke(args ...string) {
	r.T.Helper()
	list := r.Path("revocations.jwt")
	r.T.Logf("%s", r.Run(r.Dir, nil, r.b.Syncgate, append([]string{"revoke", "--list", list, "--key", r.security.Key, "--issuer", "security"}, args...)...))
	data, err := os.ReadFile(list)
	if err != nil {
		r.T.Fatal(err)
	}
	was := r.serial()
	r.publish(string(data))
	r.Eventually("the webhook to go by the new list", func() (string, bool) {
		return fmt.Sprint(r.serial()), r.serial() > was
	})
}

func (r redTeam) serial() float64 {
	r.T.Helper()
	return r.webhooks.Metric("syncgate_revocation_list_serial", nil)
}

// publish puts a revocation list where the webhook reads it.
func (r redTeam) publish(list string) {
	r.T.Helper()
	r.policy.Extra = map[string]string{"revocations.jwt": list}
	r.policy.SwapPolicy(r.text+"revocations: {file: revocations.jwt, issuers: [security]}\n", r.release, r.security, r.glass)
}

func (r redTeam) TestRedTeamF10AnOldRevocationListDoesNotComeBack() {
	signed := r.sign(one("Deployment", "web", harness.Image("web:1")))
	r.revoke("--reissue")
	old := r.policy.Extra["revocations.jwt"]
	var u unstructured.Unstructured
	r.decodeInto(&u, signed)
	r.revoke("--issued-before=2999-01-01", "--subject=apps/Deployment/"+r.ns+"/*")
	create := func() harness.Result { return r.send(owner, signed, "create", "--filename", "-") }
	r.refused(create(), "ReceiptRevoked", "Deployment %s/web: ", ": receipt ", "is revoked (issued before ")
	serial := r.serial()
	r.publish(old)
	r.Eventually("the webhook to call the old list bad", func() (string, bool) {
		failed := r.webhooks.Metric("syncgate_reload_failed", nil)
		return fmt.Sprint(failed), failed == 1
	})
	if got := r.serial(); got != serial {
		r.T.Errorf("serial in force: got %v, want %v", got, serial)
	}
	r.refused(create(), "ReceiptRevoked")
	// Nor does a list that the release's key signs, which CI has.
	forged := r.Path("forged.jwt")
	r.Run(r.Dir, nil, r.b.Syncgate, "revoke", "--list", forged, "--key", r.release.Key, "--issuer", "release", "--reissue")
	data, err := os.ReadFile(forged)
	if err != nil {
		r.T.Fatal(err)
	}
	r.publish(string(data))
	r.refused(create(), "ReceiptRevoked")
	r.revoke("--reissue") // the newest counts again
	r.refused(create(), "ReceiptRevoked")
}

// TestRedTeamF16...: undo and create job --from are among what people type.
func (r redTeam) TestRedTeamF16WhatIsRestoredUsesItsParentsReceipt() {
	r.deploy(one("Deployment", "web", harness.Image("web:1")))
	r.Kubectl(nil, "rollout", "status", "deployment/web", "--timeout=120s", "--namespace", r.ns)
	restored := func(resource string) string {
		r.T.Helper()
		var list unstructured.UnstructuredList
		if err := json.Unmarshal(r.Kubectl(nil, "get", resource, "--selector=app=web", "--output=json", "--namespace", r.ns), &list); err != nil {
			r.T.Fatal(err)
		}
		u := list.Items[0]
		u.SetName("restored")
		u.SetResourceVersion("")
		u.SetUID("")
		delete(u.Object, "status")
		unstructured.RemoveNestedField(u.Object, "spec", "nodeName")
		data, err := json.Marshal(u.Object)
		if err != nil {
			r.T.Fatal(err)
		}
		return string(data)
	}
	create := func(manifest string) harness.Result {
		return r.send(owner, manifest, "create", "--filename", "-", "--dry-run=server")
	}
	set := restored("replicasets")
	r.passed(create(set))
	r.refused(create(strings.ReplaceAll(set, harness.Image("web:1"), harness.Image("evil:1"))), "DigestMismatch",
		"ReplicaSet %s/restored: containers[web].image is registry.example.test/evil:1@", "was signed for another image"+written(owner))
	// A backup that forgets whose it is is for a trusted writer to restore.
	stray := unowned.ReplaceAllString(set, "")
	r.refused(create(stray), "SubjectMismatch", "ReplicaSet %s/restored: ", ": receipt ", "is for apps/Deployment/%s/web, which its ownerReferences do not name as its controller"+written(owner))
	r.refused(create(restored("pods")), "ReceiptMissing", "Pod %s/restored: no receipt for image", written(owner))
}

var unowned = regexp.MustCompile(`"ownerReferences":\[[^]]*\],?`)

func (r redTeam) TestRedTeamF18AStrippedReceiptBringsNothingRevokedBack() {
	first := one("Deployment", "web", harness.Image("vulnerable:1"))
	old := aged(r.release, r.sign(first), 10*day, -10*day)
	r.deploy(first)
	r.deploy(one("Deployment", "web", harness.Image("fixed:2")), "--release=2")
	strip := func() { r.passed(r.as(owner, "annotate", "deployment/web", "syncgate.io/receipt-")) }
	apply := func() harness.Result {
		return r.send(owner, old, "apply", "--server-side", "--force-conflicts", "--filename", "-")
	}
	// Without a floor this is a rollback, as the threat model says (Time).
	strip()
	r.passed(apply())
	r.passed(r.send(owner, r.sign(one("Deployment", "web", harness.Image("fixed:2"))), "apply", "--server-side", "--force-conflicts", "--filename", "-"))
	strip()
	r.revoke("--issued-before="+time.Now().Add(-day).Format(time.DateOnly), "--subject=apps/Deployment/"+r.ns+"/web", "--category=image")
	r.refused(apply(), "ReceiptRevoked", "Deployment %s/web: ", ": receipt ", "is revoked (issued before ")
	r.passed(r.as(owner, "delete", "deployment/web"))
	r.refused(apply(), "ReceiptRevoked", "Deployment %s/web: ", ": receipt ", "is revoked (issued before ")
	r.deploy(one("Deployment", "web", harness.Image("fixed:2")))
}

func (r redTeam) TestRedTeamF19YesterdaysPrivilegeIsNotForAnotherProgram() {
	agent := func(image string) string {
		return strings.Replace(one("Deployment", "agent", image), "name: web, image", "name: agent, securityContext: {privileged: true}, image", 1)
	}
	sign := func(s *harness.Signer, image string) string {
		return s.SignApp(r.policy, "f19", agent(image), r.ns)
	}
	apply := func(manifest string) harness.Result {
		return r.send(deployer, manifest, "apply", "--server-side", "--force-conflicts", "--filename", "-")
	}
	alone := sign(r.release, harness.Image("agent:1"))
	r.refused(apply(alone), "CategoryNotCovered", "Deployment %s/agent: no receipt covers privilege (")
	r.passed(apply(sign(r.security, harness.Image("agent:1"))))
	r.passed(apply(sign(r.release, harness.Image("agent:2")))) // a new version is the release's alone
	r.refused(apply(sign(r.release, harness.Image("evil:1"))), "DigestMismatch", "Deployment %s/agent: ", "containers[agent].image#repository is registry.example.test/evil", "(issuer security) was signed")
}

func (r redTeam) TestRedTeamF38ASignedTagIsNotPinned() {
	loose := harness.NewPolicy(r.Env, r.ns+"-loose", harness.BasicPolicy("release")+"images: {pins: AlreadyPinned, allowUnpinned: [\"*:*\"]}\n", r.release)
	signed := r.release.SignApp(loose, "f38", one("Deployment", "web", "web:latest"), r.ns)
	if !strings.Contains(signed, ".eyJ") {
		r.T.Fatal("not signed")
	}
	text := r.refused(r.send(developer, signed, "apply", "--filename", "-"), "ImageNotPinned", "Deployment %s/web: containers[web].image is web:latest, which has no digest")
	if strings.Contains(text, "ReceiptMissing") {
		r.T.Errorf("got %q: the receipt does not count", text)
	}
}

func (r redTeam) TestRedTeamF40ARevokedImageRunsOnAndComesNowhereElse() {
	image := harness.Image("holed:1")
	r.deploy(one("Deployment", "web", image))
	other := r.sign(stream(one("Deployment", "other", image), barePod("other", image, "")))
	_, digest, _ := strings.Cut(image, "@")
	r.revoke("--image=" + digest)
	r.passed(r.as(developer, "scale", "deployment/web", "--replicas=2"))
	r.passed(r.as(developer, "rollout", "restart", "deployment/web"))
	r.passed(r.as(developer, "rollout", "status", "deployment/web", "--timeout=120s"))
	result := r.send(developer, other, "apply", "--filename", "-")
	r.refused(result, "ReceiptRevoked", "Deployment %s/other: ", ": receipt ", "is revoked (image "+digest+")")
	if text := string(result.Stderr); strings.Count(text, "ReceiptRevoked") != 2 {
		r.T.Errorf("got %q, want the Pod refused as well", text)
	}
}

// emptyDigest is the projection digest of an object without gated fields.
func emptyDigest(covers []any) string {
	var fields []string
	for _, c := range covers { // sorted, as claims are
		fields = append(fields, fmt.Sprintf("%q:{}", c))
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256(fmt.Appendf(nil, `{"fields":{%s},"profile":"v1"}`, strings.Join(fields, ","))))
}
