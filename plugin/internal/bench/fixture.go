package main

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"strings"
	"time"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/internal/manifest"
	"github.com/syncgate/syncgate/plugin/keys"
	"github.com/syncgate/syncgate/plugin/policy"
	"github.com/syncgate/syncgate/plugin/receipt"
)

// fixture is an issuer, its policy, and Deployments of about 5 KB that it
// signed.
type fixture struct {
	private   ed25519.PrivateKey
	signer    *receipt.KeySigner
	effective policy.Effective
	now       int64
}

func newFixture() (*fixture, error) {
	private := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	s, err := receipt.NewSigner(private, "release", "")
	if err != nil {
		return nil, err
	}
	set, err := keys.PublicJWKS([]receipt.Key{s.Key()})
	if err != nil {
		return nil, err
	}
	text := "apiVersion: syncgate.io/v1alpha1\nkind: GatePolicy\nenvironment: bench\nissuers:\n- {name: release, keys: {file: keys}}\n"
	p, err := policy.Parse([]byte(text), "policy.yaml", func(string) ([]byte, error) { return set, nil })
	if err != nil {
		return nil, err
	}
	e, err := p.For(policy.App{Name: "bench"})
	if err != nil {
		return nil, err
	}
	return &fixture{private, s, e, time.Now().Unix()}, nil
}

// deployment is a Deployment as charts write them: about 5 KB in JSON with its
// receipt, most of it not gated.
func deployment(i int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web-%d
  namespace: shop
  labels: {app.kubernetes.io/name: web, app.kubernetes.io/instance: web-%d, app.kubernetes.io/version: "1.4", helm.sh/chart: web-1.4.2}
spec:
  replicas: 3
  revisionHistoryLimit: 5
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}
  selector: {matchLabels: {app.kubernetes.io/name: web, app.kubernetes.io/instance: web-%d}}
  template:
    metadata:
      labels: {app.kubernetes.io/name: web, app.kubernetes.io/instance: web-%d}
      annotations: {prometheus.io/scrape: "true", prometheus.io/port: "9090", checksum/config: 9f86d081884c7d659a2feaa0c55ad015}
    spec:
      serviceAccountName: web
      securityContext: {runAsNonRoot: true, runAsUser: 65532, fsGroup: 65532, seccompProfile: {type: RuntimeDefault}}
      volumes:
      - {name: config, configMap: {name: web-config}}
      - {name: tls, secret: {secretName: web-tls}}
      - {name: tmp, emptyDir: {}}
      containers:
`, i, i, i, i)
	for _, name := range []string{"web", "metrics"} {
		fmt.Fprintf(&b, `      - name: %s
        image: ghcr.io/acme/%s:1.4@sha256:%064d
        imagePullPolicy: IfNotPresent
        args: ["--listen=:8080", "--config=/etc/web/config.yaml", "--log-level=info"]
        ports: [{name: http, containerPort: 8080, protocol: TCP}, {name: metrics, containerPort: 9090, protocol: TCP}]
        securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
        resources: {requests: {cpu: 100m, memory: 128Mi}, limits: {memory: 256Mi}}
        livenessProbe: {httpGet: {path: /healthz, port: http, scheme: HTTP}, initialDelaySeconds: 5, periodSeconds: 10, timeoutSeconds: 1, failureThreshold: 3}
        readinessProbe: {httpGet: {path: /readyz, port: http, scheme: HTTP}, initialDelaySeconds: 5, periodSeconds: 10, timeoutSeconds: 1, failureThreshold: 3}
        volumeMounts:
        - {name: config, mountPath: /etc/web}
        - {name: tls, mountPath: /etc/tls, readOnly: true}
        - {name: tmp, mountPath: /tmp}
        env:
        - {name: DB_PASSWORD, valueFrom: {secretKeyRef: {name: web-db, key: password}}}
        - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
`, name, name, i)
		for j := range 5 {
			fmt.Fprintf(&b, "        - {name: SETTING_%02d, value: \"value number %d of this container\"}\n", j, j)
		}
	}
	return b.String()
}

// signed returns n signed Deployments: as YAML, and as one JSON document each.
func (f *fixture) signed(n int) (yaml []byte, docs [][]byte, err error) {
	var text strings.Builder
	for i := range n {
		text.WriteString("---\n" + deployment(i))
	}
	b, err := f.build([]byte(text.String()), app.KeepTrees)
	if err != nil {
		return nil, nil, err
	}
	drafts, err := b.Drafts(app.Signing{Issuer: "release", Environment: "bench", Now: f.now, Lifetime: 86400, Signer: f.signer, NoLeaves: true}, f.effective)
	if err != nil {
		return nil, nil, err
	}
	for _, d := range drafts {
		compact, err := receipt.Sign(d.Claims, f.signer)
		if err != nil {
			return nil, nil, err
		}
		if err := d.Object.Stamp(f.effective, compact); err != nil {
			return nil, nil, err
		}
	}
	var out bytes.Buffer
	if err := b.EncodeYAML(&out); err != nil {
		return nil, nil, err
	}
	for _, o := range b.Objects {
		var doc bytes.Buffer
		if err := manifest.Encode(&doc, []manifest.Object{o.Object}); err != nil {
			return nil, nil, err
		}
		docs = append(docs, doc.Bytes())
	}
	return out.Bytes(), docs, nil
}
