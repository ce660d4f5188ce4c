package app_test

import (
	"strings"
	"testing"

	"github.com/syncgate/syncgate/plugin/gate"
)

// edit is an attack on signed objects: what was signed, and what it becomes.
type edit struct{ name, before, after string }

// refuses signs what was before, and wants every edit refused for a digest
// that does not match.
func refuses(t *testing.T, edits []edit) {
	t.Helper()
	for _, e := range edits {
		t.Run(e.name, func(t *testing.T) {
			if e.before == e.after {
				t.Fatal("nothing is edited")
			}
			s := newSite(t, "categories: [{name: service}]\n")
			s.write("all.yaml", e.before)
			s.signed("release")
			s.allowed()
			s.write("all.yaml", e.after)
			s.refused(gate.DigestMismatch)
		})
	}
}

// template is the Deployment with template metadata.
func template(metadata string) string {
	return strings.Replace(web("", ""), "template: {", "template: {metadata: {"+metadata+"}, ", 1)
}

func TestRedTeamF12PodSpecsWithoutNamesOrImagesAreFound(t *testing.T) {
	old, evil := webImage("1.5", "a"), webImage("1.5", "e")
	for _, tc := range []struct{ name, manifest string }{
		{"Knative, whose container has no name", object("serving.knative.dev/v1", "Service", "name: web, namespace: shop", `spec: {template: {spec: {containers: [{image: "`+old+`"}]}}}`)},
		{"a workflow's container", object("argoproj.io/v1alpha1", "Workflow", "name: web, namespace: shop", `spec: {entrypoint: a, templates: [{name: a, container: {image: "`+old+`"}}]}`)},
		{"a workflow's script", object("argoproj.io/v1alpha1", "CronWorkflow", "name: web, namespace: shop", `spec: {workflowSpec: {templates: [{name: a, script: {image: "`+old+`", source: x}}]}}`)},
		{"a task's step", object("tekton.dev/v1", "Task", "name: web, namespace: shop", `spec: {steps: [{name: a, image: "`+old+`"}]}`)},
	} {
		refuses(t, []edit{{tc.name, tc.manifest, strings.Replace(tc.manifest, old, evil, 1)}})
	}
	// Privilege without an image: ECK's podTemplate.
	s := newSite(t, "")
	s.write("all.yaml", object("elasticsearch.k8s.elastic.co/v1", "Elasticsearch", "name: es, namespace: shop", "spec: {nodeSets: [{name: default, podTemplate: {spec: {initContainers: [{name: sysctl, securityContext: {privileged: true}}]}}}]}"))
	s.refused(gate.ReceiptMissing, "privilege (", "initContainers[sysctl].securityContext.privileged")
}

func TestRedTeamF13WebhooksAreLeavesAndTheirCABundleIsNot(t *testing.T) {
	hook := func(rest string) string {
		return object("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "name: m",
			"webhooks: [{name: a.example.com, sideEffects: None, admissionReviewVersions: [v1], "+rest+"}]")
	}
	const to, ca = "clientConfig: {service: {name: a, namespace: b}}", "clientConfig: {service: {name: a, namespace: b}, caBundle: QQ==}"
	s := newSite(t, "")
	s.write("all.yaml", hook(to))
	s.refused(gate.ReceiptMissing, "admission")
	s.signed("release")
	s.allowed()
	s.write("all.yaml", hook(ca)) // certificate rotation at night
	s.allowed()
	s.write("all.yaml", hook(to+", failurePolicy: Fail, matchPolicy: Equivalent, timeoutSeconds: 10, namespaceSelector: {}, objectSelector: {}")) // as stored
	s.allowed()
	s.write("all.yaml", hook(to+", failurePolicy: Ignore"))
	s.refused(gate.DigestMismatch, "webhooks")
	s.write("all.yaml", hook("clientConfig: {url: 'https://evil.example'}"))
	s.refused(gate.DigestMismatch, "webhooks")
}

