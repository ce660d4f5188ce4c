package admission

import (
	"context"
	"fmt"
	"testing"

	registration "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/syncgate/syncgate/plugin/projection"
)

// matcher compiles conditions as the API server does.
func matcher(t testing.TB, conditions []registration.MatchCondition) matchconditions.Matcher {
	t.Helper()
	accessors := make([]plugincel.ExpressionAccessor, len(conditions))
	for i, c := range conditions {
		accessors[i] = (*matchconditions.MatchCondition)(&c)
	}
	e := plugincel.NewConditionCompiler(environment.MustBaseEnvSet(version.MajorMinor(1, 37))).
		CompileCondition(accessors, plugincel.OptionalVariableDeclarations{HasAuthorizer: true}, environment.StoredExpressions)
	for _, err := range e.CompilationErrors() {
		t.Fatal(err)
	}
	fail := registration.Fail
	return matchconditions.NewMatcher(e, &fail, "webhook", "validating", "syncgate")
}

// attributes is a request as the API server hands it to its matchers.
func attributes(w Writer, resource, subresource string, obj, old map[string]any) *admission.VersionedAttributes {
	kind := schema.GroupVersionKind{Group: w.Kind.Group, Version: "v1", Kind: w.Kind.Kind}
	a := &admission.VersionedAttributes{VersionedKind: kind}
	a.Attributes = admission.NewAttributesRecord(nil, nil, kind, w.Namespace, w.Name, schema.GroupVersionResource{Group: w.Kind.Group, Version: "v1", Resource: resource}, subresource,
		admission.Operation(w.Operation), nil, false, &user.DefaultInfo{Name: w.User, Groups: w.Groups})
	if obj != nil {
		a.VersionedObject.Set(&unstructured.Unstructured{Object: obj})
	}
	if old != nil {
		a.VersionedOldObject.Set(&unstructured.Unstructured{Object: old})
	}
	return a
}

// TestTheExemptionIsTheSameInBothPlaces: the condition of every entry against
// Exempt, for every user of the table and some that only look like one, every
// kind and operation.
func TestTheExemptionIsTheSameInBothPlaces(t *testing.T) {
	for name, more := range map[string]string{
		"each controller its own account": "gatedDeletes: [NetworkPolicy, Deployment]\n",
		"one account for all":             "sharedControllerIdentity: system:kube-controller-manager\n",
		"exempt writers": `trustedWriters:
- {user: "system:serviceaccount:kube-system:rollouts", namespaces: ["shop", "team-*"], kinds: [ReplicaSet], names: ["web.*"], categories: [image], exempt: true}
- {user: everywhere, namespaces: ["*"], kinds: [Pod], categories: [image], exempt: true}
- {user: judged, namespaces: ["*"], kinds: [Pod], categories: [image]}
`,
	} {
		t.Run(name, func(t *testing.T) {
			more += "scope: {admission: {clusterScoped: [Namespace, ClusterRole, PersistentVolume], kinds: [Endpoints, EndpointSlice]}}\n"
			p := load(t, more)
			a := p.Admission()
			users := []string{APIServer, "alice", "system:kube-controller-manager", "system:node:n1", "judged", "everywhere",
				"system:serviceaccount:kube-system:rollouts", "system:serviceaccount:shop:deployment-controller", "system:serviceaccount:kube-system:deployment-controllers"}
			for _, g := range grants {
				users = append(users, controllerAccounts+g.controller)
			}
			for _, d := range deleters {
				users = append(users, controllerAccounts+d)
			}
			list, err := entries(p)
			if err != nil {
				t.Fatal(err)
			}
			exempt, compared := 0, 0
			for _, e := range list {
				m := matcher(t, []registration.MatchCondition{{Name: "x", Expression: exemption(a, e.kinds)}})
				for _, k := range e.kinds {
					for _, u := range users {
						for _, groups := range [][]string{nil, {"system:nodes"}} {
							for _, op := range []string{Create, Update, Delete} {
								for _, object := range []string{"web.1", "webx", "api"} {
									for _, ns := range []string{"shop", "team-a", "other"} {
										for _, mirrored := range []bool{false, true} {
											w := Writer{User: u, Groups: groups, Operation: op, Kind: GroupKind{k.Group, k.Kind}, Namespace: ns, Name: object, Mirror: mirrored && op != Delete}
											if k.ClusterScoped {
												w.Namespace = ""
											}
											compared++
											if compare(t, m, a.SharedControllerIdentity, k, w, Exempt(a, w)) {
												exempt++
											}
										}
									}
								}
							}
						}
					}
				}
			}
			t.Logf("%d requests compared, %d exempt", compared, exempt)
			if exempt == 0 || exempt == compared {
				t.Error("nothing was compared that could differ")
			}
		})
	}
}

