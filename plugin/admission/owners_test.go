package admission

import (
	"context"
	"fmt"
	"testing"

	registration "k8s.io/api/admissionregistration/v1"
)

func owner(kind, name, uid string, more ...string) map[string]any {
	o := map[string]any{"apiVersion": "v1", "kind": kind, "name": name, "uid": uid}
	for _, m := range more {
		o[m] = true
	}
	return o
}

// owned is an object with owners, and nothing that is gated beside them.
func owned(kind string, owners ...map[string]any) map[string]any {
	meta := map[string]any{"name": "x", "namespace": "shop"}
	if owners != nil {
		list := []any{}
		for _, o := range owners {
			list = append(list, o)
		}
		meta["ownerReferences"] = list
	}
	return map[string]any{"apiVersion": "v1", "kind": kind, "metadata": meta, "spec": map[string]any{}}
}

// TestANewOwnerIsAskedAbout: the conditions against NewOwners, of kinds whose
// deletion is gated and of those beside them in the same entry.
func TestANewOwnerIsAskedAbout(t *testing.T) {
	c := configuration(t, "gatedDeletes: [NetworkPolicy, StatefulSet, Service]\n")
	a, b := owner("ConfigMap", "a", "1"), owner("ConfigMap", "b", "2")
	var many, more []map[string]any
	for i := range mostOwners + 1 {
		more = append(more, owner("ConfigMap", fmt.Sprint(i), fmt.Sprint(i)))
	}
	many = more[:mostOwners]
	type list = []map[string]any
	asked, compared := 0, 0
	for _, kind := range []struct {
		group, kind, resource string
		entries               []string // and subresources
		gated                 bool
	}{
		{"networking.k8s.io", "NetworkPolicy", "networkpolicies", []string{"specs"}, true},
		{"resource.k8s.io", "ResourceClaim", "resourceclaims", []string{"specs"}, false},
		{"apps", "StatefulSet", "statefulsets", []string{"workloads", "status"}, true},
		{"apps", "Deployment", "deployments", []string{"workloads", "status"}, false},
		{"", "Service", "services", []string{"services", "status"}, true},
		{"networking.k8s.io", "Ingress", "ingresses", []string{"ingresses", "status"}, false},
	} {
		for _, entry := range kind.entries {
			var m []registration.MatchCondition
			for _, w := range c.Webhooks {
				if w.Name == entry+".syncgate.io" {
					m = w.MatchConditions
				}
			}
			if m == nil {
				t.Fatalf("no entry %s", entry)
			}
			match := matcher(t, m)
			for _, tt := range []struct {
				name     string
				old, now list
			}{
				{"none", nil, nil}, {"an empty list", nil, list{}}, {"the same", list{a}, list{a}}, {"in another order", list{a, b}, list{b, a}},
				{"one more", list{a}, list{a, b}}, {"the first", nil, list{a}}, {"one for another", list{a}, list{b}}, {"one less", list{a, b}, list{a}}, {"none left", list{a}, nil},
				{"another UID", list{a}, list{owner("ConfigMap", "a", "3")}}, {"another name", list{a}, list{owner("ConfigMap", "c", "1")}},
				{"another kind", list{a}, list{owner("Secret", "a", "1")}},
				{"what only orders a deletion", list{a}, list{owner("ConfigMap", "a", "1", "blockOwnerDeletion", "controller")}},
				{"many", many, many}, {"one more of many", many[1:], many}, {"more than can be compared", more, more},
			} {
				sub := ""
				if entry == "status" {
					sub = "status"
				}
				obj, old := owned(kind.kind, tt.now...), owned(kind.kind, tt.old...)
				w := Writer{User: "alice", Operation: Update, Kind: GroupKind{kind.group, kind.kind}, Namespace: "shop", Name: "x"}
				got := match.Match(context.Background(), attributes(w, kind.resource, sub, obj, old), nil, nil)
				if got.Error != nil {
					t.Fatal(got.Error)
				}
				want := kind.gated && (len(NewOwners(obj, old)) > 0 || len(tt.now) > mostOwners)
				compared++
				if want {
					asked++
				}
				if got.Matches != want {
					t.Errorf("%s/%s %s, %s: asked %t, want %t", kind.kind, sub, entry, tt.name, got.Matches, want)
				}
			}
		}
	}
	t.Logf("%d compared, %d asked about", compared, asked)
	if asked == 0 || asked == compared {
		t.Error("nothing was compared that could differ")
	}
}
