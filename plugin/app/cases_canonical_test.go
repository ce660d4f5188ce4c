package app_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/projection"
)

// digest is the projection digest of the only object, over all categories.
func (s *site) digest(manifest string) string {
	s.t.Helper()
	s.write("all.yaml", manifest)
	b := s.build()
	if len(b.Objects) != 1 || b.Objects[0].Problem != nil {
		s.t.Fatalf("got %d objects, problem %+v", len(b.Objects), b.Objects[0].Problem)
	}
	d, err := b.Objects[0].Projection.Digest(b.Objects[0].Projection.Applies())
	s.check(err)
	return d
}

func (s *site) sameDigest(what, a, b string) {
	s.t.Helper()
	if x, y := s.digest(a), s.digest(b); x != y {
		s.t.Errorf("%s: got digests %s and %s, want the same", what, x, y)
	}
}

func (s *site) otherDigest(what, a, b string) {
	s.t.Helper()
	if x, y := s.digest(a), s.digest(b); x == y {
		s.t.Errorf("%s: got digest %s twice, want two", what, x)
	}
}

// judge evaluates an update of one object to another without any receipt.
func (s *site) judge(before, after string) gate.Decision {
	s.t.Helper()
	project := func(text string) *app.Object {
		s.write("all.yaml", text)
		return s.build().Objects[0]
	}
	old, now := project(before), project(after)
	e := s.effective()
	return gate.Evaluate(gate.Request{Rules: &e.Rules, Subject: now.Subject, Old: old.Projection, Object: now.Projection, Now: s.now})
}

func TestCase053AnObjectThatIsBeingDeletedLosesItsFinalizerWithoutAReceipt(t *testing.T) {
	s := newSite(t, "")
	held := strings.Replace(web("", ""), "name: web, ", "name: web, deletionTimestamp: '2027-01-15T08:00:00Z', finalizers: [acme.example/hold], ", 1)
	if d := s.judge(held, strings.Replace(held, "[acme.example/hold]", "[]", 1)); !d.Allowed() {
		t.Errorf("got %+v, want it allowed: no gated field moved", d.Findings)
	}
	if d := s.judge(held, strings.Replace(held, ":1.5@", ":1.6@", 1)); d.Allowed() {
		t.Error("an image that changes while the object is deleted: got it allowed")
	}
}

func TestCase055AnOldReplicaSetIsScaledDownWithoutAReceipt(t *testing.T) {
	set := func(replicas, image string) string {
		return object("apps/v1", "ReplicaSet", "name: web-1, namespace: shop", "spec: {replicas: "+replicas+", template: {spec: {containers: [{name: web, image: '"+image+"'}]}}}")
	}
	s := newSite(t, "images: {allowUnpinned: ['*']}\n") // it may be older than the gate
	if d := s.judge(set("2", "web:latest"), set("0", "web:latest")); !d.Allowed() {
		t.Errorf("got %+v, want it allowed", d.Findings)
	}
	if d := s.judge(set("2", "web:latest"), set("2", "web:evil")); d.Allowed() {
		t.Error("another image: got it allowed")
	}
}

func TestCase071DefaultsOfOneNamespaceDoNotChangeTheDigest(t *testing.T) {
	s := newSite(t, "")
	in := func(namespace, manifest string) string {
		return strings.Replace(manifest, "namespace: shop", "namespace: "+namespace, 1)
	}
	plain := web("", "")
	defaulted := web(`tolerations: [{key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 300}]`,
		`resources: {limits: {cpu: 500m, memory: 512Mi}, requests: {cpu: 100m, memory: 256Mi}}`)
	s.sameDigest("a LimitRange and default tolerations", in("a", plain), in("b", plain))
	s.sameDigest("a LimitRange and default tolerations", in("a", defaulted), in("b", plain))

	s.write("all.yaml", in("a", plain))
	s.signed("release")
	s.write("all.yaml", in("a", defaulted))
	s.allowed()
	// The namespace itself is part of what is signed.
	receipts := s.build().Objects[0].Receipts
	s.write("all.yaml", strings.Replace(in("b", defaulted), "namespace: b", "namespace: b, annotations: {syncgate.io/receipt: '"+receipts[0]+"'}", 1))
	s.refused(gate.SubjectMismatch, "Deployment b/web", "is for apps/Deployment/a/web")
}

