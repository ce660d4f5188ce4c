package projection

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// fiveKilobytes is a Deployment as teams write them: three containers, with
// probes, variables, mounts and a hardened security context.
func fiveKilobytes(b *testing.B) []byte {
	b.Helper()
	var c strings.Builder
	for i, name := range []string{"web", "worker", "metrics"} {
		fmt.Fprintf(&c, `
- name: %[1]s
  image: registry.example/shop/%[1]s:1.4@sha256:7d865e959b2466918c9863afca942d0fb89d7c9ac0c99bafc3749504ded97730
  args: [--port=8080, --log-level=info, --shard=%[2]d]
  ports: [{name: http, containerPort: 808%[2]d, protocol: TCP}]
  env:
  - {name: DB_PASSWORD, valueFrom: {secretKeyRef: {name: db, key: password}}}
  - {name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
`, name, i)
		for j := range 8 {
			fmt.Fprintf(&c, "  - {name: SETTING_%d, value: \"some ordinary value %d\"}\n", j, j)
		}
		c.WriteString(`  envFrom: [{configMapRef: {name: common}}]
  livenessProbe: {httpGet: {path: /healthz, port: http}, initialDelaySeconds: 10, periodSeconds: 20}
  readinessProbe: {httpGet: {path: /ready, port: http}, periodSeconds: 5}
  resources: {requests: {cpu: 100m, memory: 128Mi}, limits: {memory: 256Mi}}
  securityContext: {runAsNonRoot: true, allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
  volumeMounts: [{name: config, mountPath: /etc/shop}, {name: tls, mountPath: /tls, readOnly: true}, {name: tmp, mountPath: /tmp}]
`)
	}
	doc := deployment("serviceAccountName: checkout\nterminationGracePeriodSeconds: 30\nsecurityContext: {fsGroup: 1000, seccompProfile: {type: RuntimeDefault}}\nimagePullSecrets: [{name: registry}]\nvolumes: [{name: config, configMap: {name: shop}}, {name: tls, secret: {secretName: tls}}, {name: tmp, emptyDir: {}}]\ncontainers:\n" + c.String())
	return mustJSON(b, parse(b, doc))
}

func BenchmarkProject(b *testing.B) {
	raw := fiveKilobytes(b)
	obj := decode(b, raw)
	p, err := Project(obj)
	if err != nil {
		b.Fatal(err)
	}
	b.Logf("%d bytes, %d leaves", len(raw), len(p.Leaves()))
	decoding := func(b *testing.B) map[string]any {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		var obj map[string]any
		if err := d.Decode(&obj); err != nil {
			b.Fatal(err)
		}
		return obj
	}
	projecting := func(b *testing.B, obj map[string]any) *Projection {
		p, err := Project(obj)
		if err != nil {
			b.Fatal(err)
		}
		return p
	}
	digesting := func(b *testing.B, p *Projection) {
		if _, err := p.Digest(p.Applies()); err != nil {
			b.Fatal(err)
		}
	}
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		b.Fatal(err)
	}
	message := raw[:600]
	signature := ed25519.Sign(private, message)
	verifying := func(b *testing.B) {
		if !ed25519.Verify(public, message, signature) {
			b.Fatal("bad signature")
		}
	}
	for _, c := range []struct {
		name string
		run  func(*testing.B)
	}{
		{"decode", func(b *testing.B) { decoding(b) }},
		{"project", func(b *testing.B) { projecting(b, obj) }},
		{"digest", func(b *testing.B) { digesting(b, p) }},
		{"verify", verifying},
		{"decode+verify", func(b *testing.B) { decoding(b); verifying(b) }},
		{"decode+project+digest+verify", func(b *testing.B) { digesting(b, projecting(b, decoding(b))); verifying(b) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.run(b)
			}
		})
	}
}
