package projection

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// apiTypes are the API types of the kinds in kindTable. What is not here has
// no type in k8s.io/api, and its whole spec counts.
var apiTypes = map[string]any{
	"Pod": corev1.Pod{}, "ReplicationController": corev1.ReplicationController{}, "PodTemplate": corev1.PodTemplate{},
	"Deployment.apps": appsv1.Deployment{}, "ReplicaSet.apps": appsv1.ReplicaSet{}, "DaemonSet.apps": appsv1.DaemonSet{},
	"StatefulSet.apps": appsv1.StatefulSet{}, "Job.batch": batchv1.Job{}, "CronJob.batch": batchv1.CronJob{},
	"Role.rbac.authorization.k8s.io": rbacv1.Role{}, "ClusterRole.rbac.authorization.k8s.io": rbacv1.ClusterRole{},
	"RoleBinding.rbac.authorization.k8s.io": rbacv1.RoleBinding{}, "ClusterRoleBinding.rbac.authorization.k8s.io": rbacv1.ClusterRoleBinding{},
	"ServiceAccount": corev1.ServiceAccount{}, "Secret": corev1.Secret{}, "Service": corev1.Service{},
	"Endpoints": corev1.Endpoints{}, //lint:ignore SA1019 people still write them, so they are gated
	"CertificateSigningRequest.certificates.k8s.io": certificatesv1.CertificateSigningRequest{},
	"ClusterTrustBundle.certificates.k8s.io":        certificatesv1beta1.ClusterTrustBundle{},
	"CSIDriver.storage.k8s.io":                      storagev1.CSIDriver{}, "StorageClass.storage.k8s.io": storagev1.StorageClass{},
	"VolumeAttributesClass.storage.k8s.io": storagev1.VolumeAttributesClass{},
	"EndpointSlice.discovery.k8s.io":       discoveryv1.EndpointSlice{},
	"Ingress.networking.k8s.io":            networkingv1.Ingress{}, "IngressClass.networking.k8s.io": networkingv1.IngressClass{},
	"NetworkPolicy.networking.k8s.io": networkingv1.NetworkPolicy{},
	"PersistentVolume":                corev1.PersistentVolume{}, "PersistentVolumeClaim": corev1.PersistentVolumeClaim{},
	"RuntimeClass.node.k8s.io": nodev1.RuntimeClass{}, "PriorityClass.scheduling.k8s.io": schedulingv1.PriorityClass{},
	"ResourceClaim.resource.k8s.io": resourcev1.ResourceClaim{}, "ResourceClaimTemplate.resource.k8s.io": resourcev1.ResourceClaimTemplate{},
	"DeviceClass.resource.k8s.io": resourcev1.DeviceClass{}, "Namespace": corev1.Namespace{},
	"ValidatingWebhookConfiguration.admissionregistration.k8s.io":   admissionv1.ValidatingWebhookConfiguration{},
	"MutatingWebhookConfiguration.admissionregistration.k8s.io":     admissionv1.MutatingWebhookConfiguration{},
	"ValidatingAdmissionPolicy.admissionregistration.k8s.io":        admissionv1.ValidatingAdmissionPolicy{},
	"ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io": admissionv1.ValidatingAdmissionPolicyBinding{},
	"MutatingAdmissionPolicy.admissionregistration.k8s.io":          admissionv1.MutatingAdmissionPolicy{},
	"MutatingAdmissionPolicyBinding.admissionregistration.k8s.io":   admissionv1.MutatingAdmissionPolicyBinding{},
}

// seeds are values that a field must have so that its neighbours count: a
// Service that exposes something, a toleration that reaches control-plane
// nodes. The second set of a kind shows what the first hides.
var (
	podSeeds = map[string]any{
		"PodSpec.serviceAccount":                  nil, // the alias; its own test is in pod_test.go
		"PodSpec.priorityClassName":               "system-x",
		"Toleration.key":                          "node-role.kubernetes.io/control-plane",
		"PodSpec.hostNetwork":                     false,
		"EnvVar.name":                             "PATH",
		"EnvVar.valueFrom":                        nil,
		"VolumeMount.mountPath":                   "/usr/bin/x",
		"VolumeMount.name":                        "v",
		"VolumeDevice.name":                       "v",
		"Volume.name":                             "v",
		"PersistentVolumeClaimSpec.dataSourceRef": nil,
	}
	seeds = map[string][]map[string]any{
		"pod":                                   {podSeeds, with(podSeeds, map[string]any{"PodSpec.hostNetwork": true, "EnvVar.valueFrom": set, "PersistentVolumeClaimSpec.dataSourceRef": set})},
		"Service":                               {{"ServiceSpec.type": "LoadBalancer"}},
		"ClusterRole.rbac.authorization.k8s.io": {{"ClusterRole.aggregationRule": nil}, {"ClusterRole.rules": nil}},
		"Secret":                                {{"Secret.type": "kubernetes.io/service-account-token"}},
		"PersistentVolumeClaim":                 {{"PersistentVolumeClaimSpec.dataSourceRef": nil}, {}},
	}
)

