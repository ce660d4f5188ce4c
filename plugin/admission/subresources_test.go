package admission

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	registration "k8s.io/api/admissionregistration/v1"

	"github.com/syncgate/syncgate/plugin/gate"
)

const everyKind = "gatedDeletes: [NetworkPolicy]\nscope: {admission: {clusterScoped: [Namespace, ClusterRole, PersistentVolume, CertificateSigningRequest], kinds: [Endpoints, Application]}}\n" +
	"kinds:\n- {group: example.com, kind: Fleet, path: spec.image, category: x-operators}\n- {group: example.com, kind: Status, path: spec.b, category: x-status, resource: status}\n- {group: example.com, kind: Guard, path: spec.a, category: x-guard, resource: guard}\n"

// TestTheRulesListWhatIsJudged: each subresource in a rule is one that the
// webhook judges, and the other way round.
func TestTheRulesListWhatIsJudged(t *testing.T) {
	p := load(t, everyKind)
	list, err := entries(p)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]GroupKind{}
	for _, e := range list {
		for _, k := range e.kinds {
			kinds[k.Group+"/"+k.Resource] = GroupKind{k.Group, k.Kind}
		}
	}
	asked, names := map[string]bool{}, map[string]bool{}
	for _, w := range configuration(t, everyKind).Webhooks {
		if names[w.Name] { // policy has a custom kind called as one of ours
			t.Errorf("two entries called %s", w.Name)
		}
		names[w.Name] = true
		for _, r := range w.Rules {
			for _, resource := range r.Resources {
				resource, subresource, _ := strings.Cut(resource, "/")
				if subresource == "" || subresource == "ephemeralcontainers" || subresource == Binds {
					continue
				}
				k := kinds[r.APIGroups[0]+"/"+resource]
				asked[fmt.Sprint(k, subresource)] = true
				if !WritesMetadata(k, subresource) || len(r.Operations) != 1 || r.Operations[0] != registration.Update {
					t.Errorf("%s asks about %v of %v/%s, which nobody judges", w.Name, r.Operations, k, subresource)
				}
			}
		}
	}
	for _, k := range kinds {
		for _, subresource := range []string{Status, Finalize, Approval, "scale", "binding", "resize", "token"} {
			if WritesMetadata(k, subresource) != asked[fmt.Sprint(k, subresource)] {
				t.Errorf("%v/%s: judged %t, asked about %t", k, subresource, WritesMetadata(k, subresource), asked[fmt.Sprint(k, subresource)])
			}
		}
	}
	if len(asked) < 15 {
		t.Errorf("too few subresources: %v", asked)
	}
}

