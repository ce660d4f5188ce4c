package doctor_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/plugin/live/apitest"
	"github.com/syncgate/syncgate/plugin/live/doctor"
)

// TestRightsThatNobodyJudgesAreAWarning: the default leaves them to RBAC.
func TestRightsThatNobodyJudgesAreAWarning(t *testing.T) {
	for scope, want := range map[string]string{
		"":                           "does not name ClusterRole and ClusterRoleBinding: ",
		"clusterScoped: [Namespace]": "does not name ClusterRole and ClusterRoleBinding: ",
		"clusterScoped: [Namespace, ClusterRole]":                     "does not name ClusterRoleBinding: ",
		"clusterScoped: [Namespace, ClusterRole, ClusterRoleBinding]": "",
	} {
		settings := prod
		if scope != "" {
			settings += "scope: {admission: {" + scope + "}}\n"
		}
		s := newStage(t, settings)
		s.good(1)
		r := s.look(t)
		got := ""
		for _, w := range r.Warnings {
			if strings.Contains(w, "clusterScoped") {
				got += w
			}
		}
		if !r.Converged() || (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%q: converged %v, warning %q, want %q", scope, r.Converged(), got, want)
		}
	}
}

func TestWhoMayChangeGatedKindsIsAWarning(t *testing.T) {
	s := newStage(t, prod)
	s.good(1)
	hook := func(name, resource string) {
		s.Put(admissionAPI+"mutatingwebhookconfigurations", `{"metadata":{"name":"`+name+`"},"webhooks":[{"name":"`+name+`.example.test","rules":[{"apiGroups":["*"],"apiVersions":["*"],"operations":["CREATE"],"resources":["`+resource+`"]}]}]}`)
	}
	hook("pods", "pods")
	hook("leases", "leases")
	hook("configs", "configmaps") // guarded, not judged
	r := s.look(t)
	var got []string
	for _, w := range r.Warnings {
		if strings.Contains(w, "at admission") {
			got = append(got, w)
		}
	}
	want := []string{"webhook pods.example.test (configuration pods) may change gated kinds at admission (pods): syncgate fixedpoint finds what it does"}
	if diff := cmp.Diff(want, got); diff != "" || !r.Converged() {
		t.Errorf("converged %v, warnings (-want +got):\n%s", r.Converged(), diff)
	}
}

func TestAClusterThatCannotBeAskedIsAnError(t *testing.T) {
	s := newStage(t, prod)
	for name, status := range map[string]*apitest.Status{
		"not let in":  {Code: 401, Reason: "Unauthorized", Message: "who are you"},
		"overwhelmed": {Code: 503, Reason: "ServiceUnavailable", Message: "later"},
	} {
		s.Admit(func(apitest.Request) *apitest.Status { return status })
		if _, err := doctor.Look(t.Context(), s.cluster, s.options); err == nil || !strings.Contains(err.Error(), "probing: ") {
			t.Errorf("%s: got %v, want an error of probing", name, err)
		}
	}
}

func TestNothingToProbeIsAnError(t *testing.T) {
	s := newStage(t, prod+"categories: [{name: rbac, required: false}, {name: image, required: false}, {name: identity, required: false}, {name: secret, required: false}, {name: privilege, required: false}, {name: command, required: false}, {name: network, required: false}]\n")
	if _, err := doctor.Look(t.Context(), s.cluster, s.options); !errors.Is(err, doctor.ErrNotGated) {
		t.Errorf("got %v, want %v", err, doctor.ErrNotGated)
	}
}
