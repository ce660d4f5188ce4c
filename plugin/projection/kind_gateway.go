package projection

import "encoding/json"

// gateway: a route's filters can mirror traffic and a Gateway's annotations
// reach the load balancer, so the whole spec counts. Only how traffic is
// divided among backends that are named anyway does not.
func gateway(w *walker, obj map[string]any) {
	kind, _ := obj["kind"].(string)
	w.takeAny(Network, "spec", withoutGatewayDefaults(kind, "spec", obj["spec"]), nil)
	w.annotations(Network, obj, exposureAnnotations)
}

// gatewayWeight says how traffic is divided, not among whom.
const gatewayWeight = "spec.rules[].backendRefs[].weight"

// gatewayDefaults are what the CRDs of Gateway API v1.4 fill in. Filters of a
// backend default like filters of a rule.
var gatewayDefaults = map[string]any{
	"spec.addresses[].type":                                     "IPAddress",
	"spec.allowedListeners.namespaces.from":                     "None",
	"spec.allowedListeners.namespaces":                          emptyObject,
	"spec.listeners[].allowedRoutes":                            emptyObject,
	"spec.listeners[].allowedRoutes.kinds[].group":              gatewayGroup,
	"spec.listeners[].allowedRoutes.namespaces":                 emptyObject,
	"spec.listeners[].allowedRoutes.namespaces.from":            "Same",
	"spec.listeners[].tls.certificateRefs[].group":              "",
	"spec.listeners[].tls.certificateRefs[].kind":               "Secret",
	"spec.listeners[].tls.mode":                                 "Terminate",
	"spec.parentRef.group":                                      gatewayGroup,
	"spec.parentRef.kind":                                       "Gateway",
	"spec.parentRefs[].group":                                   gatewayGroup,
	"spec.parentRefs[].kind":                                    "Gateway",
	"spec.rules[].backendRefs[].group":                          "",
	"spec.rules[].backendRefs[].kind":                           "Service",
	"spec.rules[].filters[].cors.maxAge":                        json.Number("5"),
	"spec.rules[].filters[].externalAuth.backendRef.group":      "",
	"spec.rules[].filters[].externalAuth.backendRef.kind":       "Service",
	"spec.rules[].filters[].requestMirror.backendRef.group":     "",
	"spec.rules[].filters[].requestMirror.backendRef.kind":      "Service",
	"spec.rules[].filters[].requestMirror.fraction.denominator": json.Number("100"),
	"spec.rules[].filters[].requestRedirect.statusCode":         json.Number("302"),
	"spec.rules[].matches[].headers[].type":                     "Exact",
	"spec.rules[].matches[].method.type":                        "Exact",
	"spec.rules[].matches[].path":                               emptyObject,
	"spec.rules[].matches[].path.type":                          "PathPrefix",
	"spec.rules[].matches[].path.value":                         "/",
	"spec.rules[].matches[].queryParams[].type":                 "Exact",
	"spec.rules[].sessionPersistence.cookieConfig.lifetimeType": "Session",
	"spec.rules[].sessionPersistence.type":                      "Cookie",
	"spec.tls.backend.clientCertificateRef.group":               "",
	"spec.tls.backend.clientCertificateRef.kind":                "Secret",
	"spec.tls.frontend.default.validation.mode":                 "AllowValidOnly",
	"spec.tls.frontend.perPort[].tls.validation.mode":           "AllowValidOnly",
}

// withoutGatewayDefaults copies a tree without weights and without members
// that say what an absent one means. Of an HTTPRoute also one rule, or one match, that matches
// everything is such a default.
func withoutGatewayDefaults(kind, path string, v any) any {
	switch t := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(t))
		for k, x := range t {
			at := path + "." + fieldName(k)
			switch at {
			case gatewayWeight:
				continue
			case "spec.rules[].backendRefs[].filters":
				at = "spec.rules[].filters"
			}
			if x = withoutGatewayDefaults(kind, at, x); !gatewayDefault(kind, at, x) {
				out[k] = x
			}
		}
		return out
	case []any:
		out := make([]any, 0, len(t))
		for _, x := range t {
			out = append(out, withoutGatewayDefaults(kind, path+"[]", x))
		}
		return out
	}
	return v
}

func gatewayDefault(kind, path string, v any) bool {
	switch t := v.(type) {
	case map[string]any:
		return len(t) == 0 && gatewayDefaults[path] == emptyObject
	case []any:
		if kind != "HTTPRoute" || path != "spec.rules" && path != "spec.rules[].matches" || len(t) != 1 {
			return false
		}
		item, ok := t[0].(map[string]any)
		return ok && len(item) == 0
	case string, json.Number:
		def, ok := gatewayDefaults[path]
		return ok && def == v && def != emptyObject
	}
	return false
}