func TestRedTeamF17WhatStandsBehindAnIngressIsGated(t *testing.T) {
	service := func(spec string) string {
		return object("v1", "Service", "name: web, namespace: shop", "spec: {"+spec+"ports: [{port: 80}]}")
	}
	slice := func(address string) string {
		return object("discovery.k8s.io/v1", "EndpointSlice", "name: web-1, namespace: shop, labels: {kubernetes.io/service-name: web}", "addressType: IPv4, endpoints: [{addresses: ['"+address+"']}], ports: [{port: 80}]")
	}
	refuses(t, []edit{
		{"the selector of a cluster-internal Service", service("selector: {app: web}, "), service("selector: {app: payments}, ")},
		{"the port it leads to", service("selector: {app: web}, "), strings.Replace(service("selector: {app: web}, "), "port: 80", "port: 80, targetPort: 9000", 1)},
		{"an address of another workload", slice("10.0.0.1"), slice("10.9.9.9")},
	})
	s := newSite(t, "") // Services that expose nothing are not required by default, slices are
	s.write("all.yaml", service("selector: {app: payments}, ")+slice("10.9.9.9"))
	s.refused(gate.ReceiptMissing, "1 of 1 gated objects: EndpointSlice shop/web-1")
}

func TestRedTeamF27PodFieldsThatMatterAreLeaves(t *testing.T) {
	volume := func(source string) string {
		return web("volumes: [{name: v, "+source+"}]", "volumeMounts: [{name: v, mountPath: /v}]")
	}
	mount := func(rest string) string {
		return web("volumes: [{name: v, hostPath: {path: /var/log}}]", "volumeMounts: [{name: v, mountPath: /v"+rest+"}]")
	}
	sa := func(rest string) string {
		return volume("projected: {sources: [{serviceAccountToken: {path: token" + rest + "}}]}")
	}
	refuses(t, []edit{
		{"another team's claim", volume("persistentVolumeClaim: {claimName: mine}"), volume("persistentVolumeClaim: {claimName: theirs}")},
		{"a claim template that clones", volume("ephemeral: {volumeClaimTemplate: {spec: {resources: {}}}}, emptyDir: null"), volume("ephemeral: {volumeClaimTemplate: {spec: {resources: {}, dataSource: {kind: PersistentVolumeClaim, name: theirs}}}}")},
		{"an NFS server", volume("nfs: {server: a, path: /}"), volume("nfs: {server: b, path: /}")},
		{"a CSI attribute", volume("csi: {driver: d, volumeAttributes: {secretNamespace: mine}}"), volume("csi: {driver: d, volumeAttributes: {secretNamespace: theirs}}")},
		{"a Git repository", volume("emptyDir: {}"), volume("gitRepo: {repository: 'https://evil.example/x'}")},
		{"a Secret's items", volume("secret: {secretName: s, items: [{key: k, path: p}]}"), volume("secret: {secretName: s, items: [{key: other, path: p}]}")},
		{"dropping a subPath of a host path", mount(", subPath: app"), mount("")},
		{"an expression in a subPath", mount(", subPathExpr: $(POD)"), mount(", subPathExpr: $(HOME)")},
		{"mount propagation", mount(""), mount(", mountPropagation: Bidirectional")},
		{"a token for somebody else", sa(", audience: vault"), sa(", audience: aws")},
		{"a pod certificate", volume("projected: {sources: [{podCertificate: {signerName: a.example/x, keyType: ED25519}}]}"), volume("projected: {sources: [{podCertificate: {signerName: b.example/x, keyType: ED25519}}]}")},
		{"a device", web("", ""), web("resourceClaims: [{name: gpu, resourceClaimName: admin}]", "resources: {claims: [{name: gpu}]}")},
		{"a block device", web("", "resources: {}"), web("", "volumeDevices: [{name: v, devicePath: /dev/sda}]")},
		{"a node of its own", web("", ""), web("nodeName: control-plane-1", "")},
		{"a control-plane toleration", web("", ""), web("tolerations: [{key: node-role.kubernetes.io/control-plane, operator: Exists}]", "")},
		{"a system priority", web("", ""), web("priorityClassName: system-node-critical", "")},
		{"another scheduler", web("", ""), web("schedulerName: mine", "")},
		{"host names", web("", ""), web("hostAliases: [{ip: 10.9.9.9, hostnames: [db]}]", "")},
		{"a name server", web("", ""), web("dnsPolicy: None, dnsConfig: {nameservers: [10.9.9.9]}", "")},
		{"a probe of another host", web("", "livenessProbe: {httpGet: {port: 80}}"), web("", "livenessProbe: {httpGet: {port: 80, host: metadata.internal}}")},
		{"injected secrets", template("labels: {a: b}"), template("annotations: {vault.hashicorp.com/agent-inject: 'true'}")},
		{"an injected cloud identity", template("labels: {a: b}"), template("annotations: {iam.amazonaws.com/role: admin}")},
		{"an extra network", template("labels: {a: b}"), template("annotations: {k8s.v1.cni.cncf.io/networks: other}")},
		{"a way past the mesh", template("labels: {a: b}"), template("annotations: {traffic.sidecar.istio.io/excludeOutboundPorts: '443'}")},
		{"a runtime annotation", template("labels: {a: b}"), template("annotations: {io.kubernetes.cri-o.Devices: /dev/kvm}")},
		{"a workload identity label", template("labels: {a: b}"), template("labels: {azure.workload.identity/use: 'true'}")},
	})
}