func TestCase073WhatTheServerAddsToAClaimTemplateIsNoDifference(t *testing.T) {
	set := func(claim string) string {
		return object("apps/v1", "StatefulSet", "name: db, namespace: shop", `spec: {serviceName: db, template: {spec: {containers: [{name: db, image: "`+webImage("1", "a")+`", volumeMounts: [{name: data, mountPath: /data}]}]}}, volumeClaimTemplates: [`+claim+`]}`)
	}
	s := newSite(t, "")
	const spec = "accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}"
	s.sameDigest("defaulted claim template",
		set("{metadata: {name: data}, spec: {"+spec+"}}"),
		set("{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, creationTimestamp: null}, spec: {"+spec+", volumeMode: Filesystem}, status: {phase: Pending}}"))
	s.otherDigest("a claim template that takes another volume",
		set("{metadata: {name: data}, spec: {"+spec+"}}"),
		set("{metadata: {name: data}, spec: {"+spec+", volumeName: other-teams-data}}"))
}

func TestCase075TheMergedObjectIsJudgedAndManagedFieldsAreNot(t *testing.T) {
	const mount, volume = "volumeMounts: [{name: logs, mountPath: /logs}]", "volumes: [{name: logs, hostPath: {path: /var/log}}]"
	s := newSite(t, "")
	s.write("all.yaml", web("", "")) // v2, without the hostPath of v1
	s.signed("release")
	receipts := s.build().Objects[0].Receipts[0]
	annotated := func(manifest, metadata string) string {
		return strings.Replace(manifest, "name: web, namespace: shop", "name: web, namespace: shop, annotations: {syncgate.io/receipt: '"+receipts+"'}"+metadata, 1)
	}
	if got := s.stream(annotated(web("", ""), "")); got != "" {
		t.Errorf("v2 as it was signed: got %q, want it allowed", got)
	}
	saysNo(t, s.stream(annotated(web(volume, mount), "")), gate.DigestMismatch, "volumes[logs].hostPath.path is /var/log")
	s.sameDigest("managedFields", web("", ""), annotated(web("", ""), ", managedFields: [{manager: argocd, operation: Apply, fieldsV1: {'f:spec': {}}}], resourceVersion: '7'"))
}

func TestCase077AnEmptyListOfPullSecretsIsNone(t *testing.T) {
	account := func(rest string) string {
		return object("v1", "ServiceAccount", "name: web, namespace: shop", rest)
	}
	s := newSite(t, "")
	s.sameDigest("empty and omitted", account(""), account("imagePullSecrets: []"))
	s.write("all.yaml", account("imagePullSecrets: []"))
	s.allowed()
	s.write("all.yaml", account("imagePullSecrets: [{name: mine}]"))
	s.refused(gate.ReceiptMissing, "identity", "imagePullSecrets")
}

