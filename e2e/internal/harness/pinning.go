package harness

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PinningWebhook is what syncgate must never be: a mutating webhook that writes
// digests into ReplicaSets, a second writer inside the Deployment controller's
// loop. It is here to show what happens then, and that our output gives it
// nothing to do.
type PinningWebhook struct {
	digests map[string]string // reference without digest -> digest

	mu    sync.Mutex
	calls map[string]PinningCalls
}

// PinningCalls counts what the webhook was asked about one owner's ReplicaSets.
type PinningCalls struct {
	Seen    int // admitted
	Patched int // of these, changed
}

// StartPinningWebhook registers the webhook for the ReplicaSets of one
// namespace, with failurePolicy Fail, and waits until the API server calls it.
func StartPinningWebhook(c *Cluster, namespace string, digests map[string]string) *PinningWebhook {
	c.T.Helper()
	w := &PinningWebhook{digests: digests, calls: map[string]PinningCalls{}}
	address := c.serveReviews("pinning-webhook", w.review)
	c.install(fmt.Appendf(nil, `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: pinning}
webhooks:
- name: pinning.example.test
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %s}}
  rules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [replicasets]}]
`, namespace), "https://"+address)
	return w
}

// Calls returns what was asked about the ReplicaSets of a Deployment ("" for
// those without an owner).
func (w *PinningWebhook) Calls(deployment string) PinningCalls {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calls[deployment]
}

func (w *PinningWebhook) review(_ []byte, request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	return w.pin(request.Object.Raw)
}

// pin adds the digest to each container image that has none.
func (w *PinningWebhook) pin(raw []byte) *admissionv1.AdmissionResponse {
	var rs appsv1.ReplicaSet
	if err := json.Unmarshal(raw, &rs); err != nil {
		return &admissionv1.AdmissionResponse{Result: &metav1.Status{Message: err.Error()}}
	}
	var patch []map[string]string
	for i, c := range rs.Spec.Template.Spec.Containers {
		digest, known := w.digests[c.Image]
		if !known || strings.Contains(c.Image, "@") {
			continue
		}
		patch = append(patch, map[string]string{
			"op": "replace", "path": fmt.Sprintf("/spec/template/spec/containers/%d/image", i), "value": c.Image + "@" + digest,
		})
	}
	owner := ""
	if c := metav1.GetControllerOf(&rs); c != nil {
		owner = c.Name
	}
	w.count(owner, patch != nil)
	response := &admissionv1.AdmissionResponse{Allowed: true}
	if patch == nil {
		return response
	}
	data, err := json.Marshal(patch)
	if err != nil {
		return &admissionv1.AdmissionResponse{Result: &metav1.Status{Message: err.Error()}}
	}
	kind := admissionv1.PatchTypeJSONPatch
	response.Patch, response.PatchType = data, &kind
	return response
}

func (w *PinningWebhook) count(owner string, patched bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.calls[owner]
	n.Seen++
	if patched {
		n.Patched++
	}
	w.calls[owner] = n
}
