package projection

import "encoding/json"

var serviceShape = shapes["core/v1.ServiceSpec"]

// serviceKind: a Service that exposes something outside the cluster is
// network; one that does not is service, a category that policy does not
// require by default.
func serviceKind(w *walker, obj map[string]any) {
	spec := w.object(obj, "spec")
	if spec == nil {
		return
	}
	exposed := exposes(spec)
	c := Service
	if exposed {
		c = Network
		for _, f := range exposureFields {
			w.take(c, "spec."+f, serviceShape.fields[f], spec[f])
		}
		w.annotations(c, obj, exposureAnnotations)
	} else {
		w.annotations(Network, obj, exposingAnnotations)
	}
	w.selector(c, spec["selector"])
	w.servicePorts(c, spec["ports"])
	w.unknown(c, "spec", serviceShape, spec)
}

var exposureFields = []string{"type", "externalIPs", "loadBalancerIP", "loadBalancerClass", "loadBalancerSourceRanges", "externalName"}

// exposes reports whether a Service opens something to outside the cluster.
// Values of the wrong type count, so that taking them finds the fault.
func exposes(spec map[string]any) bool {
	switch spec["type"] {
	case nil, "", "ClusterIP":
	default:
		return true
	}
	ips, isList := spec["externalIPs"].([]any)
	return len(ips) > 0 || spec["externalIPs"] != nil && !isList
}

// exposingAnnotations open a Service that looks internal.
var exposingAnnotations = &metaRule{names: nameSet(
	"tailscale.com/expose", "tailscale.com/funnel", "service.cilium.io/global", "io.cilium/global-service",
	"getambassador.io/config", "skupper.io/*",
)}

// rolloutsHash is a key of the selector that Argo Rollouts moves with each step.
const rolloutsHash = "rollouts-pod-template-hash"

func (w *walker) selector(c Category, v any) {
	sel, ok := v.(map[string]any)
	if !ok && v != nil {
		w.wrongType("spec.selector", "an object", v)
	}
	for k, v := range sel {
		if k != rolloutsHash {
			w.entry(c, "spec.selector"+key(k), v)
		}
	}
}

func (w *walker) servicePorts(c Category, v any) {
	ports, ok := v.([]any)
	if !ok && v != nil {
		w.wrongType("spec.ports", "a list", v)
	}
	s := serviceShape.fields["ports"].shape
	for i, x := range ports {
		p, ok := x.(map[string]any)
		if !ok {
			w.wrongType(index("spec.ports", i), "an object", x)
			continue
		}
		k, ok := w.itemKey("spec.ports", i, s, p)
		if !ok {
			continue
		}
		target := p["targetPort"]
		if target == nil || target == "" || target == json.Number("0") {
			target = p["port"] // SetDefaults_Service
		}
		w.take(c, "spec.ports"+k+".targetPort", s.elem.fields["targetPort"], target)
		w.take(c, "spec.ports"+k+".name", s.elem.fields["name"], p["name"])
		w.unknown(c, "spec.ports"+k, s.elem, p)
	}
}

// annotations adds the object's annotations that count.
func (w *walker) annotations(c Category, obj map[string]any, rule *metaRule) {
	for k, v := range w.object(obj, "metadata.annotations") {
		if rule.counts(k, v) {
			w.entry(c, "metadata.annotations"+key(k), v)
		}
	}
}

func ingress(w *walker, obj map[string]any) {
	w.take(Network, "spec", &member{shape: shapes["networking/v1.IngressSpec"]}, obj["spec"])
	w.annotations(Network, obj, exposureAnnotations)
}

func ingressClass(w *walker, obj map[string]any) {
	w.take(Network, "spec", &member{shape: shapes["networking/v1.IngressClassSpec"]}, obj["spec"])
	w.annotations(Network, obj, exposureAnnotations)
}

var networkPolicyShape = shapes["networking/v1.NetworkPolicySpec"]

// networkPolicy: podSelector {} (all pods) is what an absent one means;
// policyTypes default as in k8s.io/kubernetes pkg/apis/networking/v1,
// SetDefaults_NetworkPolicy: Ingress, and Egress where there are egress rules.
func networkPolicy(w *walker, obj map[string]any) {
	spec := w.object(obj, "spec")
	fields := networkPolicyShape.fields
	sel := *fields["podSelector"]
	sel.pointer = true
	v := spec["podSelector"]
	if v == nil {
		v = map[string]any{}
	}
	w.take(Network, "spec.podSelector", &sel, v)
	w.take(Network, "spec.ingress", fields["ingress"], spec["ingress"])
	w.take(Network, "spec.egress", fields["egress"], spec["egress"])
	types := spec["policyTypes"]
	if list, ok := types.([]any); types == nil || ok && len(list) == 0 {
		def := []any{"Ingress"}
		if egress, _ := spec["egress"].([]any); len(egress) > 0 {
			def = append(def, "Egress")
		}
		types = def
	}
	w.take(Network, "spec.policyTypes", fields["policyTypes"], types)
	w.unknown(Network, "spec", networkPolicyShape, spec)
}

func endpoints(w *walker, obj map[string]any) {
	w.unknownTop(Network, shapes["core/v1.Endpoints"], obj)
	w.take(Network, "subsets", shapes["core/v1.Endpoints"].fields["subsets"], obj["subsets"])
}

var (
	sliceShape = shapes["discovery/v1.EndpointSlice"]
	endpoint   = shapes["discovery/v1.Endpoint"]
)

// serviceLabel ties an EndpointSlice to its Service.
const serviceLabel = "kubernetes.io/service-name"

var sliceService = &metaRule{names: nameSet(serviceLabel)}

// endpointSlice: where traffic goes, not how it is doing.
func endpointSlice(w *walker, obj map[string]any) {
	fields := sliceShape.fields
	w.unknownTop(Network, sliceShape, obj)
	w.take(Network, "addressType", fields["addressType"], obj["addressType"])
	w.take(Network, "ports", fields["ports"], obj["ports"])
	list, ok := obj["endpoints"].([]any)
	if !ok && obj["endpoints"] != nil {
		w.wrongType("endpoints", "a list", obj["endpoints"])
	}
	out := make([]any, 0, len(list))
	for i, x := range list {
		e, ok := x.(map[string]any)
		if !ok {
			w.wrongType(index("endpoints", i), "an object", x)
			continue
		}
		kept := map[string]any{"addresses": e["addresses"]}
		for k, v := range e {
			if endpoint.fields[k] == nil {
				kept[k] = v
			}
		}
		out = append(out, kept)
	}
	w.take(Network, "endpoints", fields["endpoints"], out)
	w.take(Network, "metadata.labels"+key(serviceLabel), plainString, w.object(obj, "metadata.labels")[serviceLabel])
}