func TestRedTeamF28KindsThatMatterAreGated(t *testing.T) {
	const name = "name: x, namespace: shop"
	for _, tc := range []struct{ kind, apiVersion, rest string }{
		{"PersistentVolumeClaim", "v1", "spec: {volumeName: theirs}"},
		{"PersistentVolume", "v1", "spec: {csi: {driver: d, volumeHandle: theirs}}"},
		{"StorageClass", "storage.k8s.io/v1", "provisioner: p, parameters: {csi.storage.k8s.io/node-stage-secret-name: s}"},
		{"VolumeAttributesClass", "storage.k8s.io/v1", "driverName: d, parameters: {a: b}"},
		{"CSIDriver", "storage.k8s.io/v1", "spec: {tokenRequests: [{audience: vault}]}"},
		{"RuntimeClass", "node.k8s.io/v1", "handler: runc-unconfined"},
		{"PriorityClass", "scheduling.k8s.io/v1", "value: 1000000000"},
		{"ResourceClaim", "resource.k8s.io/v1", "spec: {devices: {requests: [{name: a, exactly: {deviceClassName: d, adminAccess: true}}]}}"},
		{"ResourceClaimTemplate", "resource.k8s.io/v1", "spec: {spec: {devices: {requests: [{name: a}]}}}"},
		{"DeviceClass", "resource.k8s.io/v1", "spec: {selectors: [{cel: {expression: 'true'}}]}"},
		{"EndpointSlice", "discovery.k8s.io/v1", "endpoints: [{addresses: ['10.0.0.1']}]"},
		{"Endpoints", "v1", "subsets: [{addresses: [{ip: 10.0.0.1}]}]"},
		{"CertificateSigningRequest", "certificates.k8s.io/v1", "spec: {signerName: kubernetes.io/kube-apiserver-client, request: QQ==, usages: [client auth]}"},
		{"ClusterTrustBundle", "certificates.k8s.io/v1beta1", "spec: {trustBundle: x}"},
		{"Secret", "v1", "type: bootstrap.kubernetes.io/token"},
		{"Secret", "v1", "type: kubernetes.io/service-account-token, metadata: {name: x, namespace: shop, annotations: {kubernetes.io/service-account.name: admin}}"},
		{"GatewayClass", "gateway.networking.k8s.io/v1", "spec: {controllerName: a.example/b}"},
		{"Gateway", "gateway.networking.k8s.io/v1", "spec: {gatewayClassName: c, infrastructure: {annotations: {a: b}}}"},
		{"HTTPRoute", "gateway.networking.k8s.io/v1", "spec: {rules: [{filters: [{type: RequestMirror, requestMirror: {backendRef: {name: spy}}}]}]}"},
		{"ReferenceGrant", "gateway.networking.k8s.io/v1beta1", "spec: {to: [{group: '', kind: Secret}]}"},
		{"BackendTLSPolicy", "gateway.networking.k8s.io/v1", "spec: {validation: {hostname: a}}"},
	} {
		t.Run(tc.kind, func(t *testing.T) {
			s := newSite(t, "")
			manifest := object(tc.apiVersion, tc.kind, name, tc.rest)
			if strings.Contains(tc.rest, "metadata: {") { // its own
				manifest = "{apiVersion: " + tc.apiVersion + ", kind: " + tc.kind + ", " + tc.rest + "}\n"
			}
			s.write("all.yaml", manifest)
			s.refused(gate.ReceiptMissing, tc.kind)
		})
	}
	t.Run("a cluster's credentials for Argo CD", func(t *testing.T) {
		s := newSite(t, "")
		s.write("all.yaml", object("v1", "Secret", "name: x, namespace: shop, labels: {argocd.argoproj.io/secret-type: cluster}", "stringData: {server: 'https://evil.example'}"))
		s.refused(gate.ReceiptMissing, "identity")
	})
	t.Run("a label that others select Namespaces by", func(t *testing.T) {
		s := newSite(t, "")
		s.write("all.yaml", object("v1", "Namespace", "name: x, labels: {resource.kubernetes.io/admin-access: 'true'}", ""))
		s.refused(gate.ReceiptMissing, "privilege")
	})
}

