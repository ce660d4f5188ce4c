package projection

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type kindCase struct {
	name, in string
	want     []string
}

func checkKinds(t *testing.T, cases []kindCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if c.want == nil {
				c.want = []string{}
			}
			if diff := cmp.Diff(c.want, leaves(project(t, c.in), false)); diff != "" {
				t.Errorf("leaves (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRBACKinds(t *testing.T) {
	checkKinds(t, []kindCase{
		{"Role: rules in order", `
apiVersion: rbac.authorization.k8s.io/v1beta1
kind: Role
metadata: {labels: {a: b}}
rules: [{apiGroups: [""], resources: [pods], verbs: [get, list]}]`, []string{
			`rbac rules = [{"apiGroups":[""],"resources":["pods"],"verbs":["get","list"]}]`}},
		{"ClusterRole: every label but bookkeeping", `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {labels: {example.com/aggregate: "true", app.kubernetes.io/name: x, app: x, helm.sh/chart: c, kustomize.toolkit.fluxcd.io/name: k, istio.io/rev: r}}
rules: []`, []string{`rbac metadata.labels["example.com/aggregate"] = "true"`}},
		{"ClusterRole: an aggregation rule", `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
aggregationRule: {clusterRoleSelectors: [{matchLabels: {example.com/a: "true"}}]}
rules: []`, []string{`rbac aggregationRule.clusterRoleSelectors = [{"matchLabels":{"example.com/a":"true"}}]`}},
		{"bindings: subjects are a set whose group defaults by kind", `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: r}
subjects: [{kind: User, name: b, apiGroup: rbac.authorization.k8s.io}, {kind: ServiceAccount, name: a, namespace: ns}, {kind: User, name: b}, {kind: Group, name: g, apiGroup: ""}]`, []string{
			`rbac roleRef.kind = "ClusterRole"`, `rbac roleRef.name = "r"`,
			`rbac subjects = [{"apiGroup":"rbac.authorization.k8s.io","kind":"Group","name":"g"},{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"b"},{"kind":"ServiceAccount","name":"a","namespace":"ns"}]`}},
		{"bindings: no subjects", `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, roleRef: {kind: Role, name: r}, subjects: []}`, []string{
			`rbac roleRef.kind = "Role"`, `rbac roleRef.name = "r"`}},
		{"the kind of another group is another kind", `{apiVersion: example.com/v1, kind: Role, rules: [{verbs: [get]}]}`, nil},
	})
}

func TestIdentityKinds(t *testing.T) {
	checkKinds(t, []kindCase{
		{"ServiceAccount", `
apiVersion: v1
kind: ServiceAccount
metadata:
  annotations: {eks.amazonaws.com/role-arn: r, iam.gke.io/gcp-service-account: g, azure.workload.identity/client-id: c, other: o}
automountServiceAccountToken: false
imagePullSecrets: [{name: b}, {name: a}]
secrets: [{name: s}]`, []string{
			`identity automountServiceAccountToken = false`, `identity imagePullSecrets = [{"name":"a"},{"name":"b"}]`,
			`identity metadata.annotations["azure.workload.identity/client-id"] = "c"`, `identity metadata.annotations["eks.amazonaws.com/role-arn"] = "r"`,
			`identity metadata.annotations["iam.gke.io/gcp-service-account"] = "g"`}},
		{"ServiceAccount: automount true is what absence means", `{apiVersion: v1, kind: ServiceAccount, automountServiceAccountToken: true}`, nil},
		{"Secret: contents are never leaves", `{apiVersion: v1, kind: Secret, type: Opaque, data: {a: eA==}, stringData: {b: c}}`, nil},
		{"Secret: a token", `{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {annotations: {kubernetes.io/service-account.name: sa, kubernetes.io/service-account.uid: u}}}`, []string{
			`identity metadata.annotations["kubernetes.io/service-account.name"] = "sa"`, `identity type = "kubernetes.io/service-account-token"`}},
		{"Secret: a bootstrap token", `{apiVersion: v1, kind: Secret, type: bootstrap.kubernetes.io/token, stringData: {token-id: x}}`, []string{`identity type = "bootstrap.kubernetes.io/token"`}},
		{"Secret: a cluster of Argo CD", `{apiVersion: v1, kind: Secret, metadata: {labels: {argocd.argoproj.io/secret-type: cluster}}}`, []string{`identity metadata.labels["argocd.argoproj.io/secret-type"] = "cluster"`}},
		{"CertificateSigningRequest: not what the API server writes", `{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, spec: {signerName: s, request: eA==, groups: [g], username: u, usages: [b, a], expirationSeconds: 3600}}`, []string{
			`identity spec.request = "eA=="`, `identity spec.signerName = "s"`, `identity spec.usages = ["a","b"]`}},
		{"ClusterTrustBundle", `{apiVersion: certificates.k8s.io/v1beta1, kind: ClusterTrustBundle, spec: {signerName: s, trustBundle: PEM}}`, []string{
			`identity spec.signerName = "s"`, `identity spec.trustBundle = "PEM"`}},
		{"CSIDriver", `{apiVersion: storage.k8s.io/v1, kind: CSIDriver, spec: {attachRequired: true, tokenRequests: [{audience: ""}]}}`, []string{`identity spec.tokenRequests = [{}]`}},
	})
}

func TestServices(t *testing.T) {
	checkKinds(t, []kindCase{
		{"one that exposes nothing has a category of its own", `
apiVersion: v1
kind: Service
metadata: {annotations: {any: x}}
spec: {type: ClusterIP, clusterIP: None, selector: {app: x, rollouts-pod-template-hash: h}, ports: [{port: 80, name: http}, {port: 53, protocol: UDP, targetPort: dns}], sessionAffinity: ClientIP}`, []string{
			`service spec.ports["53/UDP"].targetPort = "dns"`, `service spec.ports["80/TCP"].name = "http"`, `service spec.ports["80/TCP"].targetPort = "80"`, `service spec.selector[app] = "x"`}},
		{"a load balancer", `
apiVersion: v1
kind: Service
metadata: {annotations: {any: x, prometheus.io/scrape: "true", service.beta.kubernetes.io/aws-load-balancer-connection-idle-timeout: "60", service.beta.kubernetes.io/load-balancer-source-ranges: 0.0.0.0/0}}
spec: {type: LoadBalancer, selector: {app: x}, ports: [{port: 80, targetPort: 8080, nodePort: 30000}], loadBalancerSourceRanges: [b, a], externalTrafficPolicy: Local, allocateLoadBalancerNodePorts: false}`, []string{
			`network metadata.annotations["service.beta.kubernetes.io/load-balancer-source-ranges"] = "0.0.0.0/0"`, `network metadata.annotations[any] = "x"`,
			`network spec.loadBalancerSourceRanges = ["a","b"]`, `network spec.ports["80/TCP"].targetPort = "8080"`, `network spec.selector[app] = "x"`, `network spec.type = "LoadBalancer"`}},
		{"external addresses expose", `{apiVersion: v1, kind: Service, spec: {externalIPs: [1.2.3.4], ports: [{port: 80}]}}`, []string{
			`network spec.externalIPs = ["1.2.3.4"]`, `network spec.ports["80/TCP"].targetPort = "80"`}},
		{"an external name", `{apiVersion: v1, kind: Service, spec: {type: ExternalName, externalName: evil.example}}`, []string{
			`network spec.externalName = "evil.example"`, `network spec.type = "ExternalName"`}},
		{"annotations that open an internal one", `{apiVersion: v1, kind: Service, metadata: {annotations: {tailscale.com/expose: "true"}}, spec: {ports: [{port: 80}]}}`, []string{
			`network metadata.annotations["tailscale.com/expose"] = "true"`, `service spec.ports["80/TCP"].targetPort = "80"`}},
		{"Endpoints", `{apiVersion: v1, kind: Endpoints, subsets: [{addresses: [{ip: 1.2.3.4}], ports: [{port: 80, protocol: TCP}]}]}`, []string{
			`network subsets = [{"addresses":[{"ip":"1.2.3.4"}],"ports":[{"port":80}]}]`}},
		{"EndpointSlice: where, not how it is doing", `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {labels: {kubernetes.io/service-name: s, other: x}}
addressType: IPv4
endpoints: [{addresses: [1.2.3.4], conditions: {ready: true}, zone: a, nodeName: b}]
ports: [{port: 80, name: "", protocol: TCP}]`, []string{
			`network addressType = "IPv4"`, `network endpoints = [{"addresses":["1.2.3.4"]}]`, `network metadata.labels["kubernetes.io/service-name"] = "s"`, `network ports = [{"port":80}]`}},
	})
}

func TestNetworkPolicies(t *testing.T) {
	policy := func(spec string) string {
		return `{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, spec: {` + spec + `}}`
	}
	checkKinds(t, []kindCase{
		{"no rules: nothing may come in", policy(`podSelector: {}`), []string{`network spec.podSelector = {}`, `network spec.policyTypes = ["Ingress"]`}},
		{"an absent selector selects all pods", policy(``), []string{`network spec.podSelector = {}`, `network spec.policyTypes = ["Ingress"]`}},
		{"an empty list is no rule", policy(`ingress: []`), []string{`network spec.podSelector = {}`, `network spec.policyTypes = ["Ingress"]`}},
		{"one empty rule lets everything in", policy(`ingress: [{}]`), []string{`network spec.ingress = [{}]`, `network spec.podSelector = {}`, `network spec.policyTypes = ["Ingress"]`}},
		{"egress rules make it an egress policy", policy(`egress: [{}]`), []string{`network spec.egress = [{}]`, `network spec.podSelector = {}`, `network spec.policyTypes = ["Egress","Ingress"]`}},
		{"policy types are a set", policy(`policyTypes: [Ingress, Egress, Ingress]`), []string{`network spec.podSelector = {}`, `network spec.policyTypes = ["Egress","Ingress"]`}},
		{"empty selectors of peers are kept, protocols default", policy(`podSelector: {matchLabels: {a: b}}, policyTypes: [Ingress], ingress: [{from: [{namespaceSelector: {}}], ports: [{port: 80, protocol: TCP}]}]`), []string{
			`network spec.ingress = [{"from":[{"namespaceSelector":{}}],"ports":[{"port":"80"}]}]`, `network spec.podSelector.matchLabels[a] = "b"`, `network spec.policyTypes = ["Ingress"]`}},
	})
}

func TestIngressAndGatewayKinds(t *testing.T) {
	checkKinds(t, []kindCase{
		{"Ingress: spec, and every annotation but bookkeeping and tuning", `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {annotations: {kubernetes.io/ingress.class: nginx, nginx.ingress.kubernetes.io/proxy-body-size: 1m, nginx.ingress.kubernetes.io/configuration-snippet: x, ingress.kubernetes.io/backends: b, nginx.ingress.kubernetes.io/canary-weight: "5"}}
spec: {ingressClassName: nginx, tls: [{secretName: s}], defaultBackend: {service: {name: s, port: {number: 80}}}}`, []string{
			`network metadata.annotations["kubernetes.io/ingress.class"] = "nginx"`, `network metadata.annotations["nginx.ingress.kubernetes.io/configuration-snippet"] = "x"`,
			`network spec.defaultBackend.service.name = "s"`, `network spec.defaultBackend.service.port.number = 80`, `network spec.ingressClassName = "nginx"`, `network spec.tls = [{"secretName":"s"}]`}},
		{"Ingress of extensions", `{apiVersion: extensions/v1beta1, kind: Ingress, spec: {backend: {serviceName: s, servicePort: 80}}}`, []string{`network spec.backend = {"serviceName":"s","servicePort":80}`}},
		{"IngressClass", `{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {annotations: {ingressclass.kubernetes.io/is-default-class: "true"}}, spec: {controller: c, parameters: {kind: K, name: p, scope: Cluster}}}`, []string{
			`network metadata.annotations["ingressclass.kubernetes.io/is-default-class"] = "true"`, `network spec.controller = "c"`, `network spec.parameters.kind = "K"`, `network spec.parameters.name = "p"`}},
		{"HTTPRoute without what its CRD fills in, and without weights", `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
spec:
  parentRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: g}]
  rules: [{matches: [{path: {type: PathPrefix, value: /}}], backendRefs: [{group: "", kind: Service, name: s, port: 80, weight: 7}], filters: [{type: RequestMirror, requestMirror: {backendRef: {group: "", kind: Service, name: m}}}]}]`, []string{
			`network spec.parentRefs = [{"name":"g"}]`,
			`network spec.rules = [{"backendRefs":[{"name":"s","port":80}],"filters":[{"requestMirror":{"backendRef":{"name":"m"}},"type":"RequestMirror"}]}]`}},
		{"HTTPRoute: one rule that matches everything is the default", `{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, spec: {hostnames: [h], rules: [{matches: [{path: {}}]}]}}`, []string{`network spec.hostnames = ["h"]`}},
		{"Gateway", `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {annotations: {a: b}}
spec: {gatewayClassName: c, listeners: [{name: l, port: 443, protocol: HTTPS, tls: {mode: Terminate, certificateRefs: [{group: "", kind: Secret, name: s}]}, allowedRoutes: {namespaces: {from: Same}}}]}`, []string{
			`network metadata.annotations[a] = "b"`, `network spec.gatewayClassName = "c"`,
			`network spec.listeners = [{"name":"l","port":443,"protocol":"HTTPS","tls":{"certificateRefs":[{"name":"s"}]}}]`}},
		{"ReferenceGrant", `{apiVersion: gateway.networking.k8s.io/v1beta1, kind: ReferenceGrant, spec: {from: [{group: g, kind: K, namespace: ns}], to: [{group: "", kind: Secret}]}}`, []string{
			`network spec.from = [{"group":"g","kind":"K","namespace":"ns"}]`, `network spec.to = [{"group":"","kind":"Secret"}]`}},
	})
}

func TestStorageAndSchedulingKinds(t *testing.T) {
	checkKinds(t, []kindCase{
		{"PersistentVolume", `
apiVersion: v1
kind: PersistentVolume
spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], persistentVolumeReclaimPolicy: Retain, storageClassName: s, mountOptions: [b, a], claimRef: {namespace: ns, name: c, uid: u}, csi: {driver: d, volumeHandle: h}}`, []string{
			`secret spec.claimRef.name = "c"`, `secret spec.claimRef.namespace = "ns"`, `secret spec.csi.driver = "d"`, `secret spec.csi.volumeHandle = "h"`, `secret spec.mountOptions = ["b","a"]`}},
		{"PersistentVolume on a node", `{apiVersion: v1, kind: PersistentVolume, spec: {hostPath: {path: /}, local: {path: /x}}}`, []string{`privilege spec.hostPath.path = "/"`, `privilege spec.local.path = "/x"`}},
		{"PersistentVolumeClaim", `{apiVersion: v1, kind: PersistentVolumeClaim, spec: {volumeName: v, storageClassName: s, selector: {matchLabels: {a: b}}, resources: {requests: {storage: 1Gi}}}}`, []string{
			`secret spec.selector.matchLabels[a] = "b"`, `secret spec.volumeName = "v"`}},
		{"StorageClass", `{apiVersion: storage.k8s.io/v1, kind: StorageClass, provisioner: p, parameters: {csi.storage.k8s.io/provisioner-secret-name: s}, mountOptions: [o], reclaimPolicy: Delete}`, []string{
			`secret mountOptions = ["o"]`, `secret parameters["csi.storage.k8s.io/provisioner-secret-name"] = "s"`, `secret provisioner = "p"`}},
		{"VolumeAttributesClass", `{apiVersion: storage.k8s.io/v1, kind: VolumeAttributesClass, driverName: d, parameters: {a: b}}`, []string{`secret driverName = "d"`, `secret parameters[a] = "b"`}},
		{"RuntimeClass", `{apiVersion: node.k8s.io/v1, kind: RuntimeClass, handler: h, overhead: {podFixed: {cpu: 1}}}`, []string{`privilege handler = "h"`}},
		{"PriorityClass: the value counts even as 0", `{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, value: 0, globalDefault: true, description: d}`, []string{`privilege globalDefault = true`, `privilege value = 0`}},
		{"ResourceClaim", `{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, spec: {devices: {requests: [{name: r, exactly: {deviceClassName: c, adminAccess: true, allocationMode: ExactCount}}]}}}`, []string{
			`privilege spec.devices.requests = [{"exactly":{"adminAccess":true,"deviceClassName":"c"},"name":"r"}]`}},
		{"DeviceClass", `{apiVersion: resource.k8s.io/v1, kind: DeviceClass, spec: {selectors: [{cel: {expression: e}}]}}`, []string{`privilege spec.selectors = [{"cel":{"expression":"e"}}]`}},
		{"Namespace", `
apiVersion: v1
kind: Namespace
metadata:
  labels: {kubernetes.io/metadata.name: n, pod-security.kubernetes.io/enforce: privileged, pod-security.kubernetes.io/warn: baseline, pod-security.kubernetes.io/audit-version: v1, app.kubernetes.io/part-of: p, app.kubernetes.io/instance: i, kustomize.toolkit.fluxcd.io/name: k, istio-injection: disabled}
  annotations: {scheduler.alpha.kubernetes.io/node-selector: s, openshift.io/sa.scc.uid-range: r, linkerd.io/inject: enabled, other: o}`, []string{
			`privilege metadata.annotations["linkerd.io/inject"] = "enabled"`, `privilege metadata.annotations["openshift.io/sa.scc.uid-range"] = "r"`, `privilege metadata.annotations["scheduler.alpha.kubernetes.io/node-selector"] = "s"`,
			`privilege metadata.labels["app.kubernetes.io/part-of"] = "p"`, `privilege metadata.labels["pod-security.kubernetes.io/enforce"] = "privileged"`, `privilege metadata.labels[istio-injection] = "disabled"`}},
	})
}

func TestAClaimsSourceAndItsAliasAreTheSame(t *testing.T) {
	claim := func(spec string) string {
		return digestOf(t, parse(t, `{apiVersion: v1, kind: PersistentVolumeClaim, spec: {`+spec+`}}`))
	}
	const source = `{apiGroup: snapshot.storage.k8s.io, kind: VolumeSnapshot, name: s}`
	written := claim(`dataSource: ` + source)
	for name, spec := range map[string]string{"as a reference": `dataSourceRef: ` + source, "as stored": `dataSource: ` + source + `, dataSourceRef: ` + source} {
		if got := claim(spec); got != written {
			t.Errorf("%s: digest %s, want %s", name, got, written)
		}
	}
	for name, spec := range map[string]string{
		"none": ``, "another": `dataSource: {kind: VolumeSnapshot, name: t}`,
		"of another namespace": `dataSourceRef: {apiGroup: snapshot.storage.k8s.io, kind: VolumeSnapshot, name: s, namespace: theirs}`,
		"two that differ":      `dataSource: {kind: X, name: s}, dataSourceRef: ` + source,
	} {
		if got := claim(spec); got == written {
			t.Errorf("%s: the same digest", name)
		}
	}
}

func TestAdmissionAndDeliveryKinds(t *testing.T) {
	checkKinds(t, []kindCase{
		{"webhooks without the bundle that rotates, defaults left out", `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
webhooks: [{name: w, failurePolicy: Fail, timeoutSeconds: 10, namespaceSelector: {}, sideEffects: None, clientConfig: {caBundle: eA==, url: u}, rules: [{operations: ["*"], scope: "*"}]}]`, []string{
			`admission webhooks[w].clientConfig.url = "u"`, `admission webhooks[w].rules = [{"operations":["*"]}]`, `admission webhooks[w].sideEffects = "None"`}},
		{"a policy", `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, spec: {failurePolicy: Ignore, validations: [{expression: e}]}}`, []string{
			`admission spec.failurePolicy = "Ignore"`, `admission spec.validations = [{"expression":"e"}]`}},
		{"APIService", `{apiVersion: apiregistration.k8s.io/v1, kind: APIService, spec: {caBundle: eA==, group: g, service: {name: s}}}`, []string{`admission spec.group = "g"`, `admission spec.service.name = "s"`}},
		{"a CRD's conversion", `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {group: g, conversion: {strategy: Webhook, webhook: {clientConfig: {caBundle: eA==, url: u}}}}}`, []string{
			`admission spec.conversion.strategy = "Webhook"`, `admission spec.conversion.webhook.clientConfig.url = "u"`}},
		{"a CRD without conversion", `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {group: g, conversion: {strategy: None}}}`, nil},
		{"an Application without revision, automation and history", `
apiVersion: argoproj.io/v1alpha1
kind: Application
spec: {project: p, destination: {namespace: ns}, source: {repoURL: u, path: x, targetRevision: v1}, syncPolicy: {automated: {prune: true}, syncOptions: [a]}, revisionHistoryLimit: 3}`, []string{
			`delivery spec.destination.namespace = "ns"`, `delivery spec.project = "p"`, `delivery spec.source.path = "x"`, `delivery spec.source.repoURL = "u"`, `delivery spec.syncPolicy.syncOptions = ["a"]`}},
		{"an Application of several sources: only their own revisions", `{apiVersion: argoproj.io/v1alpha1, kind: Application, spec: {sources: [{repoURL: u, targetRevision: v1, helm: {valuesObject: {targetRevision: kept}}}]}}`, []string{
			`delivery spec.sources = [{"helm":{"valuesObject":{"targetRevision":"kept"}},"repoURL":"u"}]`}},
		{"a HelmRelease without version and interval", `{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, spec: {interval: 1m, chart: {spec: {chart: c, version: 1.x, interval: 1m}}, values: {a: {}}}}`, []string{
			`delivery spec.chart.spec.chart = "c"`, `delivery spec.values.a = {}`}},
		{"a Kustomization", `{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, spec: {interval: 1m, suspend: false, path: ./x, prune: true}}`, []string{`delivery spec.path = "./x"`, `delivery spec.prune = true`}},
		{"the Kustomization of the kustomize tool is another kind", `{apiVersion: kustomize.config.k8s.io/v1beta1, kind: Kustomization, resources: [x]}`, nil},
	})
}

func TestAppliesIsAColumnOfTheTable(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []Category
	}{
		{`{apiVersion: v1, kind: Service}`, []Category{Network, Service}},
		{`{apiVersion: v1, kind: PersistentVolume}`, []Category{Privilege, Secret}},
		{`{apiVersion: apps/v1, kind: Deployment}`, podCategories},
		{`{apiVersion: v1, kind: ConfigMap, data: {a: b}}`, nil},
	} {
		p := project(t, c.in)
		if diff := cmp.Diff(c.want, p.Applies()); diff != "" {
			t.Errorf("%s: applies (-want +got):\n%s", c.in, diff)
		}
		if p.Gated() {
			t.Errorf("%s: leaves %q", c.in, leaves(p, true))
		}
	}
}

func TestKindsMatchByGroupInAnyVersion(t *testing.T) {
	for _, c := range []struct {
		group, kind string
		known       bool
	}{
		{"", "Pod", true}, {"apps", "Deployment", true}, {"extensions", "Deployment", true}, {"extensions", "Ingress", true},
		{"networking.k8s.io", "Ingress", true}, {"extensions", "Pod", false}, {"example.com", "Deployment", false}, {"", "ConfigMap", false},
	} {
		if got := Known(c.group, c.kind); got != c.known {
			t.Errorf("Known(%q, %q) = %v, want %v", c.group, c.kind, got, c.known)
		}
	}
	if !ClusterScoped("rbac.authorization.k8s.io", "ClusterRole") || ClusterScoped("apps", "Deployment") {
		t.Error("ClusterScoped mixes ClusterRole and Deployment up")
	}
}

func TestHarmlessValuesOnlyTighten(t *testing.T) {
	for _, c := range []struct {
		name, spec string
		cat        Category
		want       bool
	}{
		{"a hardened container", `containers: [{name: a, image: i, securityContext: {runAsNonRoot: true, allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, privileged: false, capabilities: {drop: [ALL]}, seccompProfile: {type: RuntimeDefault}}}]`, Privilege, true},
		{"a hardened pod", `securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}`, Privilege, true},
		{"no leaf at all", `hostname: x`, Privilege, true},
		{"one added capability", `containers: [{name: a, securityContext: {runAsNonRoot: true, capabilities: {drop: [ALL], add: [NET_ADMIN]}}}]`, Privilege, false},
		{"runAsNonRoot false loosens", `containers: [{name: a, securityContext: {runAsNonRoot: false}}]`, Privilege, false},
		{"another seccomp profile", `securityContext: {seccompProfile: {type: Unconfined}}`, Privilege, false},
		{"a user", `securityContext: {runAsUser: 1000}`, Privilege, false},
		{"a field of the same name elsewhere", `containers: [{name: a, securityContext: {seLinuxOptions: {type: RuntimeDefault}}}]`, Privilege, false},
		{"automount false", `automountServiceAccountToken: false`, Identity, true},
		{"automount true", `automountServiceAccountToken: true`, Identity, false},
		{"an account", "automountServiceAccountToken: false\nserviceAccountName: x", Identity, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := project(t, deployment(c.spec))
			if got := p.Harmless(c.cat); got != c.want {
				t.Errorf("Harmless(%s) = %v, want %v, leaves %q", c.cat, got, c.want, leaves(p, true))
			}
		})
	}
}