type keepSet struct{}

// set undoes a seed: the field is filled in like any other.
var set = keepSet{}

func with(base, more map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range base {
		out[k] = v
	}
	for k, v := range more {
		if v == any(set) {
			delete(out, k)
			continue
		}
		out[k] = v
	}
	return out
}

// filler builds an object with every field of its API type set, and notes
// for each scalar the fields on the way to it: "core/v1.PodSpec.volumes".
type filler struct {
	seeds   map[string]any
	scalar  []place
	structs []place         // whose chain ends in the type itself
	seen    map[string]bool // every field reached
}

type place struct {
	chain []string
	path  []any // map keys and list positions
}

func (f *filler) fill(t reflect.Type, chain []string, path []any) any {
	switch t.String() {
	case "intstr.IntOrString", "resource.Quantity", "v1.Time", "v1.MicroTime", "v1.Duration":
		f.leaf(chain, path)
		switch t.Name() {
		case "Quantity":
			return "7"
		case "Time", "MicroTime":
			return "2026-01-01T00:00:00.000000Z"
		}
		return "x7"
	case "runtime.RawExtension", "v1.FieldsV1":
		f.leaf(chain, append(path[:len(path):len(path)], "raw"))
		return map[string]any{"raw": "x"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return f.fill(t.Elem(), chain, path)
	case reflect.Struct:
		out := map[string]any{}
		f.structs = append(f.structs, place{append(append([]string{}, chain...), typeName(t)), append([]any{}, path...)})
		f.fields(t, t, out, chain, path)
		return out
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			f.leaf(chain, path)
			return "eA=="
		}
		return []any{f.fill(t.Elem(), chain, append(path[:len(path):len(path)], 0))}
	case reflect.Map:
		return map[string]any{"k": f.fill(t.Elem(), chain, append(path[:len(path):len(path)], "k"))}
	}
	f.leaf(chain, path)
	switch t.Kind() {
	case reflect.String:
		return "x"
	case reflect.Bool:
		return true
	}
	return json.Number("7")
}

func seedsOf(k *kindSpec) []map[string]any {
	if k.pod != nil {
		return seeds["pod"]
	}
	if s := seeds[k.name()]; s != nil {
		return s
	}
	return []map[string]any{{}}
}

// object fills in a whole object of a kind.
func (f *filler) object(k *kindSpec, typ any) map[string]any {
	tree := f.fill(reflect.TypeOf(typ), nil, nil).(map[string]any)
	tree["kind"], tree["apiVersion"] = k.kind, strings.TrimPrefix(k.group+"/v1", "/")
	return tree
}

func (f *filler) leaf(chain []string, path []any) {
	f.scalar = append(f.scalar, place{append([]string{}, chain...), append([]any{}, path...)})
}

func (f *filler) fields(owner, t reflect.Type, out map[string]any, chain []string, path []any) {
	for i := range t.NumField() {
		sf := t.Field(i)
		name, _, _ := strings.Cut(sf.Tag.Get("json"), ",")
		if name == "" && sf.Anonymous {
			f.fields(owner, sf.Type, out, chain, path)
			continue
		}
		if name == "" || name == "-" {
			continue
		}
		full := typeName(owner) + "." + name
		if f.seen == nil {
			f.seen = map[string]bool{}
		}
		f.seen[full] = true
		if t == reflect.TypeFor[metav1.TypeMeta]() {
			continue
		}
		c := append(chain[:len(chain):len(chain)], full)
		p := append(path[:len(path):len(path)], name)
		seed, seeded := f.seeds[owner.Name()+"."+name]
		switch {
		case seeded && seed == nil:
		case seeded:
			f.leaf(c, p)
			out[name] = seed
		default:
			out[name] = f.fill(sf.Type, c, p)
		}
	}
}

// typeName is the notation of schema_gen.go.
func typeName(t reflect.Type) string {
	p := t.PkgPath()
	for _, cut := range [][2]string{{"k8s.io/apimachinery/pkg/apis/", "apimachinery/"}, {"k8s.io/apimachinery/pkg/", "apimachinery/"}, {"k8s.io/api/", ""}} {
		if rest, ok := strings.CutPrefix(p, cut[0]); ok {
			return cut[1] + rest + "." + t.Name()
		}
	}
	return p + "." + t.Name()
}

// excluded returns why a place is not gated, and which exclusion says so.
func excluded(chain []string) (id, why string) {
	if len(chain) > 0 && strings.HasSuffix(chain[0], ".status") {
		return "*.status", exclusionIndex["*.status"]
	}
	for _, field := range chain {
		if why := exclusionIndex[field]; why != "" {
			return field, why
		}
	}
	return "", ""
}

