//go:build e2e

package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// certificateRequest is base64 of a PEM request, as a CertificateSigningRequest
// holds it.
func certificateRequest(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "x"}}, key)
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}

// free does what status writes are for, and changes metadata that does not
// count. when makes the values of two runs differ.
func (s *statuses) free(t *testing.T, when string) {
	t.Helper()
	for _, w := range []struct {
		resource    schema.GroupVersionResource
		name        string
		subresource string
		patch       string
	}{
		{harness.Ingresses, "web", "status", `{"metadata":{"labels":{"seen":%q},"annotations":{"example.test/neg-status":%[1]q}},"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"}]}}}`},
		{harness.Services, "web", "status", `{"metadata":{"annotations":{"example.test/seen":%q},"finalizers":["example.test/%[1]s"]},"status":{"loadBalancer":{}}}`},
		{harness.Services, "web", "status", `{"metadata":{"annotations":{"example.test/was":%q},"finalizers":null}}`},
		{harness.Namespaces, s.ns, "status", `{"metadata":{"annotations":{"seen":%q}},"status":{"conditions":[]}}`},
		{harness.Pods, "waits", "status", `{"metadata":{"annotations":{"k8s.v1.cni.cncf.io/network-status":"[%s]","cni.example.test/ip":"192.0.2.9"}},"status":{"message":%[1]q}}`},
		{harness.Deployments, "web", "status", `{"metadata":{"annotations":{"seen":%q,"deprecated.deployment.rollback.to":"1"}},"status":{"collisionCount":1}}`},
		{harness.StatefulSets, "web", "status", `{"metadata":{"annotations":{"seen":%q}}}`},
		{harness.DaemonSets, "web", "status", `{"metadata":{"annotations":{"seen":%q}}}`},
		{harness.ReplicaSets, "web", "status", `{"metadata":{"annotations":{"seen":%q}}}`},
		{rcs, "web", "status", `{"metadata":{"annotations":{"seen":%q}}}`},
		{harness.CronJobs, "web", "status", `{"metadata":{"annotations":{"seen":%q}},"status":{"lastScheduleTime":"2026-01-01T00:00:00Z"}}`},
		{harness.VolumeClaims, "web", "status", `{"metadata":{"annotations":{"seen":%q}}}`},
		{harness.PersistentVolumes, "status-writes", "status", `{"metadata":{"annotations":{"seen":%q}}}`},
		{requests, "status-writes", "approval", `{"metadata":{"annotations":{"seen":%q}}}`},
		{fleets, "web", "status", `{"metadata":{"annotations":{"seen":%q,"kustomize.toolkit.fluxcd.io/force":"enabled"}},"spec":{"image":"evil"},"status":{"replicas":1}}`},
		{fleets, "web", "scale", `{"metadata":{"annotations":{"seen":%q,"kustomize.toolkit.fluxcd.io/force":"enabled"}},"spec":{"replicas":2}}`},
		{harness.Deployments, "web", "scale", `{"metadata":{"annotations":{"seen":%q,"kustomize.toolkit.fluxcd.io/force":"enabled"}},"spec":{"replicas":2}}`},
	} {
		if _, err := s.client(w.resource).Patch(context.Background(), w.name, types.MergePatchType, fmt.Appendf(nil, w.patch, when), metav1.PatchOptions{}, w.subresource); err != nil {
			t.Errorf("%s/%s: %v", w.resource.Resource, w.subresource, err)
		}
	}
	fleet := s.Get(fleets, s.ns, "web")
	if image := harness.Field(fleet, "spec", "image"); image != harness.Image("web:1") || fleet.GetAnnotations()["seen"] != "" {
		t.Errorf("a custom resource's status write changed more than its status: %s, %v", image, fleet.GetAnnotations())
	}
	if a := s.Get(harness.Deployments, s.ns, "web").GetAnnotations(); a["seen"] != when || a[fluxForces] != "" || a["deprecated.deployment.rollback.to"] != "" {
		t.Errorf("scale changed annotations, or status asked for a rollback: %v", a)
	}
	if err := s.write(statusWrite{resource: harness.Namespaces, subresource: "finalize"}); err != nil {
		t.Errorf("finalize: %v", err)
	}
	bound := map[string]string{"up": "bound", "down": "waits"}[when]
	if err := s.write(statusWrite{resource: harness.Pods, name: bound, subresource: "binding", part: "labels", key: "topology.kubernetes.io/zone", value: "a"}); err != nil {
		t.Errorf("binding: %v", err)
	}
	if pod := s.Get(harness.Pods, s.ns, bound); harness.Field(pod, "spec", "nodeName") != "nowhere" {
		t.Errorf("binding: %s is not bound", bound)
	}
}

