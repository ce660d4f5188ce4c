//go:build e2e

package e2e

import (
	"fmt"
	"strings"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// field is an attack on a signed object that the API server accepts: what
// becomes what, and the field that the refusal names.
type field struct{ name, manifest, before, after, path string }

// fields signs all objects, by both issuers, and wants each to pass as it is
// and to be refused as it is edited. Dry runs are judged like real requests.
func (r redTeam) fields(list []field) {
	r.T.Helper()
	var all []string
	for _, f := range list {
		all = append(all, f.manifest)
	}
	*r.signed++
	app := fmt.Sprintf("fields-%d", *r.signed)
	r.release.SignApp(r.policy, app, stream(all...), r.ns)
	signed := strings.Split(r.security.SignApp(r.policy, app, stream(all...), r.ns), "\n---\n")
	if len(signed) != len(list) {
		r.T.Fatalf("got %d signed objects, want %d", len(signed), len(list))
	}
	for i, f := range list {
		create := func(manifest string) harness.Result {
			return r.send(deployer, manifest, "create", "--dry-run=server", "--filename", "-")
		}
		if result := create(signed[i]); result.Status != 0 {
			r.T.Errorf("%s, as it was signed: %s", f.name, result.Stderr)
			continue
		}
		edited := strings.ReplaceAll(signed[i], f.before, f.after)
		if edited == signed[i] {
			r.T.Errorf("%s: %q is not in %s", f.name, f.before, signed[i])
			continue
		}
		r.refused(create(edited), "DigestMismatch", f.path, "was signed")
	}
}

func (r redTeam) TestRedTeamF27FieldsThatGiveSomethingAwayAreLeaves() {
	image := harness.Image("web:1")
	volume := func(name, source string) string {
		return strings.Replace(barePod(name, image, "volumes: [{name: d, "+source+"}],"), "name: web, image", "name: web, volumeMounts: [{name: d, mountPath: /d}], image", 1)
	}
	r.fields([]field{
		{"another team's claim", volume("claim", "persistentVolumeClaim: {claimName: mine}"), "claimName: mine", "claimName: theirs", "spec.volumes[d].persistentVolumeClaim.claimName is changed"},
		{"a file server", volume("nfs", "nfs: {server: mine, path: /}"), "server: mine", "server: theirs", "spec.volumes[d].nfs.server is changed"},
		{"a bucket", volume("csi", "csi: {driver: d, volumeAttributes: {bucket: mine}}"), "bucket: mine", "bucket: theirs", "spec.volumes[d].csi"},
		{"all of a host's folder", strings.Replace(volume("host", "hostPath: {path: /var/log}"), "mountPath: /d", "subPath: web, mountPath: /d", 1), "subPath: web", "subPath: .", `volumeMounts["/d"].subPath is .`},
		{"a name that leads elsewhere", barePod("alias", image, "hostAliases: [{ip: 10.0.0.1, hostnames: [db]}],"), "10.0.0.1", "10.6.6.6", "spec.hostAliases"},
		{"a scheduler of one's own", barePod("scheduler", image, "schedulerName: mine,"), "schedulerName: mine", "schedulerName: theirs", "spec.schedulerName is theirs"},
		{"an annotation that fetches secrets", strings.Replace(barePod("vault", image, ""), "name: vault}", `name: vault, annotations: {vault.hashicorp.com/role: mine}}`, 1), "vault.hashicorp.com/role: mine", "vault.hashicorp.com/role: theirs", `metadata.annotations["vault.hashicorp.com/role"] is changed`},
		{"a token for somebody else", volume("token", "projected: {sources: [{serviceAccountToken: {path: t, audience: mine}}]}"), "audience: mine", "audience: theirs", "serviceAccountToken.audience is theirs"},
	})
}

func (r redTeam) TestRedTeamF32WhatIsWrittenFalseIsKept() {
	image := harness.Image("web:1")
	context := func(name, pod, container string) string {
		return strings.Replace(barePod(name, image, "securityContext: {"+pod+"},"), "name: web, image", "name: web, securityContext: {"+container+"}, image", 1)
	}
	r.fields([]field{
		{"privileged", context("privileged", "", "privileged: false"), "privileged: false", "privileged: true", "securityContext.privileged is true"},
		{"a writable root", context("root", "", "readOnlyRootFilesystem: false"), "readOnlyRootFilesystem: false", "runAsUser: 0", "securityContext.runAsUser is 0"},
		{"a container that overrides its Pod", context("override", "runAsNonRoot: true", "procMount: Default"), "procMount: Default", "runAsNonRoot: false", "containers[web].securityContext.runAsNonRoot is false"},
	})
}

func (r redTeam) TestRedTeamF33DuplicatesThatTheServerTakesAreSets() {
	image := harness.Image("web:1")
	twice := strings.Replace(one("Deployment", "pull", image), "spec: {containers", "spec: {imagePullSecrets: [{name: a}, {name: a}], containers", 1)
	capabilities := strings.Replace(barePod("capabilities", image, ""), "name: web, image", "name: web, securityContext: {capabilities: {add: [CHOWN, CHOWN]}}, image", 1)
	r.fields([]field{
		{"pull secrets", twice, "- name: a", "- name: b", "imagePullSecrets"},
		{"capabilities", capabilities, "- CHOWN", "- SYS_ADMIN", `capabilities.add is ["SYS_ADMIN"]`},
		{"subjects", readerBinding("view", "alice", "alice"), "name: alice", "name: eve", "subjects is "},
	})
}

func (r redTeam) TestRedTeamF34NamesForgeNoPaths() {
	const name = "A].valueFrom.secretKeyRef.name"
	weird := func(secret string) string {
		return strings.Replace(barePod("weird", harness.Image("web:1"), ""), "name: web, image",
			fmt.Sprintf("name: web, env: [{name: %q, value: mine}, {name: A, valueFrom: {secretKeyRef: {name: %s, key: k}}}], image", name, secret), 1)
	}
	r.fields([]field{{"a variable whose name is a path", weird("mine"), "name: mine", "name: theirs", "containers[web].env[A].valueFrom.secretKeyRef.name is changed"}})
}

func (r redTeam) TestRedTeamF36ATokenVolumeByHandIsALeaf() {
	plain := barePod("token", harness.Image("web:1"), "automountServiceAccountToken: false,")
	r.passed(r.send(developer, r.sign(plain), "create", "--filename", "-"))
	const volumes = `volumes: [{name: kube-api-access-abcde, projected: {defaultMode: 420, sources: [{serviceAccountToken: {expirationSeconds: 3607, path: token}},
  {configMap: {name: kube-root-ca.crt, items: [{key: ca.crt, path: ca.crt}]}}, {downwardAPI: {items: [{path: namespace, fieldRef: {apiVersion: v1, fieldPath: metadata.namespace}}]}}]}}],`
	byHand := strings.Replace(barePod("token", harness.Image("web:1"), "automountServiceAccountToken: false, "+volumes), "name: web, image",
		"name: web, volumeMounts: [{name: kube-api-access-abcde, readOnly: true, mountPath: /var/run/secrets/kubernetes.io/serviceaccount}], image", 1)
	stored := r.Get(harness.Pods, r.ns, "token").GetAnnotations()["syncgate.io/receipt"]
	r.passed(r.as(developer, "delete", "pod/token", "--grace-period=0", "--force"))
	signed := strings.Replace(byHand, "name: token}", fmt.Sprintf("name: token, annotations: {syncgate.io/receipt: %q}}", stored), 1)
	r.refused(r.send(developer, signed, "create", "--filename", "-"), "DigestMismatch",
		"Pod %s/token: ", `containers[web].volumeMounts["/var/run/secrets/kubernetes.io/serviceaccount"].name is kube-api-access-abcde`, written(developer))
}

// BeforeOld makes what is older than the gate: tags, no receipts, and things
// that would need some.
func (r redTeam) BeforeOld() {
	r.Apply([]byte(r.old()), "--namespace", r.ns)
	for _, kind := range []string{"deployment", "statefulset", "daemonset"} {
		r.Kubectl(nil, "rollout", "status", kind+"/web", "--timeout=120s", "--namespace", r.ns)
	}
}

func (redTeam) old() string {
	privileged := func(kind string) string {
		return strings.Replace(one(kind, "web", "registry.example.test/web:1"), "name: web, image", "name: web, securityContext: {privileged: true}, command: [serve], image", 1)
	}
	return stream(privileged("Deployment"), privileged("StatefulSet"), privileged("DaemonSet"), cronJob("tick", "work:1"), readerBinding("view", "alice"),
		`{apiVersion: v1, kind: Service, metadata: {name: open}, spec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 80}]}}`)
}

func (r redTeam) TestRedTeamOldWorkloadsAreOperatedAndNotChanged() {
	for _, kind := range []string{"deployment", "statefulset", "daemonset"} {
		if kind != "daemonset" {
			r.passed(r.as(developer, "scale", kind+"/web", "--replicas=2"))
		}
		r.passed(r.as(developer, "label", kind+"/web", "team=shop"))
		r.passed(r.as(developer, "set", "env", kind+"/web", "GREETING=hello"))
		r.passed(r.as(developer, "set", "resources", kind+"/web", "--limits=cpu=200m"))
		r.passed(r.as(developer, "rollout", "restart", kind+"/web"))
		r.passed(r.as(developer, "rollout", "status", kind+"/web", "--timeout=120s"))
		r.refused(r.as(developer, "set", "image", kind+"/web", "web=web:2"), "ImageNotPinned", "%s/web: containers[web].image is web:2, which has no digest", "no receipt for ")
		r.refused(r.as(developer, "set", "image", kind+"/web", "web="+harness.Image("web:2")), "ReceiptMissing", "%s/web: no receipt for image (containers[web].image)")
	}
	if got := len(r.pods("app=web")); got != 5 {
		r.T.Errorf("Pods: got %d, want 5", got)
	}
	// What is lost comes back, and a sync of what is there changes nothing.
	r.passed(r.as(developer, "delete", "pod", "--selector=app=web", "--grace-period=0", "--force"))
	r.Eventually("the lost Pods", func() (string, bool) {
		ready := 0
		for _, p := range r.pods("app=web") {
			if condition(&p, "Ready") == "True" {
				ready++
			}
		}
		return fmt.Sprint(ready), ready == 5
	})
	r.passed(r.send(deployer, r.old(), "apply", "--server-side", "--force-conflicts", "--filename", "-"))
	r.passed(r.as(developer, "patch", "cronjob/tick", "--patch", `{"spec":{"suspend":true}}`))
	r.passed(r.as(developer, "label", "service/open", "a=b"))
	r.passed(r.as(owner, "label", "rolebinding/readers", "a=b"))
	r.refused(r.as(developer, "patch", "service/open", "--type=json", "--patch", `[{"op":"add","path":"/spec/externalIPs","value":["203.0.113.1"]}]`), "ReceiptMissing", "Service %s/open: no receipt for network")
	r.refused(r.as(developer, "set", "image", "cronjob/tick", "work="+harness.Image("work:2")), "ReceiptMissing", "CronJob %s/tick: no receipt for image")
	r.refused(r.as(owner, "patch", "rolebinding/readers", "--type=json", "--patch", `[{"op":"replace","path":"/subjects/0/name","value":"eve"}]`), "ReceiptMissing", "RoleBinding %s/readers: no receipt for rbac")
	// One category at a time: a signed image is enough, though privilege and
	// command are older than the gate and nobody signed them (F14).
	next := strings.Replace(strings.Split(r.old(), "\n---\n")[0], "registry.example.test/web:1", harness.Image("web:2"), 1)
	r.passed(r.send(deployer, r.sign(next, "--covers=image"), "apply", "--server-side", "--force-conflicts", "--filename", "-"))
}
