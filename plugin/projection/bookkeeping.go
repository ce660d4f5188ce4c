package projection

import "strings"

// bookkeeping are labels and annotations that tools keep their own records in,
// wherever every name counts. A force annotation is not gated here: see
// docs/spec/policy.md, ForceNotAllowed.
var bookkeeping = nameSet(
	"argocd.argoproj.io/*", "helm.sh/*", "meta.helm.sh/*", "kustomize.toolkit.fluxcd.io/*",
	"helm.toolkit.fluxcd.io/*", "syncgate.io/*", "prometheus.io/*", "field.cattle.io/*",
	"kubectl.kubernetes.io/*", "deployment.kubernetes.io/*", "config.kubernetes.io/*", "internal.config.kubernetes.io/*",
	"metallb.io/ip-allocated*", "metallb.universe.tf/ip-allocated*",
	"*-status", "*/status",
	"ingress.kubernetes.io/backends", "ingress.kubernetes.io/forwarding-rule",
	"ingress.kubernetes.io/https-forwarding-rule", "ingress.kubernetes.io/https-target-proxy",
	"ingress.kubernetes.io/ssl-cert", "ingress.kubernetes.io/static-ip",
	"ingress.kubernetes.io/target-proxy", "ingress.kubernetes.io/url-map",
	"nginx.ingress.kubernetes.io/canary-weight", "nginx.ingress.kubernetes.io/canary-weight-total",
)

// templateRecords are bookkeeping among the names of pod templates that count.
// By name, for others may choose the end of a name there: a container of the
// AppArmor profile or a secret of Vault is called "x-status" if they like.
var templateRecords = nameSet(
	"k8s.v1.cni.cncf.io/network-status", "k8s.v1.cni.cncf.io/networks-status",
	"sidecar.istio.io/status", "vault.hashicorp.com/agent-inject-status",
)

// clusterRoleLabels are further labels of a ClusterRole that only describe
// it. Any other label may be what an aggregationRule selects.
var clusterRoleLabels = nameSet("app", "k8s-app", "release", "chart", "heritage", "kubernetes.io/bootstrapping", "istio.io/rev",
	"install.operator.istio.io/owning-resource", "operator.istio.io/component", "component", "app.kubernetes.io/*")

// tuning are annotations of Ingresses and Services that change how traffic
// is served but not who can reach what.
var tuning = nameSet(
	"nginx.ingress.kubernetes.io/proxy-body-size", "nginx.ingress.kubernetes.io/proxy-buffer-size",
	"nginx.ingress.kubernetes.io/proxy-buffers-number", "nginx.ingress.kubernetes.io/proxy-buffering",
	"nginx.ingress.kubernetes.io/proxy-max-temp-file-size", "nginx.ingress.kubernetes.io/client-body-buffer-size",
	"nginx.ingress.kubernetes.io/proxy-connect-timeout", "nginx.ingress.kubernetes.io/proxy-read-timeout",
	"nginx.ingress.kubernetes.io/proxy-send-timeout", "nginx.ingress.kubernetes.io/affinity",
	"nginx.ingress.kubernetes.io/affinity-mode", "nginx.ingress.kubernetes.io/session-cookie-name",
	"nginx.ingress.kubernetes.io/session-cookie-path", "nginx.ingress.kubernetes.io/session-cookie-expires",
	"nginx.ingress.kubernetes.io/session-cookie-max-age", "nginx.ingress.kubernetes.io/session-cookie-samesite",
	"alb.ingress.kubernetes.io/healthcheck-path", "alb.ingress.kubernetes.io/healthcheck-port",
	"alb.ingress.kubernetes.io/healthcheck-protocol", "alb.ingress.kubernetes.io/healthcheck-interval-seconds",
	"alb.ingress.kubernetes.io/healthcheck-timeout-seconds", "alb.ingress.kubernetes.io/healthy-threshold-count",
	"alb.ingress.kubernetes.io/unhealthy-threshold-count",
	"service.beta.kubernetes.io/aws-load-balancer-connection-idle-timeout",
	"service.beta.kubernetes.io/aws-load-balancer-cross-zone-load-balancing-enabled",
	"service.beta.kubernetes.io/aws-load-balancer-healthcheck-path",
	"service.beta.kubernetes.io/aws-load-balancer-healthcheck-port",
	"service.beta.kubernetes.io/aws-load-balancer-healthcheck-protocol",
	"service.beta.kubernetes.io/aws-load-balancer-healthcheck-interval",
	"service.beta.kubernetes.io/aws-load-balancer-healthcheck-timeout",
	"service.beta.kubernetes.io/aws-load-balancer-healthcheck-healthy-threshold",
	"service.beta.kubernetes.io/aws-load-balancer-healthcheck-unhealthy-threshold",
	"service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout",
	"service.beta.kubernetes.io/azure-load-balancer-health-probe-request-path",
)

// exposureAnnotations are those of an Ingress, Service or Gateway that count.
var exposureAnnotations = &metaRule{except: []*names{bookkeeping}, mayTune: true}

// mereSetting reports whether the value of a tuning annotation holds nothing
// but what a setting needs: controllers copy such values into their
// configuration.
func mereSetting(v any) bool {
	s, ok := v.(string)
	return ok && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(" ._:/-", r)
	})
}

// mereSettingPattern is mereSetting as CEL has it.
const mereSettingPattern = "^[a-zA-Z0-9 ._:/-]*$"