func TestEveryAPIFieldIsALeafOrANamedExclusion(t *testing.T) {
	reached, used, leaves := map[string]bool{}, map[string]bool{}, 0
	for _, k := range kindTable {
		name := k.name()
		obj, ok := apiTypes[name]
		if !ok {
			continue
		}
		sets := seedsOf(&k)
		missed := map[string]bool{}
		gated := map[string]bool{}
		for _, seed := range sets {
			f := &filler{seeds: seed}
			tree := f.object(&k, obj)
			before := digestOf(t, tree)
			for field := range f.seen {
				reached[field] = true
				if strings.HasSuffix(field, ".status") {
					reached["*.status"] = true
				}
			}
			for _, s := range f.scalar {
				if k.pod != nil && s.depthInPod() > walked[name] {
					continue // the same code; once is enough
				}
				after, err := tryDigest(mutated(tree, s.path))
				if err != nil {
					t.Errorf("%s %s: %v", name, s, err)
				}
				id, _ := excluded(s.chain)
				switch {
				case after != before:
					gated[s.String()] = true
				case id != "":
					used[id] = true
				default:
					missed[s.String()] = true
				}
			}
		}
		leaves += len(gated)
		for s := range missed {
			if !gated[s] {
				t.Errorf("%s: %s changes nothing and is no exclusion", name, s)
			}
		}
	}
	for field := range exclusionIndex {
		if !reached[field] {
			t.Errorf("exclusion %s names no field of the API types", field)
		} else if !used[field] {
			t.Errorf("exclusion %s is wrong: every change of it is seen", field)
		}
	}
	t.Logf("%d gated fields, %d exclusions", leaves, len(exclusionIndex))
}

func (p place) String() string { return fmt.Sprint(p.path) + " (" + p.chain[len(p.chain)-1] + ")" }

// ungated are structs that hold gated fields without being gated themselves.
var ungated = map[string]bool{
	"apimachinery/meta/v1.ObjectMeta": true, "core/v1.PodTemplateSpec": true,
	"apps/v1.DeploymentSpec": true, "core/v1.NamespaceSpec": true, "core/v1.Namespace": true,
	"core/v1.EmptyDirVolumeSource": true,
}

func TestAFieldThatTheAPITypesDoNotKnowIsALeafInEveryGatedStruct(t *testing.T) {
	n := 0
	for _, k := range kindTable {
		obj, ok := apiTypes[k.name()]
		if !ok || k.pod != nil && k.kind != "Deployment" || k.kind == "Secret" {
			continue
		}
		f := &filler{seeds: seedsOf(&k)[0]}
		tree := f.object(&k, obj)
		before := digestOf(t, tree)
		for _, s := range f.structs {
			typ := s.chain[len(s.chain)-1]
			if id, _ := excluded(s.chain); id != "" || ungated[typ] || len(s.path) == 0 && f.seen[typ+".spec"] {
				continue
			}
			n++
			unknown := change(tree, s.path, func(v any) any {
				return with(v.(map[string]any), map[string]any{"newerField": "x"})
			})
			if got, err := tryDigest(unknown.(map[string]any)); err == nil && got == before {
				t.Errorf("%s: a new field of %s would be lost", k.name(), s)
			}
		}
	}
	t.Logf("%d structs", n)
}

func TestEveryBuiltInKindHasItsAPITypeInTheMaximalTest(t *testing.T) {
	for _, k := range kindTable {
		_, ok := apiTypes[k.name()]
		// A ControllerRevision holds any object; what counts is a pod spec.
		if !ok && !wholeSpec[k.group] && k.kind != "ControllerRevision" {
			t.Errorf("%s has neither an API type here nor a spec that counts whole", k.name())
		}
	}
}

// walked says how deep a kind's pod spec is walked. What is special about a
// Pod stands in its first level.
var walked = map[string]int{"Deployment.apps": 100, "Pod": 2}

func (p place) depthInPod() int {
	for i, field := range p.chain {
		if strings.HasPrefix(field, "core/v1.PodSpec.") {
			return len(p.chain) - i
		}
	}
	return 0
}

// mutated copies a tree with another value at path.
func mutated(tree map[string]any, path []any) map[string]any {
	return change(tree, path, func(v any) any {
		switch x := v.(type) {
		case bool:
			return !x
		case json.Number:
			return json.Number("8")
		case string:
			return x + "y"
		}
		return v
	}).(map[string]any)
}

// wholeSpec are the groups and kinds without a type in k8s.io/api. Their spec,
// or what of it counts, is taken as it stands.
var wholeSpec = map[string]bool{"source.toolkit.fluxcd.io": true,
	gatewayGroup: true, "argoproj.io": true, "kustomize.toolkit.fluxcd.io": true, "helm.toolkit.fluxcd.io": true,
	"helm.cattle.io": true, "operators.coreos.com": true, "kubernetes.crossplane.io": true, "work.open-cluster-management.io": true,
	"apiregistration.k8s.io": true, "apiextensions.k8s.io": true,
}
