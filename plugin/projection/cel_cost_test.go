package projection

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// many makes a list.
func many(n int, item func(i int) any) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = item(i)
	}
	return out
}

// manyKeys makes a map; a key holds its number, at %d or behind it.
func manyKeys(n int, key string, value any) map[string]any {
	if !strings.Contains(key, "%d") {
		key += "%d"
	}
	out := make(map[string]any, n)
	for i := range n {
		out[fmt.Sprintf(key, i)] = value
	}
	return out
}

func workload(podSpec map[string]any) map[string]any {
	return map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "x"},
		"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{}, "spec": podSpec}}}
}

// podWith makes n containers, each with the members that with returns.
func podWith(n int, with func(i int) map[string]any) map[string]any {
	return workload(map[string]any{"containers": many(n, func(i int) any {
		c := with(i)
		c["name"], c["image"] = fmt.Sprintf("c%d", i), "example.com/x:1"
		return c
	})})
}

func plainEnv(n int, name, value string) []any {
	return many(n, func(i int) any { return map[string]any{"name": fmt.Sprintf("%s_%03d", name, i), "value": value} })
}

func secretEnv(n int) []any {
	return many(n, func(i int) any {
		return map[string]any{"name": fmt.Sprintf("DB_PASSWORD_%03d", i), "valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": "s", "key": "k"}}}
	})
}

// costCase is a pair of states that differ in something free all over, so that
// no comparison is saved by an early equality.
type costCase struct {
	name     string
	old, obj map[string]any
	free     bool // within the limits: it must be found free
}

func pairOf(name string, free bool, state func(v string) map[string]any) costCase {
	return costCase{name, state("a"), state("b"), free}
}

