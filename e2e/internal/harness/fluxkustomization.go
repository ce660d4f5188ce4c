package harness

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Approved is the type of the condition of the gate.
const Approved = "syncgate.io/Approved"

// Kustomization is a Flux Kustomization, seen through the API alone.
type Kustomization struct {
	*Flux
	Namespace, Name string
}

// CreateKustomization makes a Kustomization of a spec (YAML, indented by two
// spaces) and annotations (key to value). What fails is tried again each second.
func (f *Flux) CreateKustomization(namespace, name, spec string, annotations map[string]string) *Kustomization {
	f.T.Helper()
	k := &Kustomization{f, namespace, name}
	k.Replace(spec, annotations)
	return k
}

// Replace gives the Kustomization another spec, and annotations beside others.
func (k *Kustomization) Replace(spec string, annotations map[string]string) {
	k.T.Helper()
	text := ""
	for key, value := range annotations {
		text += fmt.Sprintf("    %s: %q\n", key, value)
	}
	if text == "" {
		text = "    {}\n"
	}
	k.Apply(fmt.Appendf(nil, `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: %s
  namespace: %s
  annotations:
%sspec:
  interval: 1h
  retryInterval: 1s
  timeout: 60s
  prune: true
%s`, k.Name, k.Namespace, text, spec), "--force-conflicts")
}

// KustomizationStatus is what a person sees of a Kustomization.
type KustomizationStatus struct {
	Ready     string // True, False or Unknown; "" before the first time
	Reason    string // of Ready
	Message   string // of Ready
	Applied   string // lastAppliedRevision
	Attempted string // lastAttemptedRevision
	Origin    string // lastAppliedOriginRevision

	Approved       string // the gate's condition
	ApprovedReason string
	Sentence       string // its message
}

func (s KustomizationStatus) String() string {
	return fmt.Sprintf("Ready=%s %s %q applied=%s origin=%s attempted=%s; Approved=%s %s %q",
		s.Ready, s.Reason, s.Message, s.Applied, s.Origin, s.Attempted, s.Approved, s.ApprovedReason, s.Sentence)
}

// Status reads the Kustomization once.
func (k *Kustomization) Status() KustomizationStatus {
	k.T.Helper()
	u := k.Get(Kustomizations, k.Namespace, k.Name)
	if u == nil {
		k.T.Fatalf("Kustomization %s/%s is gone", k.Namespace, k.Name)
	}
	ready, approved := Condition(u, "Ready"), Condition(u, Approved)
	return KustomizationStatus{
		Ready: ready["status"], Reason: ready["reason"], Message: ready["message"],
		Applied: Field(u, "status", "lastAppliedRevision"), Attempted: Field(u, "status", "lastAttemptedRevision"),
		Origin:   Field(u, "status", "lastAppliedOriginRevision"),
		Approved: approved["status"], ApprovedReason: approved["reason"], Sentence: approved["message"],
	}
}

// Condition returns the texts of a condition of an object's status; of one that
// is not there, none.
func Condition(u *unstructured.Unstructured, kind string) map[string]string {
	for _, c := range Maps(u, "status", "conditions") {
		if c["type"] != kind {
			continue
		}
		out := map[string]string{}
		for key, value := range c {
			out[key], _ = value.(string)
		}
		return out
	}
	return nil
}

// Wait polls until the status is as wanted.
func (k *Kustomization) Wait(what string, done func(KustomizationStatus) bool) KustomizationStatus {
	k.T.Helper()
	var s KustomizationStatus
	k.Eventually(what+" of Kustomization "+k.Name, func() (string, bool) {
		s = k.Status()
		return s.String(), done(s)
	})
	return s
}

// WaitApplied waits until a revision of the Git repository is what runs: as the
// revision of the source, or as the origin of an artifact of the gate.
func (k *Kustomization) WaitApplied(revision string) KustomizationStatus {
	k.T.Helper()
	return k.Wait("apply of "+revision, func(s KustomizationStatus) bool {
		return s.Ready == "True" && (s.Applied == revision || s.Origin == revision)
	})
}

// WaitNotReady waits until Flux says that it cannot apply, with a text that
// contains each of want, and returns it.
func (k *Kustomization) WaitNotReady(want ...string) string {
	k.T.Helper()
	return k.Wait(fmt.Sprintf("failure with %q", want), func(s KustomizationStatus) bool {
		return s.Ready == "False" && ContainsAll(s.Message, want)
	}).Message
}

// WaitRefused waits until the gate's condition refuses with a text that contains
// each of want, and returns it.
func (k *Kustomization) WaitRefused(want ...string) string {
	k.T.Helper()
	return k.Wait(fmt.Sprintf("refusal with %q", want), func(s KustomizationStatus) bool {
		return s.Approved == "False" && ContainsAll(s.Sentence, want)
	}).Sentence
}

// Reconcile asks Flux to look at the Kustomization now, and waits until it has.
func (k *Kustomization) Reconcile() KustomizationStatus {
	k.T.Helper()
	token := time.Now().Format(time.RFC3339Nano)
	k.Patch(Kustomizations, k.Namespace, k.Name, map[string]any{"metadata": map[string]any{"annotations": map[string]any{requestedAt: token}}})
	k.Eventually("reconciliation of "+k.Name, func() (string, bool) {
		u := k.Get(Kustomizations, k.Namespace, k.Name)
		return k.Status().String(), Field(u, "status", "lastHandledReconcileAt") == token
	})
	return k.Status()
}

// Events returns the Kustomization's events of a reporter, such as
// "syncgate-controller": "TYPE REASON: MESSAGE".
func (k *Kustomization) Events(reporter string) []string {
	k.T.Helper()
	var all []string
	for _, u := range k.List(Events, k.Namespace, "") {
		if Field(&u, "involvedObject", "name") == k.Name && Field(&u, "involvedObject", "kind") == "Kustomization" && strings.HasPrefix(Field(&u, "source", "component"), reporter) {
			all = append(all, Field(&u, "type")+" "+Field(&u, "reason")+": "+Field(&u, "message"))
		}
	}
	return all
}