// TestAStatusWriteIsAskedAboutForItsMetadata alone, whoever makes it.
func TestAStatusWriteIsAskedAboutForItsMetadata(t *testing.T) {
	matchers := map[string]func(Writer, string, string, map[string]any, map[string]any) bool{}
	for _, w := range configuration(t, everyKind).Webhooks {
		m := matcher(t, w.MatchConditions)
		ask := func(by Writer, resource, subresource string, obj, old map[string]any) bool {
			t.Helper()
			got := m.Match(context.Background(), attributes(by, resource, subresource, obj, old), nil, nil)
			if got.Error != nil {
				t.Errorf("%s: %s/%s: %v", w.Name, resource, subresource, got.Error)
			}
			return got.Matches
		}
		for _, r := range w.Rules {
			for _, resource := range r.Resources {
				if strings.Contains(resource, "/") && !strings.HasSuffix(resource, "ephemeralcontainers") || resource == "bindings" {
					matchers[r.APIGroups[0]+"|"+resource] = ask
				}
			}
		}
	}
	object := func(k GroupKind, change func(meta map[string]any)) map[string]any {
		meta := map[string]any{"name": "x", "labels": map[string]any{"app": "x"}, "annotations": map[string]any{"a": "b"}}
		if change != nil {
			change(meta)
		}
		return map[string]any{"apiVersion": strings.TrimPrefix(k.Group+"/v1", "/"), "kind": k.Kind, "metadata": meta, "spec": map[string]any{}}
	}
	annotate := func(key string) func(map[string]any) {
		return func(m map[string]any) { m["annotations"].(map[string]any)[key] = "x" }
	}
	label := func(key string) func(map[string]any) {
		return func(m map[string]any) { m["labels"].(map[string]any)[key] = "x" }
	}
	free := []func(map[string]any){nil, annotate("c"), annotate("syncgate.io/receipt"), annotate("example.com/neg-status"),
		func(m map[string]any) { m["resourceVersion"], m["finalizers"] = "2", []any{"x/y"} }}
	users := []string{"alice", "system:node:n1", controllerAccounts + "deployment-controller", controllerAccounts + "replicaset-controller"}
	n := 0
	for key, gated := range map[string][]func(map[string]any){
		"|pods/status":                                            {annotate("k8s.v1.cni.cncf.io/networks"), label("azure.workload.identity/use")},
		"|replicationcontrollers/status":                          nil,
		"|services/status":                                        {annotate("tailscale.com/expose")},
		"|persistentvolumeclaims/status":                          nil,
		"|persistentvolumes/status":                               nil,
		"|namespaces/status":                                      {label("pod-security.kubernetes.io/enforce"), annotate("linkerd.io/inject")},
		"|namespaces/finalize":                                    {label("pod-security.kubernetes.io/enforce")},
		"apps|deployments/status":                                 nil,
		"apps|replicasets/status":                                 nil,
		"apps|daemonsets/status":                                  nil,
		"apps|statefulsets/status":                                nil,
		"batch|jobs/status":                                       nil,
		"batch|cronjobs/status":                                   nil,
		"networking.k8s.io|ingresses/status":                      {annotate("nginx.ingress.kubernetes.io/configuration-snippet")},
		"certificates.k8s.io|certificatesigningrequests/status":   nil,
		"certificates.k8s.io|certificatesigningrequests/approval": nil,
		"example.com|fleets/status":                               nil,
		"example.com|status/status":                               nil,
		"example.com|guard/status":                                nil,
	} {
		ask := matchers[key]
		if ask == nil {
			t.Errorf("no rule for %s", key)
			continue
		}
		delete(matchers, key)
		group, resource, _ := strings.Cut(key, "|")
		resource, subresource, _ := strings.Cut(resource, "/")
		k := GroupKind{group, resource} // the conditions go by the resource
		for _, user := range users {
			by := Writer{User: user, Groups: []string{"system:nodes"}, Operation: Update, Kind: k, Namespace: "shop", Name: "x"}
			for i, change := range free {
				n++
				if ask(by, resource, subresource, object(k, change), object(k, nil)) && (i != 1 || resource != "ingresses") { // of an Ingress every annotation counts
					t.Errorf("%s: %s is asked about free write %d", key, user, i)
				}
			}
			for i, change := range slices.Concat(gated, []func(map[string]any){annotate(gate.FluxForce), label(gate.FluxForce), annotate(gate.ArgoSyncOptions)}) {
				n++
				if !ask(by, resource, subresource, object(k, change), object(k, nil)) || !ask(by, resource, subresource, object(k, nil), object(k, change)) {
					t.Errorf("%s: %s is not asked about gated write %d, or its undoing", key, user, i)
				}
			}
			by.User = APIServer
			if ask(by, resource, subresource, object(k, annotate(gate.FluxForce)), object(k, nil)) {
				t.Errorf("%s: the API server is asked about its own writes", key)
			}
		}
	}
	binding := func(change func(map[string]any)) map[string]any { return object(BindingKind, change) }
	for _, resource := range []string{"bindings", "pods/binding"} {
		ask := matchers["|"+resource]
		delete(matchers, "|"+resource)
		resource, subresource, _ := strings.Cut(resource, "/")
		by := Writer{User: "system:kube-scheduler", Operation: Create, Kind: BindingKind, Namespace: "shop", Name: "x"}
		for i, change := range free {
			if ask(by, resource, subresource, binding(change), nil) {
				t.Errorf("%s: asked about free binding %d", resource, i)
			}
		}
		for i, change := range []func(map[string]any){annotate("k8s.v1.cni.cncf.io/networks"), label("azure.workload.identity/use"), annotate(gate.FluxForce), label(gate.FluxForce)} {
			if !ask(by, resource, subresource, binding(change), nil) {
				t.Errorf("%s: not asked about gated binding %d", resource, i)
			}
		}
	}
	for key := range matchers {
		t.Errorf("%s is asked about, and not tried here", key)
	}
	t.Logf("%d writes", n)
}