func costCases() []costCase {
	number := func(n int) json.Number { return json.Number(strconv.Itoa(n)) }
	cores := map[string]string{"a": "1", "b": "2"}
	hook := func(v string) map[string]any {
		return map[string]any{"httpGet": map[string]any{"path": v, "port": number(int(v[0]))}, "tcpSocket": map[string]any{"port": number(int(v[0]))}}
	}
	probe := func(v string) map[string]any {
		p := hook(v)
		p["periodSeconds"] = number(int(v[0]))
		return p
	}
	hashed := map[string]string{"a": "cm-2456789bcd", "b": "cm-9bcdfghkmt"}
	return []costCase{
		pairOf("50 containers with 100 plain variables", true, func(v string) map[string]any {
			return podWith(50, func(int) map[string]any { return map[string]any{"env": plainEnv(100, "APP_SETTING", v)} })
		}),
		pairOf("50 containers with 99 from Secrets and a plain one", true, func(v string) map[string]any {
			return podWith(50, func(int) map[string]any {
				return map[string]any{"env": append(secretEnv(99), map[string]any{"name": "A", "value": v})}
			})
		}),
		pairOf("names as long as they get", true, func(v string) map[string]any {
			return podWith(50, func(int) map[string]any {
				return map[string]any{"env": plainEnv(100, "GIT_"+strings.Repeat("LONG", 50), v)}
			})
		}),
		pairOf("as much as is looked into", true, func(v string) map[string]any {
			o := podWith(mostContainers, func(int) map[string]any {
				p := probe(v)
				return map[string]any{
					"env":          append(many(64, func(i int) any { return map[string]any{"name": fmt.Sprint(i, "_OPTIONS"), "value": "x"} }), map[string]any{"name": "A", "value": v}),
					"resources":    map[string]any{"limits": map[string]any{"cpu": cores[v]}},
					"ports":        many(6, func(i int) any { return map[string]any{"containerPort": number(i), "name": v, "protocol": "TCP"} }),
					"volumeMounts": many(6, func(i int) any { return map[string]any{"name": "v", "mountPath": fmt.Sprint("/m", i)} }),
					"envFrom":      many(1, func(int) any { return map[string]any{"configMapRef": map[string]any{"name": hashed[v]}, "prefix": "x"} }),
					"lifecycle":    map[string]any{"postStart": hook(v), "preStop": hook(v)}, "livenessProbe": p, "readinessProbe": p, "startupProbe": p,
				}
			})
			spec := sub(o, "spec", "template", "spec")
			spec["volumes"] = many(mostKeyed, func(i int) any {
				return map[string]any{"name": fmt.Sprint("v", i), "projected": map[string]any{"sources": many(1, func(int) any {
					return map[string]any{"configMap": map[string]any{"name": strings.Repeat("x", 200) + hashed[v]}}
				})}}
			})
			spec["tolerations"] = many(mostTolerations, func(i int) any { return map[string]any{"key": fmt.Sprint(v, i)} })
			sub(o, "spec", "template", "metadata")["annotations"] = manyKeys(mostMetadata, "example.com/x", v)
			return o
		}),
		pairOf("projected volumes with many sources", true, func(v string) map[string]any {
			return workload(map[string]any{"volumes": many(mostKeyed, func(i int) any {
				return map[string]any{"name": fmt.Sprint("v", i), "projected": map[string]any{"sources": many(mostInOrder, func(int) any {
					return map[string]any{"configMap": map[string]any{"name": strings.Repeat("x", 200) + hashed[v]}}
				})}}
			})})
		}),
		pairOf("60,000 variables in one container", false, func(v string) map[string]any {
			return podWith(1, func(int) map[string]any { return map[string]any{"env": plainEnv(60000, "A", v)} })
		}),
		pairOf("60,000 variables in 60 containers", false, func(v string) map[string]any {
			return podWith(60, func(int) map[string]any { return map[string]any{"env": plainEnv(1000, "A", v)} })
		}),
		pairOf("variables with names of 30,000 characters", true, func(v string) map[string]any {
			return podWith(1, func(int) map[string]any { return map[string]any{"env": plainEnv(100, strings.Repeat("A", 30000), v)} })
		}),
		pairOf("30,000 containers", false, func(v string) map[string]any {
			return podWith(30000, func(int) map[string]any { return map[string]any{"tty": v == "a"} })
		}),
		pairOf("20,000 mounts", false, func(v string) map[string]any {
			return podWith(1, func(int) map[string]any {
				return map[string]any{"env": plainEnv(1, "A", v), "volumeMounts": many(20000, func(i int) any { return map[string]any{"name": "v", "mountPath": fmt.Sprint("/", i)} })}
			})
		}),
		pairOf("20,000 ports", false, func(v string) map[string]any {
			return podWith(1, func(int) map[string]any {
				return map[string]any{"ports": many(20000, func(i int) any { return map[string]any{"name": v, "containerPort": number(i)} })}
			})
		}),
		pairOf("20,000 volumes", false, func(v string) map[string]any {
			return workload(map[string]any{"volumes": many(20000, func(i int) any {
				return map[string]any{"name": fmt.Sprint("v", i), "secret": map[string]any{"secretName": "s", "optional": v == "a"}}
			})})
		}),
		pairOf("10,000 sources", false, func(v string) map[string]any {
			return workload(map[string]any{"volumes": []any{map[string]any{"name": "v", "projected": map[string]any{"sources": many(10000, func(int) any {
				return map[string]any{"configMap": map[string]any{"name": hashed[v]}}
			})}}}})
		}),
		pairOf("a ConfigMap's name of a million characters", false, func(v string) map[string]any {
			return workload(map[string]any{"volumes": []any{map[string]any{"name": "v", "configMap": map[string]any{"name": strings.Repeat("x", 1000000) + hashed[v]}}}})
		}),
		pairOf("10,000 of envFrom", false, func(v string) map[string]any {
			return podWith(10, func(int) map[string]any {
				return map[string]any{"envFrom": many(1000, func(int) any { return map[string]any{"configMapRef": map[string]any{"name": hashed[v]}} })}
			})
		}),
		pairOf("20,000 tolerations", false, func(v string) map[string]any {
			return workload(map[string]any{"tolerations": many(20000, func(i int) any { return map[string]any{"key": fmt.Sprint(v, i)} })})
		}),
		pairOf("100,000 labels of a template", false, func(v string) map[string]any {
			o := workload(map[string]any{})
			sub(o, "spec", "template", "metadata")["labels"] = manyKeys(100000, "x", v)
			return o
		}),
		pairOf("a million characters in an argument", false, func(v string) map[string]any {
			return podWith(1, func(int) map[string]any { return map[string]any{"args": []any{strings.Repeat(v, 1000000)}} })
		}),
		pairOf("50,000 rules", false, func(v string) map[string]any {
			return map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "rules": many(50000, func(i int) any { return map[string]any{"verbs": []any{v}} })}
		}),
		pairOf("100,000 labels of a role", false, func(v string) map[string]any {
			return map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"labels": manyKeys(100000, "app.kubernetes.io/", v)}}
		}),
		pairOf("300 labels of a role", true, func(v string) map[string]any {
			return map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"labels": manyKeys(mostMetadata, "app.kubernetes.io/"+strings.Repeat("x", 200), v)}}
		}),
		pairOf("50,000 subjects", false, func(v string) map[string]any {
			return map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "subjects": many(50000, func(i int) any { return map[string]any{"name": fmt.Sprint(v, i)} })}
		}),
		pairOf("20,000 ports of a Service", false, func(v string) map[string]any {
			return map[string]any{"apiVersion": "v1", "kind": "Service", "spec": map[string]any{"type": "NodePort", "ports": many(20000, func(i int) any {
				return map[string]any{"port": number(i), "nodePort": number(i + int(v[0]))}
			})}}
		}),
		pairOf("64 ports and 300 annotations of a Service", true, func(v string) map[string]any {
			return map[string]any{"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"annotations": manyKeys(mostMetadata, "%d"+strings.Repeat("x", 200)+"-status", v)},
				"spec": map[string]any{"type": "NodePort", "ports": many(64, func(i int) any {
					return map[string]any{"port": number(i), "protocol": "TCP", "nodePort": number(i + int(v[0]))}
				})}}
		}),
		pairOf("80,000 annotations of an Ingress", false, func(v string) map[string]any {
			return map[string]any{"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": map[string]any{"annotations": manyKeys(80000, "x", v)}}
		}),
		pairOf("a tuning annotation of 256 KiB", false, func(v string) map[string]any {
			return map[string]any{"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": map[string]any{"annotations": map[string]any{"nginx.ingress.kubernetes.io/proxy-body-size": strings.Repeat(v, 1<<18)}}}
		}),
		pairOf("as many weights as a route is looked into for", true, func(v string) map[string]any {
			return map[string]any{"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "spec": map[string]any{"rules": many(mostInOrder, func(int) any {
				return map[string]any{"backendRefs": many(mostInOrder, func(int) any {
					r := manyKeys(mostMembers-1, "k", "v")
					r["weight"] = number(int(v[0]))
					return r
				})}
			})}}
		}),
		pairOf("a route with 5,000 rules", false, func(v string) map[string]any {
			return map[string]any{"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "spec": map[string]any{"rules": many(5000, func(int) any {
				return map[string]any{"backendRefs": many(2, func(int) any { return map[string]any{"weight": number(int(v[0]))} })}
			})}}
		}),
		pairOf("5,000 sources of an Application", false, func(v string) map[string]any {
			return map[string]any{"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "spec": map[string]any{"sources": many(5000, func(int) any { return map[string]any{"targetRevision": v} })}}
		}),
		pairOf("a spec with 100,000 members", false, func(v string) map[string]any {
			return map[string]any{"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "spec": manyKeys(100000, "x", v)}
		}),
		pairOf("1,000 endpoints", false, func(v string) map[string]any {
			return map[string]any{"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "endpoints": many(1000, func(int) any { return map[string]any{"zone": v} })}
		}),
		pairOf("a Namespace with 100,000 labels", false, func(v string) map[string]any {
			return map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"labels": manyKeys(100000, "argocd.argoproj.io/", v)}}
		}),
		pairOf("a Secret of 2 MB", true, func(v string) map[string]any {
			return map[string]any{"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token", "data": manyKeys(20000, "x", strings.Repeat(v, 100))}
		}),
		pairOf("a custom resource with 100,000 members", false, func(v string) map[string]any {
			o := manyKeys(100000, "x", v)
			o["apiVersion"], o["kind"] = "example.com/v1", "Thing"
			return o
		}),
		pairOf("a CustomResourceDefinition of 2 MB", true, func(v string) map[string]any {
			return map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": map[string]any{"versions": many(20000, func(int) any { return map[string]any{"name": strings.Repeat(v, 100)} })}}
		}),
	}
}

