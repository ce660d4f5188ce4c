//go:build e2e

package e2e

import (
	"fmt"
	"strings"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// documents joins manifests to a stream.
func documents(manifests ...string) string { return strings.Join(manifests, "\n---\n") }

// webOf is a Deployment as people have them, with one Pod.
func webOf(name string) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: %s}
spec:
  replicas: 1
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      securityContext: {runAsNonRoot: true}
      containers:
      - name: web
        image: %q
        args: [serve]
        resources: {requests: {cpu: 100m}}
        env: [{name: GREETING, value: hello}, {name: PASSWORD, valueFrom: {secretKeyRef: {name: web, key: password}}}]
        volumeMounts: [{name: config, mountPath: /config}]
      volumes: [{name: config, configMap: {name: config}}]
`, name, harness.Image("web:1"))
}

// suspended is a Job that has yet to begin. Its Pods end with a status.
func suspended(name, exit, more string) string {
	return fmt.Sprintf(`apiVersion: batch/v1
kind: Job
metadata: {name: %[1]s}
spec:
  suspend: true
  %[2]s
  template:
    metadata: {labels: {app: %[1]s}, annotations: {%[3]s: %[4]q}}
    spec: {restartPolicy: Never, containers: [{name: work, image: %[5]q}]}
`, name, more, harness.ExitAnnotation, exit, harness.Image("work:1"))
}

// ordinaryWorkloads are one for each case, so that the cases do not meet.
func ordinaryWorkloads() string {
	var all []string
	for _, name := range []string{
		"scale", "resources", "labels", "env", "restart", "lost", "hpa", "config", "plain", "drain",
		"collected", "collected-foreground", "collected-orphans",
	} {
		all = append(all, webOf(name))
	}
	return documents(append(all,
		suspended("job", "0", "completions: 2"),
		suspended("retry", "3", "backoffLimit: 1"),
		suspended("brief", "0", "ttlSecondsAfterFinished: 0"),
		fmt.Sprintf(`apiVersion: batch/v1
kind: CronJob
metadata: {name: tick}
spec:
  schedule: "* * * * *"
  jobTemplate: {spec: {template: {metadata: {labels: {app: tick}}, spec: {restartPolicy: Never, containers: [{name: work, image: %q}]}}}}
`, harness.Image("work:1")),
		fmt.Sprintf(`apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 2
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db, image: %q, volumeMounts: [{name: data, mountPath: /data}]}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {storageClassName: prepared, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`, harness.Image("db:1")),
		fmt.Sprintf(`apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: agent, image: %q}]}
`, harness.Image("agent:1")),
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: config}, data: {greeting: hello}}`,
	)...)
}

// preparedVolumes are an administrator's, for the claims of the StatefulSet.
const preparedVolumes = `{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: prepared}, provisioner: kubernetes.io/no-provisioner}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: late}, provisioner: example.test/late, volumeBindingMode: WaitForFirstConsumer}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: prepared-1}, spec: {storageClassName: prepared, accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}, csi: {driver: example.test, volumeHandle: "1"}}}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: prepared-2}, spec: {storageClassName: prepared, accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}, csi: {driver: example.test, volumeHandle: "2"}}}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: prepared-3}, spec: {storageClassName: prepared, accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}, csi: {driver: example.test, volumeHandle: "3"}}}
`

// closedObjects are what the refused changes are tried on.
func closedObjects() string {
	return documents(webOf("web"),
		`{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {app: web}, ports: [{port: 80}]}}`,
		fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: bare}, spec: {nodeSelector: {kubernetes.io/hostname: first}, containers: [{name: bare, image: %q}]}}`, harness.Image("bare:1")))
}

// doomedObjects are of kinds that are gated, in a namespace to delete.
func doomedObjects() string {
	return documents(webOf("web"),
		`{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {app: web}, ports: [{port: 80}]}}`,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: reader}, rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]}`,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: reader}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}, subjects: [{kind: ServiceAccount, name: default}]}`,
		`{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: closed}, spec: {podSelector: {}}}`)
}

// chart is what a chart without exposure installs before its workloads. Those
// name images, so that installing them is a change that must be asked about.
const chart = `apiVersion: v1
kind: ServiceAccount
metadata: {name: chart, labels: {helm.sh/chart: chart-1.0.0}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: chart}
data: {greeting: %[1]s}
---
apiVersion: v1
kind: Secret
metadata: {name: chart}
type: Opaque
stringData: {password: %[1]s}
---
apiVersion: v1
kind: Secret
metadata: {name: sh.helm.release.v1.chart.v1, labels: {owner: helm, status: %[1]s}}
type: helm.sh/release.v1
stringData: {release: %[1]s}
---
apiVersion: v1
kind: Service
metadata: {name: chart, labels: {helm.sh/chart: chart-1.0.0}}
spec: {selector: {app: plain}, ports: [{name: http, port: 80, targetPort: 8080}]}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: chart}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: chart}
spec: {minAvailable: 1, selector: {matchLabels: {app: chart}}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: chart}
spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: chart}}
`