func compare(t *testing.T, m matchconditions.Matcher, shared string, k projection.Kind, w Writer, want bool) bool {
	t.Helper()
	meta := map[string]any{"name": w.Name}
	if w.Mirror {
		meta["annotations"] = map[string]any{mirror: "hash"}
	}
	obj := map[string]any{"apiVersion": "v1", "kind": k.Kind, "metadata": meta}
	var now, old map[string]any
	if w.Operation != Delete {
		now = obj
	}
	if w.Operation != Create {
		old = obj
	}
	got := m.Match(context.Background(), attributes(w, k.Resource, "", now, old), nil, nil)
	if got.Error != nil {
		t.Fatalf("%s: %v", fmt.Sprint(w), got.Error)
	}
	// DELETE of a kind that is not gated is never asked about at all.
	if got.Matches == want && !(w.Operation == Delete && want) {
		t.Errorf("%+v (shared %q): the API server skips it: %t, the webhook exempts it: %t", w, shared, !got.Matches, want)
	}
	return want
}

func TestTheGuardIsTheSameInBothPlaces(t *testing.T) {
	a := load(t, "administrators: {users: [alice], groups: [platform]}\n").Admission()
	m := matcher(t, []registration.MatchCondition{{Name: "x", Expression: guardCondition(a)}})
	passed := 0
	for _, u := range []string{APIServer, "alice", "mallory", controllerAccounts + "root-ca-cert-publisher", controllerAccounts + "namespace-controller", controllerAccounts + "generic-garbage-collector",
		"system:serviceaccount:syncgate-system:syncgate-certificates", certManager, "system:serviceaccount:argocd:argocd-application-controller"} {
		for _, groups := range [][]string{nil, {"platform"}, {"system:authenticated"}, {"system:masters"}} {
			for _, name := range []string{"syncgate-policy", "kube-root-ca.crt", CertificateSecret, "syncgate-webhook-ca", ""} {
				for kind, resource := range map[string]string{"ConfigMap": "configmaps", "Secret": "secrets"} {
					w := Writer{User: u, Groups: groups, Operation: Create, Kind: GroupKind{"", kind}, Namespace: a.Namespace, Name: name}
					got := m.Match(context.Background(), attributes(w, resource, "", map[string]any{"metadata": map[string]any{}}, nil), nil, nil)
					if got.Error != nil {
						t.Fatal(got.Error)
					}
					want := MayAdminister(a, w)
					if want {
						passed++
					}
					if got.Matches == want {
						t.Errorf("%+v: the API server asks: %t, may administer: %t", w, got.Matches, want)
					}
				}
			}
		}
	}
	if passed == 0 {
		t.Error("nobody may administer")
	}
}

// TestEveryConditionCompiles, and says yes to a change of what is gated and no
// to one of what is free.
func TestEveryConditionCompiles(t *testing.T) {
	c := configuration(t, "gatedDeletes: [NetworkPolicy]\nscope: {admission: {clusterScoped: [Namespace, ClusterRole, ClusterRoleBinding, PersistentVolume, StorageClass, IngressClass], kinds: [Endpoints, Application]}}\n")
	deployment := func(image string, more map[string]any) map[string]any {
		spec := map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "a", "image": image}}}}}
		obj := map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "d"}, "spec": spec}
		for k, v := range more {
			spec[k] = v
		}
		return obj
	}
	forced := deployment("x", nil)
	forced["metadata"] = map[string]any{"name": "d", "annotations": map[string]any{"argocd.argoproj.io/sync-options": "Replace=true"}}
	labelled := deployment("x", nil)
	labelled["metadata"] = map[string]any{"name": "d", "labels": map[string]any{"kustomize.toolkit.fluxcd.io/force": "enabled"}}
	asked := 0
	for _, w := range c.Webhooks {
		m := matcher(t, w.MatchConditions)
		if w.Name != "workloads.syncgate.io" {
			continue
		}
		for _, tt := range []struct {
			name     string
			op       string
			obj, old map[string]any
			want     bool
		}{
			{"create", Create, deployment("x", nil), nil, true},
			{"image", Update, deployment("y", nil), deployment("x", nil), true},
			{"replicas", Update, deployment("x", map[string]any{"replicas": int64(5)}), deployment("x", nil), false},
			{"nothing", Update, deployment("x", nil), deployment("x", nil), false},
			{"force", Update, forced, deployment("x", nil), true},
			{"force by a label", Update, labelled, deployment("x", nil), true},
			{"delete", Delete, nil, deployment("x", nil), true},
		} {
			asked++
			w := Writer{User: "alice", Operation: tt.op, Kind: GroupKind{"apps", "Deployment"}, Namespace: "shop", Name: "d"}
			got := m.Match(context.Background(), attributes(w, "deployments", "", tt.obj, tt.old), nil, nil)
			if got.Error != nil || got.Matches != tt.want {
				t.Errorf("%s: got %t %v (%s), want %t", tt.name, got.Matches, got.Error, got.FailedConditionName, tt.want)
			}
		}
	}
	if asked == 0 {
		t.Error("no entry called workloads")
	}
}