func TestCase079TrackingMetadataIsFreeAndASelectorIsNot(t *testing.T) {
	const tracking = ", labels: {app.kubernetes.io/instance: shop-eu}, annotations: {argocd.argoproj.io/tracking-id: 'shop-eu:x'}"
	s := newSite(t, "categories: [{name: service}]\n")
	for _, kind := range []struct{ name, apiVersion, spec, selector string }{
		{"NetworkPolicy", "networking.k8s.io/v1", "spec: {podSelector: {matchLabels: {app.kubernetes.io/instance: shop}}, ingress: []}", "podSelector"},
		{"Service", "v1", "spec: {selector: {app.kubernetes.io/instance: shop}, ports: [{port: 80}]}", "selector"},
	} {
		plain := object(kind.apiVersion, kind.name, "name: web, namespace: shop", kind.spec)
		tracked := object(kind.apiVersion, kind.name, "name: web, namespace: shop"+tracking, kind.spec)
		s.sameDigest(kind.name, plain, tracked)
		s.write("all.yaml", plain)
		s.signed("release")
		s.write("all.yaml", tracked)
		s.allowed()
		s.write("all.yaml", strings.Replace(tracked, "instance: shop}", "instance: shop-eu}", 1)) // the selector follows the label
		s.refused(gate.DigestMismatch, kind.name+" shop/web", kind.selector)
	}
}

// The digest depends on the object alone: clusters with different policies
// share receipts (docs/spec/gated-fields.md).
func TestEachExamplePolicyGivesAnObjectTheSameDigest(t *testing.T) {
	objects := web("hostPID: true, serviceAccountName: web", "args: [a]") +
		object("rbac.authorization.k8s.io/v1", "ClusterRole", "name: r", "rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]") +
		object("v1", "Service", "name: web, namespace: shop-eu", "spec: {selector: {app: web}, ports: [{port: 80}]}") +
		object("v1", "Service", "name: out, namespace: shop-eu", "spec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 80}]}") +
		object("networking.k8s.io/v1", "NetworkPolicy", "name: net, namespace: shop-eu", "spec: {podSelector: {}}") +
		object("batch/v1", "CronJob", "name: c, namespace: shop-eu", `spec: {jobTemplate: {spec: {template: {spec: {containers: [{name: c, image: "`+webImage("1", "c")+`"}]}}}}}`) +
		object("serving.knative.dev/v1", "Service", "name: k, namespace: shop-eu", `spec: {template: {spec: {containers: [{image: "`+webImage("1", "d")+`"}]}}}`) +
		object("monitoring.coreos.com/v1", "Prometheus", "name: p, namespace: shop-eu", `spec: {image: "`+webImage("1", "e")+`", serviceAccountName: p}`) +
		object("argoproj.io/v1alpha1", "Application", "name: a, namespace: shop-eu", "spec: {project: p, source: {repoURL: 'https://git.example/x', path: a}}")
	digests := func(name string) map[string]string {
		s := newSite(t, "")
		p, err := app.LoadPolicy("../../docs/examples/" + name + "/policy.yaml")
		s.check(err)
		s.who.Namespace = "shop-eu"
		e, err := app.Effective(p, s.who, "")
		s.check(err)
		b, err := app.New(t.Context(), app.Settings{Namespace: "shop-eu", Effective: e, Stream: &app.Stream{Data: []byte(objects), File: "stream"}})
		s.check(err)
		out := map[string]string{}
		for _, o := range b.Objects {
			if o.Problem != nil {
				t.Fatalf("%s: %s: %+v", name, o.Subject, o.Problem)
			}
			var covers []projection.Category // what policy itself adds has categories of its own
			for _, c := range o.Projection.Applies() {
				if !strings.HasPrefix(string(c), "x-") {
					covers = append(covers, c)
				}
			}
			d, err := o.Projection.Digest(covers)
			s.check(err)
			out[o.Subject.String()] = d
		}
		return out
	}
	want := digests("minimal")
	if len(want) != 9 {
		t.Fatalf("got %d objects, want 9", len(want))
	}
	distinct := map[string]bool{}
	for subject, d := range want {
		if distinct[d] && !strings.Contains(subject, "Prometheus") {
			t.Errorf("%s has the digest of another object", subject)
		}
		distinct[d] = true
	}
	for _, name := range []string{"split-authority", "hardened"} {
		if diff := cmp.Diff(want, digests(name)); diff != "" {
			t.Errorf("%s against minimal (-want +got):\n%s", name, diff)
		}
	}
}