// What heal puts right.
const (
	healed     = `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: %s, annotations: {example.test/auth: "on"}}, spec: {rules: [{host: %s, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}]}}`
	authOption = "example.test/auth"
	knownAlone = "-known" // ends names of those in which nothing is new
)

// syncs are how Argo CD and Flux apply.
var syncs = map[string][]string{
	"by-argocd": {"apply", "-f", "-", "--field-manager=argocd-controller"},
	"by-flux":   {"apply", "-f", "-", "--server-side", "--force-conflicts", "--field-manager=kustomize-controller"},
}

// beforeTheGate has status writes that are refused later.
func (s *statuses) beforeTheGate() {
	s.T.Helper()
	for name, args := range syncs {
		for _, known := range []string{"", knownAlone} {
			s.Kubectl([]byte(s.release.Sign(s.policy, fmt.Sprintf(healed, name+known, "shop.example.test"), s.ns)), append(args, "--namespace", s.ns)...)
			written := map[string]string{authOption: "off"}
			if known == "" {
				written[snippet] = "return 200;"
			}
			patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": written}})
			if err != nil {
				s.T.Fatal(err)
			}
			if _, err := s.Client().Resource(harness.Ingresses).Namespace(s.ns).Patch(context.Background(), name+known, types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
				s.T.Fatal(err)
			}
		}
	}
}

// heal syncs what was signed as Argo CD and as Flux do.
func (s *statuses) heal() {
	t := s.T
	for _, name := range slices.Sorted(maps.Keys(syncs)) {
		sync := func(name, tool, host string) harness.Result {
			t.Helper()
			return s.writer.TryKubectl([]byte(s.release.Sign(s.policy, fmt.Sprintf(healed, name, host), s.ns)), append(syncs[tool], "--namespace", s.ns)...)
		}
		annotations := func(name string) map[string]string {
			return s.Get(harness.Ingresses, s.ns, name).GetAnnotations()
		}
		known := name + knownAlone
		if annotations(name)[snippet] == "" || annotations(known)[authOption] != "off" {
			t.Fatalf("%s: nothing to put right: %v", name, annotations(name))
		}
		if r := sync(known, name, "shop.example.test"); r.Status != 0 || annotations(known)[authOption] != "on" {
			t.Errorf("%s: got status %d %q, %v", known, r.Status, r.Stderr, annotations(known))
		}
		// What the tool does not know, and so leaves, stands in its way, and is
		// named.
		r := sync(name, name, "shop.example.test")
		if text := string(r.Stderr); r.Status == 0 || !harness.ContainsAll(text, []string{"SYNC REFUSED [DigestMismatch]", snippet, "was signed without it", "Fix: take metadata.annotations"}) {
			t.Errorf("%s: over what nobody signed: got status %d %q", name, r.Status, text)
		} else {
			t.Logf("%s: %.500s", name, text)
		}
		if r := s.writer.TryKubectl(nil, "annotate", "ingress/"+name, snippet+"-", authOption+"=on", "--overwrite", "--namespace", s.ns); r.Status != 0 {
			t.Errorf("%s: by hand: %s", name, r.Stderr)
		}
		for _, host := range []string{"shop.example.test", "new.example.test"} { // and the next release
			if r := sync(name, name, host); r.Status != 0 {
				t.Errorf("%s: %s afterwards: %s", name, host, r.Stderr)
			}
		}
		if a := annotations(name); a[authOption] != "on" || a[snippet] != "" {
			t.Errorf("%s: got %v", name, a)
		}
	}
}
