//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// ordinary is what people and controllers do all day: each passes while the
// webhook is down, and has its effect.
var ordinary = []struct {
	name string
	do   func(*outage)
}{
	{"namespace deletion", (*outage).deleteNamespace}, // the longest first
	{"StatefulSet rolling and scaled, with claims", (*outage).rollStatefulSet},
	{"DaemonSet rolling", (*outage).rollDaemonSet},
	{"scale up", (*outage).scaleUp},
	{"HPA-style scale", (*outage).autoscale},
	{"resources", (*outage).setResources},
	{"labels", (*outage).setLabels},
	{"env value", (*outage).setEnv},
	{"rollout restart", (*outage).restart},
	{"ConfigMap edit", (*outage).editConfigMap},
	{"lost Pod", (*outage).losePod},
	{"Job", (*outage).runJob},
	{"Job that fails and is tried again", (*outage).retryJob},
	{"Job that is removed when it has ended", (*outage).briefJob},
	{"garbage collection", (*outage).collect},
	{"new namespace with its default ServiceAccount", (*outage).newNamespace},
	{"Opaque Secret", (*outage).createSecret},
	{"plain ClusterIP Service", (*outage).createService},
	{"a chart without exposure installed and upgraded", (*outage).installChart},
}

// in runs kubectl in the namespace of what is ordinary.
func (o *outage) in(args ...string) {
	o.T.Helper()
	o.Kubectl(nil, append(args, "--namespace", o.shop)...)
}

func (o *outage) scaleUp() {
	o.in("scale", "deployment/scale", "--replicas=3")
	o.running(o.shop, "scale", 3, 2, nil)
}

// autoscale writes the subresource as the controller does.
func (o *outage) autoscale() {
	ctx, deployments := context.Background(), o.autoscaler.Client().Resource(harness.Deployments).Namespace(o.shop)
	scale, err := deployments.Get(ctx, "hpa", metav1.GetOptions{}, "scale")
	if err != nil {
		o.T.Fatal(err)
	}
	if err := unstructured.SetNestedField(scale.Object, int64(4), "spec", "replicas"); err != nil {
		o.T.Fatal(err)
	}
	if _, err := deployments.Update(ctx, scale, metav1.UpdateOptions{}, "scale"); err != nil {
		o.T.Fatal(err)
	}
	o.running(o.shop, "hpa", 4, 3, nil)
}

func (o *outage) setResources() {
	o.in("set", "resources", "deployment/resources", "--limits=cpu=200m", "--requests=cpu=150m")
	o.running(o.shop, "resources", 1, 1, func(p *unstructured.Unstructured) bool {
		return harness.Field(container(p), "resources", "limits", "cpu") == "200m"
	})
}

func (o *outage) setLabels() {
	o.in("label", "deployment/labels", "team=shop")
	o.Patch(harness.Deployments, o.shop, "labels", map[string]any{"spec": map[string]any{"template": map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"team": "shop"}},
	}}})
	o.running(o.shop, "labels", 1, 1, func(p *unstructured.Unstructured) bool { return p.GetLabels()["team"] == "shop" })
}

func (o *outage) setEnv() {
	o.in("set", "env", "deployment/env", "GREETING=welcome", "ANOTHER=1")
	o.running(o.shop, "env", 1, 1, func(p *unstructured.Unstructured) bool {
		return fmt.Sprint(harness.Maps(container(p), "env")[0]["value"]) == "welcome"
	})
}

func (o *outage) restart() {
	o.in("rollout", "restart", "deployment/restart")
	o.in("rollout", "status", "deployment/restart", "--timeout=120s")
	o.running(o.shop, "restart", 1, 1, nil)
}

// editConfigMap also rolls the Pods, as charts do with a checksum.
func (o *outage) editConfigMap() {
	o.Patch(harness.ConfigMaps, o.shop, "config", map[string]any{"data": map[string]any{"greeting": "welcome"}})
	o.Patch(harness.Deployments, o.shop, "config", map[string]any{"spec": map[string]any{"template": map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{"checksum/config": "2"}},
	}}})
	o.running(o.shop, "config", 1, 1, nil)
	if got := harness.Field(o.Get(harness.ConfigMaps, o.shop, "config"), "data", "greeting"); got != "welcome" {
		o.T.Errorf("greeting: got %q, want welcome", got)
	}
}

func (o *outage) losePod() {
	o.in("delete", "pod", "--selector=app=lost", "--force", "--grace-period=0")
	o.running(o.shop, "lost", 1, 1, nil)
}