func TestRedTeamF29AnnotationsOfWhatIsExposedAreGatedUnlessTheyAreBookkeeping(t *testing.T) {
	balancer := func(annotation string) string {
		return object("v1", "Service", "name: web, namespace: shop, annotations: {"+annotation+"}", "spec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 443}]}")
	}
	ingress := func(annotation string) string {
		return object("networking.k8s.io/v1", "Ingress", "name: web, namespace: shop, annotations: {"+annotation+"}", "spec: {ingressClassName: nginx, defaultBackend: {service: {name: web, port: {number: 80}}}}")
	}
	const mine = "example.com/mine: 'yes'"
	refuses(t, []edit{
		{"source ranges", balancer(mine), balancer(mine + ", service.beta.kubernetes.io/load-balancer-source-ranges: 0.0.0.0/0")},
		{"a name on the Internet", balancer(mine), balancer(mine + ", external-dns.alpha.kubernetes.io/hostname: bank.example")},
		{"one taken away", balancer(mine), balancer("a: b")},
		{"a snippet", ingress(mine), ingress(mine + ", nginx.org/server-snippets: evil")},
		{"a plugin", ingress(mine), ingress(mine + ", konghq.com/plugins: none")},
		{"of another controller", ingress(mine), ingress(mine + ", haproxy.org/allow-list: 0.0.0.0/0")},
	})
	s := newSite(t, "")
	s.write("all.yaml", balancer(mine)+ingress(mine))
	s.signed("release")
	s.write("all.yaml", balancer(mine+", meta.helm.sh/release-name: x, argocd.argoproj.io/sync-wave: '1', prometheus.io/scrape: 'true'")+ingress(mine+", nginx.ingress.kubernetes.io/proxy-body-size: 10m"))
	s.allowed()
}

func TestRedTeamF32WhatIsWrittenFalseIsNotAbsent(t *testing.T) {
	refuses(t, []edit{
		{"a container that overrides runAsNonRoot", web("securityContext: {runAsNonRoot: true}", ""), web("securityContext: {runAsNonRoot: true}", "securityContext: {runAsNonRoot: false}")},
		{"a read-only root file system", web("", "securityContext: {readOnlyRootFilesystem: true}"), web("", "securityContext: {readOnlyRootFilesystem: false}")},
		{"no dropped capabilities", web("", "securityContext: {capabilities: {drop: [ALL]}}"), web("", "securityContext: {capabilities: {}}")},
	})
	s := newSite(t, "")
	s.sameDigest("zero values that the API server drops", web("", ""), web("hostNetwork: false, hostPID: false, hostIPC: false, securityContext: {}", "securityContext: {}"))
}

func TestRedTeamF33DuplicatesThatTheServerTakesAreSets(t *testing.T) {
	s := newSite(t, "")
	s.sameDigest("pull secrets", web("imagePullSecrets: [{name: a}, {name: b}]", ""), web("imagePullSecrets: [{name: b}, {name: a}, {name: b}]", ""))
	s.sameDigest("capabilities", web("", "securityContext: {capabilities: {add: [A, B]}}"), web("", "securityContext: {capabilities: {add: [B, A, A]}}"))
	s.sameDigest("an env name that is no leaf", web("", "env: [{name: A, value: x}]"), web("", "env: [{name: A, value: x}, {name: A, value: y}]"))
	s.write("all.yaml", web("", "env: [{name: PATH, value: /a}, {name: PATH, value: /b}]")) // which one counts?
	s.refused(gate.ObjectMalformed, "PATH")
}