func TestTheBudgetHolds(t *testing.T) {
	c := newConditions(NewProjector([]CustomField{{"example.com", "Thing", "spec.a.b", "x-thing", false}}), policies["all"])
	highest := int64(0)
	for _, k := range costCases() {
		t.Run(k.name, func(t *testing.T) {
			conditions := c.of(k.obj)
			modes := map[string]outcome{"raw": conditions.update(t, raw(k.old), raw(k.obj))}
			if a, b := typed(k.old), typed(k.obj); a != nil && b != nil {
				modes["typed"] = conditions.update(t, a, b)
			}
			for mode, o := range modes {
				t.Logf("%s: cost %v of %d and %d in all", mode, o.costs, celconfig.PerCallLimit, celconfig.RuntimeCELCostBudgetMatchConditions)
				if o.err != nil {
					t.Errorf("%s: %v", mode, o.err)
				}
				if o.asked() == k.free {
					t.Errorf("%s: asked %v", mode, o.asked())
				}
				for _, cost := range o.costs {
					highest = max(highest, cost)
				}
			}
			created := conditions.create(t, raw(k.obj))
			if created.err != nil {
				t.Errorf("on CREATE: %v", created.err)
			}
			highest = max(highest, created.total)
		})
	}
	t.Logf("the highest cost of one condition: %d", highest)
}