func (o *outage) rollStatefulSet() {
	o.in("rollout", "restart", "statefulset/db")
	o.in("rollout", "status", "statefulset/db", "--timeout=120s")
	o.running(o.shop, "db", 2, 2, nil)
	o.in("scale", "statefulset/db", "--replicas=3")
	o.running(o.shop, "db", 3, 3, nil)
	claim := o.Get(harness.VolumeClaims, o.shop, "data-db-2")
	if got := harness.Field(claim, "status", "phase"); got != "Bound" {
		o.T.Errorf("claim of the third Pod: got %q, want Bound", got)
	}
	if n := len(o.List(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "controllerrevisions"}, o.shop, "app=db")); n != 2 {
		o.T.Errorf("ControllerRevisions: got %d, want 2", n)
	}
}

func (o *outage) rollDaemonSet() {
	o.in("rollout", "restart", "daemonset/agent")
	o.in("rollout", "status", "daemonset/agent", "--timeout=120s")
	o.running(o.shop, "agent", 2, 2, nil)
}

// ended waits until a Job's Pods have ended, and logs how.
func (o *outage) ended(name, condition string, succeeded, failed int64) {
	o.T.Helper()
	o.in("wait", "--for=condition="+condition, "job/"+name, "--timeout=120s")
	u := o.Get(harness.Jobs, o.shop, name)
	if s, f := harness.Int(u, "status", "succeeded"), harness.Int(u, "status", "failed"); s != succeeded || f != failed {
		o.T.Errorf("Pods of Job %s: got %d succeeded and %d failed, want %d and %d", name, s, f, succeeded, failed)
	}
	o.T.Logf("%s: %s, of the Pods made during the outage %d succeeded, %d failed", name, condition, succeeded, failed)
}

func (o *outage) resume(name string) {
	o.T.Helper()
	o.Patch(harness.Jobs, o.shop, name, map[string]any{"spec": map[string]any{"suspend": false}})
}

func (o *outage) runJob() {
	o.resume("job")
	o.ended("job", "Complete", 2, 0)
}

func (o *outage) retryJob() {
	o.resume("retry")
	o.ended("retry", "Failed", 0, 2)
}

func (o *outage) briefJob() {
	o.resume("brief")
	o.Eventually("the ended Job and its Pods to be removed", func() (string, bool) {
		pods := o.List(harness.Pods, o.shop, "app=brief")
		gone := o.Get(harness.Jobs, o.shop, "brief") == nil
		return fmt.Sprintf("Job gone %t, %d Pods", gone, len(pods)), gone && len(pods) == 0
	})
}

// collect deletes owners in the three ways there are.
func (o *outage) collect() {
	remaining := func(app string) (sets, pods int) {
		return len(o.List(harness.ReplicaSets, o.shop, "app="+app)), len(o.List(harness.Pods, o.shop, "app="+app))
	}
	gone := func(app string) {
		o.T.Helper()
		o.Eventually("what "+app+" owned to be collected", func() (string, bool) {
			sets, pods := remaining(app)
			return fmt.Sprintf("%d ReplicaSets, %d Pods", sets, pods), sets == 0 && pods == 0
		})
	}
	o.in("delete", "deployment/collected", "--cascade=background")
	gone("collected")
	o.in("delete", "deployment/collected-foreground", "--cascade=foreground", "--timeout=120s")
	gone("collected-foreground")
	o.in("delete", "deployment/collected-orphans", "--cascade=orphan", "--timeout=120s")
	o.running(o.shop, "collected-orphans", 1, 0, nil)
	sets := o.List(harness.ReplicaSets, o.shop, "app=collected-orphans")
	if len(sets) != 1 || len(sets[0].GetOwnerReferences()) != 0 {
		o.T.Errorf("orphaned ReplicaSets: got %v, want one without owner", sets)
	}
	o.in("delete", "replicaset", "--selector=app=collected-orphans")
	gone("collected-orphans")
}

func (o *outage) deleteNamespace() {
	o.Kubectl(nil, "delete", "namespace", o.doomed, "--timeout=170s")
	if n := len(o.List(harness.Pods, o.doomed, "")); n != 0 {
		o.T.Errorf("Pods in the deleted namespace: got %d, want none", n)
	}
}

func (o *outage) newNamespace() {
	ns := o.NewNamespace("new") // waits for the ServiceAccount
	o.Eventually("its ConfigMap with the cluster's authority", func() (string, bool) {
		return "none", o.Get(harness.ConfigMaps, ns, "kube-root-ca.crt") != nil
	})
}

