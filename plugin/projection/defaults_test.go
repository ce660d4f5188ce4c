package projection

import "testing"

// Pairs of what people write and what the API server stores (defaulting in
// k8s.io/kubernetes v1.37, pkg/apis/*/v1/defaults.go): one digest.
func TestWhatTheAPIServerFillsInNeverChangesTheDigest(t *testing.T) {
	for _, c := range []struct{ name, written, stored string }{
		{"a Deployment", deployment(`
serviceAccountName: s
containers:
- name: a
  image: i
  ports: [{containerPort: 80, hostPort: 80}]
  env: [{name: PATH, valueFrom: {fieldRef: {fieldPath: metadata.name}}}, {name: LD_PRELOAD}]
  livenessProbe: {httpGet: {host: h, port: 80}}
  volumeMounts: [{name: s, mountPath: /s}, {name: h, mountPath: /h}]
volumes:
- {name: s, secret: {secretName: s}}
- {name: h, hostPath: {path: /}}
- {name: t, projected: {sources: [{serviceAccountToken: {path: t}}]}}
- {name: r, rbd: {monitors: [m], image: i}}
- {name: i, iscsi: {targetPortal: p, iqn: q}}
- {name: z, azureDisk: {diskName: d, diskURI: u}}
- {name: x, scaleIO: {gateway: g, system: s, secretRef: {name: s}}}
tolerations: [{key: node-role.kubernetes.io/control-plane}]
`), `
apiVersion: apps/v1
kind: Deployment
metadata: {name: x, uid: u, resourceVersion: "1", generation: 1, annotations: {deployment.kubernetes.io/revision: "1"}}
spec:
 replicas: 1
 progressDeadlineSeconds: 600
 strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 25%, maxUnavailable: 25%}}
 template:
  metadata: {creationTimestamp: null}
  spec:
   serviceAccountName: s
   serviceAccount: s
   dnsPolicy: ClusterFirst
   restartPolicy: Always
   schedulerName: default-scheduler
   securityContext: {}
   terminationGracePeriodSeconds: 30
   containers:
   - name: a
     image: i
     imagePullPolicy: Always
     resources: {}
     terminationMessagePath: /dev/termination-log
     terminationMessagePolicy: File
     ports: [{containerPort: 80, hostPort: 80, protocol: TCP}]
     env: [{name: PATH, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: metadata.name}}}, {name: LD_PRELOAD}]
     livenessProbe: {httpGet: {host: h, port: 80, path: /, scheme: HTTP}, failureThreshold: 3, periodSeconds: 10, successThreshold: 1, timeoutSeconds: 1}
     volumeMounts: [{name: s, mountPath: /s}, {name: h, mountPath: /h}]
   volumes:
   - {name: s, secret: {secretName: s, defaultMode: 420}}
   - {name: h, hostPath: {path: /, type: ""}}
   - {name: t, projected: {defaultMode: 420, sources: [{serviceAccountToken: {path: t, expirationSeconds: 3600}}]}}
   - {name: r, rbd: {monitors: [m], image: i, pool: rbd, user: admin, keyring: /etc/ceph/keyring}}
   - {name: i, iscsi: {targetPortal: p, iqn: q, iscsiInterface: default, lun: 0}}
   - {name: z, azureDisk: {diskName: d, diskURI: u, cachingMode: ReadWrite, fsType: ext4, readOnly: false, kind: Shared}}
   - {name: x, scaleIO: {gateway: g, system: s, secretRef: {name: s}, storageMode: ThinProvisioned, fsType: xfs}}
   tolerations: [{key: node-role.kubernetes.io/control-plane, operator: Equal}]
status: {observedGeneration: 1}`},
		{"a Pod, after admission too", `
apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {containers: [{name: a, image: i}]}`, `
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: default}
spec:
  serviceAccountName: default
  serviceAccount: default
  nodeName: n1
  priority: 0
  preemptionPolicy: PreemptLowerPriority
  enableServiceLinks: true
  imagePullSecrets: [{name: from-account}]
  tolerations:
  - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 300}
  - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 300}
  containers:
  - name: a
    image: i
    volumeMounts: [{name: kube-api-access-x1, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true}]
  volumes:
  - name: kube-api-access-x1
    projected:
      defaultMode: 420
      sources:
      - serviceAccountToken: {expirationSeconds: 3607, path: token}
      - configMap: {name: kube-root-ca.crt, items: [{key: ca.crt, path: ca.crt}]}
      - downwardAPI: {items: [{path: namespace, fieldRef: {apiVersion: v1, fieldPath: metadata.namespace}}]}`},
		{"host ports under hostNetwork", deployment("hostNetwork: true\ncontainers: [{name: a, image: i, ports: [{containerPort: 80}]}]"),
			deployment("hostNetwork: true\ncontainers: [{name: a, image: i, ports: [{containerPort: 80, hostPort: 80, protocol: TCP}]}]")},
		{"a StatefulSet's claims", `
apiVersion: apps/v1
kind: StatefulSet
spec: {template: {spec: {containers: [{name: a, image: i, volumeMounts: [{name: d, mountPath: /d}]}]}}, volumeClaimTemplates: [{metadata: {name: d}, spec: {dataSource: {apiGroup: "", kind: PersistentVolumeClaim, name: c}}}]}`, `
apiVersion: apps/v1
kind: StatefulSet
spec: {template: {spec: {containers: [{name: a, image: i, volumeMounts: [{name: d, mountPath: /d}]}]}}, volumeClaimTemplates: [{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: d, creationTimestamp: null}, spec: {volumeMode: Filesystem, dataSource: {apiGroup: "", kind: PersistentVolumeClaim, name: c}, dataSourceRef: {apiGroup: "", kind: PersistentVolumeClaim, name: c}}, status: {phase: Pending}}]}`},
		{"a claim, after binding by its class", `{apiVersion: v1, kind: PersistentVolumeClaim, spec: {resources: {requests: {storage: 1Gi}}, accessModes: [ReadWriteOnce]}}`,
			`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {annotations: {pv.kubernetes.io/bind-completed: "yes"}}, spec: {resources: {requests: {storage: 1Gi}}, accessModes: [ReadWriteOnce], storageClassName: standard, volumeMode: Filesystem}, status: {phase: Bound}}`},
		{"a load balancer", `{apiVersion: v1, kind: Service, spec: {type: LoadBalancer, selector: {a: b}, ports: [{port: 80}, {port: 53, protocol: UDP, targetPort: dns}]}}`,
			`{apiVersion: v1, kind: Service, spec: {type: LoadBalancer, selector: {a: b}, sessionAffinity: None, clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ipFamilies: [IPv4], ipFamilyPolicy: SingleStack, externalTrafficPolicy: Cluster, internalTrafficPolicy: Cluster, allocateLoadBalancerNodePorts: true, ports: [{port: 80, protocol: TCP, targetPort: 80, nodePort: 31000}, {port: 53, protocol: UDP, targetPort: dns, nodePort: 31001}]}}`},
		{"an internal Service", `{apiVersion: v1, kind: Service, spec: {ports: [{port: 80, targetPort: 0}]}}`, `{apiVersion: v1, kind: Service, spec: {type: ClusterIP, ports: [{port: 80, protocol: TCP, targetPort: 80}]}}`},
		{"a NetworkPolicy", `{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, spec: {podSelector: {}, egress: [{ports: [{port: 53}]}]}}`,
			`{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, spec: {podSelector: {}, egress: [{ports: [{port: 53, protocol: TCP}]}], policyTypes: [Ingress, Egress]}}`},
		{"a binding", `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, roleRef: {kind: Role, name: r}, subjects: [{kind: Group, name: g}, {kind: ServiceAccount, name: s, namespace: ns}]}`,
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: g}, {kind: ServiceAccount, name: s, namespace: ns}]}`},
		{"a ServiceAccount", `{apiVersion: v1, kind: ServiceAccount, metadata: {name: s}}`, `{apiVersion: v1, kind: ServiceAccount, metadata: {name: s}, automountServiceAccountToken: true, secrets: [{name: s-token}]}`},
		{"a PersistentVolume, bound", `{apiVersion: v1, kind: PersistentVolume, spec: {hostPath: {path: /x}, claimRef: {namespace: ns, name: c}}}`,
			`{apiVersion: v1, kind: PersistentVolume, spec: {hostPath: {path: /x, type: ""}, claimRef: {apiVersion: v1, kind: PersistentVolumeClaim, namespace: ns, name: c, uid: u, resourceVersion: "5"}, persistentVolumeReclaimPolicy: Retain, volumeMode: Filesystem}}`},
		{"a StorageClass", `{apiVersion: storage.k8s.io/v1, kind: StorageClass, provisioner: p}`, `{apiVersion: storage.k8s.io/v1, kind: StorageClass, provisioner: p, reclaimPolicy: Delete, volumeBindingMode: Immediate}`},
		{"a webhook, with its certificate injected", `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
