package manifests_test

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"

	"github.com/syncgate/syncgate/manifests"
	"github.com/syncgate/syncgate/plugin/admission"
	"github.com/syncgate/syncgate/plugin/offswitch"
)

func deployment(t *testing.T) *appsv1.Deployment {
	t.Helper()
	data, err := fs.ReadFile(manifests.Webhook, "webhook/deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	d := &appsv1.Deployment{}
	if err := yaml.UnmarshalStrict(data, d); err != nil {
		t.Fatal(err)
	}
	return d
}

// What the Deployment promises and nothing else would notice the loss of.
func TestTheWebhookRunsWithNothingThatItDoesNotNeed(t *testing.T) {
	d := deployment(t)
	p := d.Spec.Template.Spec
	c := p.Containers[0]
	is := func(what string, ok bool) {
		t.Helper()
		if !ok {
			t.Errorf("not so: %s", what)
		}
	}
	is("three replicas", *d.Spec.Replicas == 3)
	is("none goes before its successor answers", d.Spec.Strategy.RollingUpdate.MaxUnavailable.IntValue() == 0)
	is("no token", p.AutomountServiceAccountToken != nil && !*p.AutomountServiceAccountToken)
	is("no root", *p.SecurityContext.RunAsNonRoot && p.SecurityContext.RunAsUser == nil) // OpenShift gives the user
	is("seccomp", p.SecurityContext.SeccompProfile.Type == corev1.SeccompProfileTypeRuntimeDefault)
	is("read-only root", *c.SecurityContext.ReadOnlyRootFilesystem)
	is("no escalation", !*c.SecurityContext.AllowPrivilegeEscalation)
	is("no capability", slices.Equal(c.SecurityContext.Capabilities.Drop, []corev1.Capability{"ALL"}) && c.SecurityContext.Capabilities.Add == nil)
	is("no host namespace", !p.HostNetwork && !p.HostPID && !p.HostIPC)
	is("limits", !c.Resources.Limits.Memory().IsZero() && c.Resources.Limits.Cpu().IsZero())
	for _, probe := range []*corev1.Probe{c.ReadinessProbe, c.LivenessProbe} {
		is("probes ask /healthz", probe.HTTPGet.Path == "/healthz" && probe.HTTPGet.Port.String() == "metrics")
	}
	for _, v := range p.Volumes {
		switch {
		case v.Name == "off":
			is("the off-switch may be absent", v.ConfigMap.Name == offswitch.ConfigMap && *v.ConfigMap.Optional)
		case v.Name == "tls":
			is("the Secret that the guard knows", v.Secret.SecretName == admission.CertificateSecret)
		case v.ConfigMap != nil:
			is("the policy must be there", v.ConfigMap.Optional == nil)
		default:
			t.Errorf("volume %s: want nothing else", v.Name)
		}
	}
	var drain time.Duration
	for _, a := range c.Args {
		if text, ok := strings.CutPrefix(a, "--drain="); ok {
			var err error
			if drain, err = time.ParseDuration(text); err != nil {
				t.Fatal(err)
			}
		}
	}
	const finish = 10 * time.Second // plugin/webhook, Run
	grace := time.Duration(*p.TerminationGracePeriodSeconds) * time.Second
	is(fmt.Sprintf("time to drain (%s) and finish within %s", drain, grace), drain > 0 && grace >= drain+finish+5*time.Second)
	unready := time.Duration(c.ReadinessProbe.PeriodSeconds*c.ReadinessProbe.FailureThreshold) * time.Second
	is("the Service leaves a replica out while it drains", unready < drain)
	alive := time.Duration(c.LivenessProbe.PeriodSeconds*c.LivenessProbe.FailureThreshold) * time.Second
	is("a draining replica is not killed", alive > drain+finish)
}

// The selectors of the Service, the budget and the network policy choose the
// webhook's Pods, and not those of the certificate Job.
func TestSelectorsChooseTheWebhookAlone(t *testing.T) {
	d := deployment(t)
	var s corev1.Service
	var b policyv1.PodDisruptionBudget
	var n networkingv1.NetworkPolicy
	for name, into := range map[string]any{"service": &s, "poddisruptionbudget": &b, "networkpolicy": &n} {
		data, err := fs.ReadFile(manifests.Webhook, "webhook/"+name+".yaml")
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict(data, into); err != nil {
			t.Fatal(err)
		}
	}
	want := d.Spec.Template.Labels
	for name, got := range map[string]map[string]string{
		"Deployment": d.Spec.Selector.MatchLabels, "Service": s.Spec.Selector,
		"budget": b.Spec.Selector.MatchLabels, "network policy": n.Spec.PodSelector.MatchLabels,
		"spread": d.Spec.Template.Spec.TopologySpreadConstraints[0].LabelSelector.MatchLabels,
	} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s selects (-webhook +got):\n%s", name, diff)
		}
	}
	if s.Name != manifests.Service || s.Namespace != manifests.Namespace {
		t.Errorf("Service %s/%s: want what the generated configuration names", s.Namespace, s.Name)
	}
	if len(n.Spec.Egress) != 0 || !slices.Contains(n.Spec.PolicyTypes, networkingv1.PolicyTypeEgress) {
		t.Error("the webhook may open connections")
	}
}