func TestRedTeamF34NamesCannotForgePaths(t *testing.T) {
	ref := func(envName, secret, key string) string {
		return `{name: '` + envName + `', valueFrom: {secretKeyRef: {name: '` + secret + `', key: '` + key + `'}}}`
	}
	s := newSite(t, "")
	s.otherDigest("an env named like the path of another",
		web("", "env: ["+ref("A", "x", "y")+"]"),
		web("", "env: ["+ref("A].valueFrom.secretKeyRef.name", "x", "y")+"]"))
	s.write("all.yaml", web("", "env: ["+ref("A", "s", "k")+", "+ref("A].valueFrom.secretKeyRef.key", "s", "k")+"]"))
	s.signed("release")
	s.allowed()
}

func TestRedTeamF36ATokenVolumeByHandIsALeaf(t *testing.T) {
	pod := func(automount string) string {
		return object("v1", "Pod", "name: p, namespace: shop", `spec: {`+automount+`containers: [{name: web, image: "`+webImage("1", "a")+`", volumeMounts: [{name: kube-api-access-abcde, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true}]}],
  volumes: [{name: kube-api-access-abcde, projected: {defaultMode: 420, sources: [{serviceAccountToken: {path: token, expirationSeconds: 3607}}, {configMap: {name: kube-root-ca.crt, items: [{key: ca.crt, path: ca.crt}]}}, {downwardAPI: {items: [{path: namespace, fieldRef: {apiVersion: v1, fieldPath: metadata.namespace}}]}}]}}]}`)
	}
	plain := func(automount string) string {
		return object("v1", "Pod", "name: p, namespace: shop", `spec: {`+automount+`containers: [{name: web, image: "`+webImage("1", "a")+`"}]}`)
	}
	s := newSite(t, "")
	s.sameDigest("as the API server injects it", plain(""), pod(""))
	const off = "automountServiceAccountToken: false, "
	refuses(t, []edit{{"signed without a token", plain(off), pod(off)}})
}

func TestRedTeamF41WhatProgressiveDeliveryWritesIsNoLeaf(t *testing.T) {
	s := newSite(t, "categories: [{name: service}]\n")
	service := func(kind, selector string) string {
		return object("v1", "Service", "name: web, namespace: shop", "spec: {type: "+kind+", selector: {"+selector+"}, ports: [{port: 80}]}")
	}
	for _, kind := range []string{"ClusterIP", "LoadBalancer"} {
		s.sameDigest("selector hash of a "+kind, service(kind, "app: web"), service(kind, "app: web, rollouts-pod-template-hash: 7d6c"))
	}
	route := func(weight string) string {
		return object("gateway.networking.k8s.io/v1", "HTTPRoute", "name: web, namespace: shop", "spec: {rules: [{backendRefs: [{name: web, port: 80, weight: "+weight+"}]}]}")
	}
	s.sameDigest("weights", route("100"), route("5"))
	ingress := func(weight string) string {
		return object("networking.k8s.io/v1", "Ingress", "name: web, namespace: shop, annotations: {nginx.ingress.kubernetes.io/canary-weight: '"+weight+"'}", "spec: {defaultBackend: {service: {name: web, port: {number: 80}}}}")
	}
	s.sameDigest("canary weight", ingress("0"), ingress("50"))
}

func TestRedTeamF48AFieldThatNobodyKnowsYetIsALeaf(t *testing.T) {
	refuses(t, []edit{
		{"of a container's securityContext", web("", "securityContext: {privileged: false}"), web("", "securityContext: {privileged: false, letMeOut: true}")},
		{"of the pod's", web("", ""), web("securityContext: {letMeOut: true}", "")},
		{"of a pod spec", web("", ""), web("hostEverything: true", "")},
	})
}
