package main

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/keys"
	"github.com/syncgate/syncgate/plugin/projection"
	"github.com/syncgate/syncgate/plugin/receipt"
)

// fixture is an authority, a policy, and reviews of Deployments that its issuer
// signed.
type fixture struct {
	dir, policy, cert, key string
	pool                   *x509.CertPool
	ca                     *x509.Certificate
	caKey                  *ecdsa.PrivateKey
	serial                 int64
	reviews                [][]byte
}

const policyText = `apiVersion: syncgate.io/v1alpha1
kind: GatePolicy
environment: load
issuers:
- {name: release, keys: {file: release.json}}
`

// reviews is how many different ones there are.
const reviews = 64

func newFixture(dir string) (*fixture, error) {
	f := &fixture{dir: dir, policy: filepath.Join(dir, "policy.yaml"), cert: filepath.Join(dir, "tls.crt"), key: filepath.Join(dir, "tls.key"), pool: x509.NewCertPool()}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	signer, err := receipt.NewSigner(private, "release", "")
	if err != nil {
		return nil, err
	}
	set, err := keys.PublicJWKS([]receipt.Key{signer.Key()})
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "release.json"), set, 0o600); err != nil {
		return nil, err
	}
	if err := f.writePolicy(""); err != nil {
		return nil, err
	}
	if err := f.rotate(); err != nil {
		return nil, err
	}
	for i := range reviews {
		r, err := signedReview(signer, i)
		if err != nil {
			return nil, err
		}
		f.reviews = append(f.reviews, r)
	}
	return f, nil
}

// writePolicy replaces the policy as a whole.
func (f *fixture) writePolicy(more string) error { return replace(f.policy, []byte(policyText+more)) }

func replace(file string, data []byte) error {
	if err := os.WriteFile(file+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// rotate writes a new serving certificate; the first call makes the authority.
func (f *fixture) rotate() error {
	if f.ca == nil {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return err
		}
		f.caKey = key
		if f.ca, _, err = f.issue(key, true); err != nil {
			return err
		}
		f.pool.AddCert(f.ca)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	_, der, err := f.issue(key, false)
	if err != nil {
		return err
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	// The key first: until its certificate is there the pair does not fit, and
	// the webhook keeps the old one.
	if err := replace(f.key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private})); err != nil {
		return err
	}
	return replace(f.cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func (f *fixture) issue(key *ecdsa.PrivateKey, ca bool) (*x509.Certificate, []byte, error) {
	f.serial++
	template := &x509.Certificate{
		SerialNumber: big.NewInt(f.serial), Subject: pkix.Name{CommonName: "load"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: ca, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	parent := template
	if f.ca != nil {
		parent = f.ca
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, f.caKey)
	if err != nil {
		return nil, nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return cert, der, err
}

// signedReview is the CREATE of a Deployment of about 5 KB that carries its
// receipt.
func signedReview(signer *receipt.KeySigner, i int) ([]byte, error) {
	name := fmt.Sprintf("web-%d", i)
	container := func(n string) map[string]any {
		var env []any
		for e := range 8 {
			env = append(env, map[string]any{"name": fmt.Sprintf("SETTING_%d", e), "value": strings.Repeat("v", 40)})
		}
		env = append(env, map[string]any{"name": "PASSWORD", "valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": "db", "key": "password"}}})
		return map[string]any{
			"name": n, "image": fmt.Sprintf("ghcr.io/acme/%s:1.4@sha256:%064d", n, i), "args": []any{"--listen=:8080", "--config=/etc/web/config.yaml"}, "env": env,
			"resources": map[string]any{"requests": map[string]any{"cpu": "100m", "memory": "128Mi"}}, "ports": []any{map[string]any{"containerPort": 8080, "protocol": "TCP"}},
			"livenessProbe":   map[string]any{"httpGet": map[string]any{"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10},
			"securityContext": map[string]any{"runAsNonRoot": true, "allowPrivilegeEscalation": false, "capabilities": map[string]any{"drop": []any{"ALL"}}},
			"volumeMounts":    []any{map[string]any{"name": "tls", "mountPath": "/etc/tls", "readOnly": true}},
		}
	}
	annotations := map[string]any{}
	obj := map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": name, "namespace": "shop", "uid": "00000000-0000-4000-8000-000000000000", "annotations": annotations, "labels": map[string]any{"app.kubernetes.io/name": "web"}},
		"spec": map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": name}}, "template": map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"app": name}},
			"spec": map[string]any{"serviceAccountName": "web", "securityContext": map[string]any{"runAsNonRoot": true},
				"containers": []any{container("web"), container("metrics")}, "volumes": []any{map[string]any{"name": "tls", "secret": map[string]any{"secretName": "web-tls"}}}},
		}},
	}
	p, err := projection.Project(obj)
	if err != nil {
		return nil, err
	}
	now := time.Now().Unix()
	c := receipt.Claims{Issuer: "release", Subject: "apps/Deployment/shop/" + name, Environment: "load", Profile: projection.Profile,
		IssuedAt: now - 60, Expires: now + 86400, ID: fmt.Sprintf("load-%017d", i), Leaves: map[string]string{}}
	for _, a := range p.Applies() {
		c.Covers = append(c.Covers, string(a))
	}
	for _, l := range p.Leaves() {
		c.Leaves[gate.LeafKey(l)] = l.ShortHash()
	}
	if c.Digest, err = p.Digest(p.Applies()); err != nil {
		return nil, err
	}
	compact, err := receipt.Sign(c, signer)
	if err != nil {
		return nil, err
	}
	annotations["syncgate.io/receipt"] = compact
	return json.Marshal(map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": map[string]any{
		"uid": fmt.Sprintf("review-%d", i), "kind": map[string]any{"group": "apps", "version": "v1", "kind": "Deployment"},
		"resource": map[string]any{"group": "apps", "version": "v1", "resource": "deployments"}, "namespace": "shop", "name": name, "operation": "CREATE",
		"userInfo": map[string]any{"username": "e2e", "groups": []any{"system:authenticated"}}, "object": obj, "oldObject": nil, "dryRun": false,
	}})
}
