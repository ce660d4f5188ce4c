package projection

import (
	"encoding/json"
)

var serviceFields = shapes["core/v1.ServiceSpec"].fields

// serviceKind: a Service that exposes something outside the cluster is
// network; one that does not is service, a category that policy does not
// require by default.
func serviceKind(w *walker, obj map[string]any) {
	spec := w.object(obj, "spec")
	if spec == nil {
		return
	}
	typ, _ := spec["type"].(string)
	ips, _ := spec["externalIPs"].([]any)
	if v := spec["type"]; v != nil && typ == "" && v != "" {
		w.wrongType("spec.type", "a string", v)
	}
	switch {
	case typ != "" && typ != "ClusterIP", len(ips) > 0, spec["externalIPs"] != nil && ips == nil:
		for _, f := range []string{"type", "externalIPs", "loadBalancerIP", "loadBalancerClass", "loadBalancerSourceRanges", "externalName"} {
			w.take(Network, "spec."+f, serviceFields[f], spec[f])
		}
		w.selectorAndPorts(Network, spec)
		w.annotations(Network, obj, exposureAnnotation)
	default:
		w.selectorAndPorts(Service, spec)
		for _, k := range exposingAnnotations {
			w.annotations(Network, obj, func(a string) bool { return a == k })
		}
	}
}

// exposingAnnotations open a Service that looks internal.
var exposingAnnotations = []string{
	"tailscale.com/expose", "tailscale.com/funnel", "service.cilium.io/global", "io.cilium/global-service",
}

func (w *walker) selectorAndPorts(c Category, spec map[string]any) {
	if sel, ok := spec["selector"].(map[string]any); ok {
		for k, v := range sel {
			if k != "rollouts-pod-template-hash" { // Argo Rollouts moves it with each step
				w.take(c, "spec.selector"+key(k), &member{shape: plainString.shape, pointer: true}, v)
			}
		}
	} else if spec["selector"] != nil {
		w.wrongType("spec.selector", "an object", spec["selector"])
	}
	ports, ok := spec["ports"].([]any)
	if !ok && spec["ports"] != nil {
		w.wrongType("spec.ports", "a list", spec["ports"])
	}
	s := serviceFields["ports"].shape
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
		if t, isNum := target.(json.Number); target == nil || target == "" || isNum && t == "0" {
			target = p["port"] // SetDefaults_Service
		}
		w.take(c, "spec.ports"+k+".targetPort", s.elem.fields["targetPort"], target)
	}
}

// annotations adds the object's annotations that counts tells.
func (w *walker) annotations(c Category, obj map[string]any, counts func(string) bool) {
	for k, v := range w.object(obj, "metadata.annotations") {
		if counts(k) {
			w.take(c, "metadata.annotations"+key(k), &member{shape: plainString.shape, pointer: true}, v)
		}
	}
}

func ingress(w *walker, obj map[string]any) {
	w.take(Network, "spec", &member{shape: shapes["networking/v1.IngressSpec"]}, obj["spec"])
	w.annotations(Network, obj, exposureAnnotation)
}

func ingressClass(w *walker, obj map[string]any) {
	w.take(Network, "spec", &member{shape: shapes["networking/v1.IngressClassSpec"]}, obj["spec"])
	w.annotations(Network, obj, exposureAnnotation)
}

// networkPolicy: podSelector {} (all pods) is what an absent one means;
// policyTypes default as in k8s.io/kubernetes pkg/apis/networking/v1,
// SetDefaults_NetworkPolicy: Ingress, and Egress where there are egress rules.
func networkPolicy(w *walker, obj map[string]any) {
	spec := w.object(obj, "spec")
	fields := shapes["networking/v1.NetworkPolicySpec"].fields
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
	for k, v := range spec {
		if fields[k] == nil {
			w.take(Network, "spec."+fieldName(k), anyMember, v)
		}
	}
}

func endpoints(w *walker, obj map[string]any) {
	w.take(Network, "subsets", shapes["core/v1.Endpoints"].fields["subsets"], obj["subsets"])
}

// endpointSlice: where traffic goes, not how it is doing.
func endpointSlice(w *walker, obj map[string]any) {
	fields := shapes["discovery/v1.EndpointSlice"].fields
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
		out = append(out, map[string]any{"addresses": e["addresses"]})
	}
	w.take(Network, "endpoints", fields["endpoints"], out)
	w.take(Network, `metadata.labels["kubernetes.io/service-name"]`, plainString, w.object(obj, "metadata.labels")["kubernetes.io/service-name"])
}