func TestARepositoryIsTheReferenceWithoutTagAndDigest(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "nginx": "nginx", "nginx:1": "nginx", "nginx@sha256:0": "nginx", "r.io/a/b:1@sha256:0": "r.io/a/b",
		"localhost:5000/a": "localhost:5000/a", "localhost:5000/a:1": "localhost:5000/a", "a:1:2": "a:1",
	} {
		if got := Repository(in); got != want {
			t.Errorf("Repository(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestTheTableNamesOnlyFieldsThatExist(t *testing.T) {
	for typ, rows := range map[string][]row{"core/v1.PodSpec": podRows, "core/v1.Volume": volumeRows} {
		for _, r := range rows {
			if shapes[typ].fields[strings.TrimSuffix(r.path, "[]")] == nil {
				t.Errorf("row %s names no field of %s", r.path, typ)
			}
		}
	}
	for _, r := range containerRows {
		if shapes["core/v1.Container"].fields[r.path] == nil && shapes["core/v1.EphemeralContainer"].fields[r.path] == nil {
			t.Errorf("row %s names no field of a container", r.path)
		}
	}
	for name := range sets {
		i := strings.LastIndexByte(name, '.')
		if s := shapes[name[:i]]; s == nil || s.fields[name[i+1:]] == nil {
			t.Errorf("set %s names no field", name)
		}
	}
}