func (o *outage) createSecret() {
	o.in("create", "secret", "generic", "opaque", "--from-literal=password=one")
	o.Patch(harness.Secrets, o.shop, "opaque", map[string]any{"stringData": map[string]any{"password": "two"}})
	if got := harness.Field(o.Get(harness.Secrets, o.shop, "opaque"), "data", "password"); got != "dHdv" {
		o.T.Errorf("the Secret's content: got %q, want base64 of two", got)
	}
}

// addresses are those of the ready Pods behind a Service.
func (o *outage) addresses(service string) {
	o.T.Helper()
	o.Eventually("an address of Service "+service, func() (string, bool) {
		text := string(o.Kubectl(nil, "get", "endpointslices", "--namespace", o.shop, "--selector=kubernetes.io/service-name="+service,
			"--output=jsonpath={.items[*].endpoints[?(@.conditions.ready==true)].addresses}"))
		return text, strings.Count(text, "10.2.") == 1
	})
}

func (o *outage) createService() {
	o.Apply([]byte(`{apiVersion: v1, kind: Service, metadata: {name: plain}, spec: {selector: {app: plain}, ports: [{port: 80}]}}`), "--namespace", o.shop)
	o.addresses("plain")
}

func (o *outage) installChart() {
	for _, state := range []string{"deployed", "upgraded"} {
		text := o.Kubectl(fmt.Appendf(nil, chart, state), "apply", "--filename", "-", "--namespace", o.shop)
		if n := strings.Count(string(text), "\n"); n != 8 {
			o.T.Errorf("%s: got %d objects, want 8: %s", state, n, text)
		}
	}
	o.addresses("chart")
	if got := harness.Field(o.Get(harness.ConfigMaps, o.shop, "chart"), "data", "greeting"); got != "upgraded" {
		o.T.Errorf("greeting: got %q, want upgraded", got)
	}
}

// drain takes a node out of service. All Pods that it had run elsewhere then.
func (o *outage) drain() {
	lost := 0
	for _, p := range o.List(harness.Pods, o.shop, "") {
		if harness.Field(&p, "spec", "nodeName") == o.second.Name && p.GetLabels()["app"] != "agent" && harness.Field(&p, "status", "phase") == "Running" {
			lost++
		}
	}
	if lost == 0 {
		o.T.Fatal("no Pod to drain")
	}
	o.Kubectl(nil, "cordon", o.second.Name)
	o.Kubectl(nil, "drain", o.second.Name, "--ignore-daemonsets", "--timeout=150s")
	o.in("wait", "--for=condition=Available", "deployment", "--all", "--timeout=150s")
	o.in("rollout", "status", "statefulset/db", "--timeout=150s")
	for _, p := range o.List(harness.Pods, o.shop, "") {
		if node := harness.Field(&p, "spec", "nodeName"); node != o.first.Name && p.GetLabels()["app"] != "agent" && harness.Field(&p, "status", "phase") == "Running" {
			o.T.Errorf("Pod %s runs on %q", p.GetName(), node)
		}
	}
	o.T.Logf("%d Pods drained, all Deployments and the StatefulSet have their Pods on the other node", lost)
	o.Kubectl(nil, "uncordon", o.second.Name)
}

// tick waits for a Job of the CronJob that was made during the outage.
func (o *outage) tick() {
	var job string
	o.Eventually("a tick of the CronJob during the outage, with its Pod", func() (string, bool) {
		var seen []string
		for _, u := range o.List(harness.Jobs, o.shop, "") {
			if !strings.HasPrefix(u.GetName(), "tick-") || !u.GetCreationTimestamp().After(o.began) {
				continue
			}
			// The Pods of a Job that is no longer in the CronJob's history go with
			// it, possibly between the two lists: another tick follows.
			pods := o.List(harness.Pods, o.shop, "job-name="+u.GetName())
			seen = append(seen, fmt.Sprintf("%s with %d Pods", u.GetName(), len(pods)))
			if condition(&u, "Complete") == "True" && len(pods) == 1 &&
				harness.Field(&pods[0], "status", "phase") == "Succeeded" && !o.before[pods[0].GetUID()] {
				job = u.GetName()
			}
		}
		return fmt.Sprintf("Jobs %q", seen), job != ""
	})
	o.T.Logf("%s: Complete, 1 Pod made during the outage succeeded", job)
}
