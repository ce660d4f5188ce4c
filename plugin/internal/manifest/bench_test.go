package manifest

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// deployments is a stream of n Deployments of a usual size.
func deployments(n int) []byte {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web-%d
  namespace: shop
  labels: {app.kubernetes.io/name: web, app.kubernetes.io/instance: web-%[1]d}
spec:
  replicas: 3
  selector:
    matchLabels:
      app.kubernetes.io/name: web
  template:
    metadata:
      labels:
        app.kubernetes.io/name: web
    spec:
      serviceAccountName: web
      securityContext:
        runAsNonRoot: true
      containers:
      - name: web
        image: ghcr.io/acme/web:1.%[1]d
        args: ["--port=8080", "--log=json"]
        ports:
        - containerPort: 8080
        env:
        - name: PASSWORD
          valueFrom:
            secretKeyRef: {name: web, key: password}
        readinessProbe:
          httpGet: {path: /healthz, port: 8080}
          periodSeconds: 5
        resources:
          requests: {cpu: 100m, memory: 128Mi}
          limits: {memory: 256Mi}
        volumeMounts:
        - {name: config, mountPath: /etc/web}
      volumes:
      - name: config
        configMap: {name: web}
`, i)
	}
	return []byte(b.String())
}

// BenchmarkParse compares with sigs.k8s.io/yaml over the same documents; the
// target is at most 1.3 times as long.
func BenchmarkParse(b *testing.B) {
	text := deployments(3000)
	objs, err := Parse(text, "f.yaml")
	if err != nil {
		b.Fatal(err)
	}
	var lines bytes.Buffer
	if err := Encode(&lines, objs); err != nil {
		b.Fatal(err)
	}
	b.Run("yaml", func(b *testing.B) {
		for b.Loop() {
			if _, err := Parse(text, "f.yaml"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("sigs.k8s.io-yaml", func(b *testing.B) {
		for b.Loop() {
			for _, doc := range strings.Split(string(text), "---\n") {
				if _, err := reference([]byte(doc)); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("json", func(b *testing.B) {
		for b.Loop() {
			if _, err := Parse(lines.Bytes(), "f.json"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encode", func(b *testing.B) {
		for b.Loop() {
			lines.Reset()
			if err := Encode(&lines, objs); err != nil {
				b.Fatal(err)
			}
		}
	})
}
