//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// loopTime is how long the control is watched, so that the log has a figure to
// compare with other people's incidents.
const loopTime = 30 * time.Second

// loopSize is the number of ReplicaSets that nobody takes for ordinary work.
const loopSize = 50

func TestOutputIsAFixedPointOfGenerate(t *testing.T) {
	e := harness.New(t)
	b := harness.Build(e)
	registry := harness.StartRegistry(e)
	s := newShop(e, b)
	registry.Push("shop/web", "1")
	s.repo.Write(merge(base, change{image: registry.Host + "/shop/web", tag: "1", replicas: 1}.files()))
	s.pin()
	s.sign()
	registry.Stop() // neither run may look anything up

	first := s.generate(s.dir())
	out := e.Mkdir("rendered")
	if err := os.WriteFile(filepath.Join(out, "manifests.json"), first, 0o644); err != nil {
		t.Fatal(err)
	}
	second := s.generate(out) // without a lock: all it needs is in the objects
	if diff := cmp.Diff(string(first), string(second)); diff != "" {
		t.Errorf("generate over its own output (-first +second):\n%s", diff)
	}
	if n := bytes.Count(first, []byte("\n")); n != 3 {
		t.Errorf("got %d documents, want 3", n)
	}
	if again := s.generate(s.dir()); !bytes.Equal(first, again) {
		t.Errorf("two renders of one commit differ:\n%s", cmp.Diff(string(first), string(again)))
	}
}

func TestPinningWebhookMakesOneReplicaSetOfOurOutput(t *testing.T) {
	e := harness.New(t)
	b := harness.Build(e)
	registry := harness.StartRegistry(e)
	s := newShop(e, b)
	ref, digest := registry.Push("shop/web", "1")
	s.repo.Write(merge(base, change{image: registry.Host + "/shop/web", tag: "1", replicas: 1}.files()))
	s.pin()
	s.sign()
	cluster := harness.StartCluster(e, b)
	cluster.CreateNamespace(namespace) // fixedpoint tries Pods, too
	webhook := harness.StartPinningWebhook(cluster, namespace, map[string]string{ref: digest})

	// The same Deployment by tag, as a control: same controller, same time.
	control := fmt.Appendf(nil, `apiVersion: apps/v1
kind: Deployment
metadata: {name: control}
spec:
  selector: {matchLabels: {app: control}}
  template:
    metadata: {labels: {app: control}}
    spec: {containers: [{name: web, image: %q}]}
`, ref)
	byTag := e.Write("control/control.yaml", control)
	fixedpoint := func(dir string) harness.Result {
		return e.Try(dir, nil, s.syncgate, "fixedpoint", "--namespace", namespace, "--policy", s.policy, "--kubeconfig", cluster.Kubeconfig)
	}
	// The command says beforehand what will happen to which of the two.
	named := fmt.Sprintf("ReplicaSet of Deployment shop/control: webhook pinning.example.test (configuration pinning) changes "+
		"spec.template.spec.containers[web].image: %s -> %s@%s; its controller will make ReplicaSets without end", ref, ref, digest)
	if r := fixedpoint(filepath.Dir(byTag)); r.Status != 10 || !strings.Contains(string(r.Stderr), "SYNC REFUSED [DigestMismatch] "+named) {
		t.Errorf("fixedpoint of the control: status %d: %s", r.Status, r.Stderr)
	} else {
		report(t, "fixedpoint of the control", string(r.Stderr))
	}
	if r := fixedpoint(s.dir()); r.Status != 0 || string(r.Stdout) != "3 objects, all fixed points\n" {
		t.Errorf("fixedpoint of our output: status %d: %s%s", r.Status, r.Stdout, r.Stderr)
	}
	if n := len(cluster.List(harness.ReplicaSets, namespace, "")); n != 0 {
		t.Errorf("fixedpoint left %d ReplicaSets", n)
	}

	cluster.Apply(control, "--namespace", namespace)
	cluster.Apply(s.generate(s.dir()), "--namespace", namespace)
	start := time.Now()
	replicaSets := func(app string) int {
		return len(cluster.List(harness.ReplicaSets, namespace, "app="+app))
	}
	e.Eventually("the control to loop", func() (string, bool) {
		n := replicaSets("control")
		return fmt.Sprintf("%d ReplicaSets", n), n > loopSize && time.Since(start) > loopTime
	})
	t.Logf("control, %s: %d ReplicaSets after %.0f s, webhook %+v",
		ref, replicaSets("control"), time.Since(start).Seconds(), webhook.Calls("control"))

	web := cluster.Get(harness.Deployments, namespace, "web")
	t.Logf("our output, %s: %d ReplicaSet after %.0f s, collisionCount %d, webhook %+v", harness.Images(web),
		replicaSets("web"), time.Since(start).Seconds(), harness.Int(web, "status", "collisionCount"), webhook.Calls("web"))
	if got := replicaSets("web"); got != 1 {
		t.Errorf("ReplicaSets of our output: got %d, want 1", got)
	}
	if got := harness.Int(web, "status", "collisionCount"); got != 0 {
		t.Errorf("collisionCount of our output: got %d, want 0", got)
	}
	if got, want := harness.Int(web, "status", "observedGeneration"), web.GetGeneration(); got != want {
		t.Errorf("observedGeneration of our output: got %d, want %d", got, want)
	}
	if diff := cmp.Diff([]string{ref + "@" + digest}, harness.Images(web)); diff != "" {
		t.Errorf("images of our output (-want +got):\n%s", diff)
	}
	if n := webhook.Calls("web"); n.Seen == 0 || n.Patched != 0 {
		t.Errorf("webhook calls for our output: got %+v, want some seen and none patched", n)
	}
}