webhooks: [{name: w, sideEffects: None, admissionReviewVersions: [v1], clientConfig: {service: {name: s, namespace: ns}}, rules: [{operations: [CREATE], resources: [pods]}]}]`, `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
webhooks: [{name: w, sideEffects: None, admissionReviewVersions: [v1], clientConfig: {caBundle: eA==, service: {name: s, namespace: ns, port: 443}}, rules: [{operations: [CREATE], resources: [pods], scope: "*"}], failurePolicy: Fail, matchPolicy: Equivalent, namespaceSelector: {}, objectSelector: {}, reinvocationPolicy: Never, timeoutSeconds: 10}]`},
		{"an admission policy", `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, spec: {matchConstraints: {resourceRules: [{operations: [CREATE], resources: [pods]}]}}}`,
			`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, spec: {failurePolicy: Fail, matchConstraints: {matchPolicy: Equivalent, namespaceSelector: {}, objectSelector: {}, resourceRules: [{operations: [CREATE], resources: [pods], scope: "*"}]}}}`},
		{"an IngressClass", `{apiVersion: networking.k8s.io/v1, kind: IngressClass, spec: {controller: c, parameters: {kind: K, name: nn}}}`, `{apiVersion: networking.k8s.io/v1, kind: IngressClass, spec: {controller: c, parameters: {kind: K, name: nn, scope: Cluster}}}`},
		{"a Namespace", `{apiVersion: v1, kind: Namespace, metadata: {name: nn, labels: {a: b}}}`, `{apiVersion: v1, kind: Namespace, metadata: {name: nn, labels: {a: b, kubernetes.io/metadata.name: nn}}, spec: {finalizers: [kubernetes]}, status: {phase: Active}}`},
		{"a certificate request, with who asked", `{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, spec: {request: eA==, signerName: s, usages: [client auth]}}`,
			`{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, spec: {request: eA==, signerName: s, usages: [client auth], username: u, groups: ["system:authenticated"], extra: {a: [b]}, uid: u}}`},
		{"an HTTPRoute", `{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, spec: {parentRefs: [{name: g}], rules: [{backendRefs: [{name: s, port: 80}]}]}}`,
			`{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, spec: {parentRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: g}], rules: [{backendRefs: [{group: "", kind: Service, name: s, port: 80, weight: 1}], matches: [{path: {type: PathPrefix, value: /}}]}]}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, q := project(t, c.written), project(t, c.stored)
			if diff := Diff(p, q); len(diff) > 0 {
				t.Errorf("written and stored differ: %v", diff)
			}
			a, err := p.Digest(p.Applies())
			if err != nil {
				t.Fatal(err)
			}
			if b, err := q.Digest(q.Applies()); err != nil || a != b {
				t.Errorf("digests %s and %s, %v", a, b, err)
			}
		})
	}
}