// plain are objects whose every gated field is said: what the API server fills
// in beside them, when they are created and later, is no finding.
const plain = `apiVersion: v1
kind: ServiceAccount
metadata: {name: web}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: open}
spec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      serviceAccountName: web
      securityContext: {runAsNonRoot: true}
      containers: [{name: web, image: IMAGE, envFrom: [{secretRef: {name: web}}], volumeMounts: [{name: s, mountPath: /s}]}]
      volumes: [{name: s, secret: {secretName: web}}]
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db, image: IMAGE}]}
  volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]
---
apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: IMAGE}]}}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: tick}
spec: {schedule: "* * * * *", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: IMAGE}]}}}}}
---
apiVersion: v1
kind: Pod
metadata: {name: bare}
spec: {containers: [{name: a, image: IMAGE}]}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: web}
spec: {podSelector: {}, ingress: [{}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: web}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{kind: ServiceAccount, name: web}]
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec: {CLASSdefaultBackend: {service: {name: web, port: {number: 80}}}}
`

// TestFixedpointNamesWhatTheClusterDecides: a default IngressClass is named with
// the line to add, before the Ingress is there and afterwards; all else is a
// fixed point, before it is there and afterwards.
func TestFixedpointNamesWhatTheClusterDecides(t *testing.T) {
	cluster := harness.SharedCluster(t)
	b := harness.Build(cluster.Env)
	ns := cluster.NewNamespace("fixed")
	class := ns + "-class"
	cluster.Apply(fmt.Appendf(nil, `{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {name: %s, annotations: {ingressclass.kubernetes.io/is-default-class: "true"}}, spec: {controller: example.test/none}}`, class))
	t.Cleanup(func() { cluster.Kubectl(nil, "delete", "ingressclass", class) })

	manifests := func(class string) string {
		return strings.NewReplacer("IMAGE", harness.Image("web:1"), "CLASS", class).Replace(plain)
	}
	fixedpoint := func(class string) harness.Result {
		t.Helper()
		file := cluster.Write("fixed/all.yaml", []byte(manifests(class)))
		return cluster.Try(filepath.Dir(file), nil, b.Syncgate, "fixedpoint", "--namespace", ns, "--kubeconfig", cluster.Kubeconfig)
	}
	explicit := "ingressClassName: " + class + ", "
	for _, when := range []string{"before they are there", "afterwards"} {
		t.Run(when, func(t *testing.T) {
			cluster.Eventually("the default class to count", func() (string, bool) {
				r := fixedpoint("")
				return string(r.Stderr), r.Status == 10 && strings.Contains(string(r.Stderr),
					"SYNC REFUSED [FieldDefaulted] Ingress "+ns+"/web: the cluster fills in spec.ingressClassName: "+class+"; Fix: write it into the manifest: spec.ingressClassName: "+class)
			})
			r := fixedpoint(explicit)
			if r.Status != 0 || !strings.Contains(string(r.Stdout), "12 objects, all fixed points\n") {
				t.Errorf("with the class: status %d: %s%s", r.Status, r.Stdout, r.Stderr)
			}
			report(t, "with the class", string(r.Stdout))
		})
		cluster.Apply([]byte(manifests(explicit)), "--namespace", ns)
	}
}
