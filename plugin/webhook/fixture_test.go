package webhook

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/internal/jcs"
	"github.com/syncgate/syncgate/plugin/keys"
	"github.com/syncgate/syncgate/plugin/projection"
	"github.com/syncgate/syncgate/plugin/receipt"
)

const (
	now = int64(1_800_000_000)
	day = int64(86400)

	pinned = "ghcr.io/acme/web:1.4@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	other  = "ghcr.io/acme/web:1.5@sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

// minimal is the least policy, with an issuer for emergencies beside it.
const minimal = `apiVersion: syncgate.io/v1alpha1
kind: GatePolicy
environment: prod
issuers:
- {name: release, keys: {file: release.json}}
- {name: glass, keys: {file: glass.json}, breakGlass: true}
`

// signer returns a key pair that depends on its name alone.
func signer(t testing.TB, name string) *receipt.KeySigner {
	t.Helper()
	seed := make([]byte, ed25519.SeedSize)
	copy(seed, name)
	s, err := receipt.NewSigner(ed25519.NewKeyFromSeed(seed), name, "")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// policyDir writes a policy and the key sets of issuers release and glass.
func policyDir(t testing.TB, policy string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "policy.yaml"), []byte(policy))
	for _, name := range []string{"release", "glass"} {
		set, err := keys.PublicJWKS([]receipt.Key{signer(t, name).Key()})
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name+".json"), set)
	}
	return filepath.Join(dir, "policy.yaml")
}

func write(t testing.TB, file string, data []byte) {
	t.Helper()
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// state loads a policy; more is added to the minimal one.
func state(t testing.TB, more string) *State {
	t.Helper()
	l, err := NewLoader(Source{Policy: policyDir(t, minimal+more)})
	if err != nil {
		t.Fatal(err)
	}
	return l.State()
}

// tree decodes YAML as the API server's JSON would be.
func tree(t testing.TB, text string) map[string]any {
	t.Helper()
	if text == "" {
		return nil
	}
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	v, err := jcs.Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	return v.(map[string]any)
}

// deployment is Deployment shop/web; pod is further members of its pod spec.
func deployment(image, pod string) string {
	return object("apps/v1", "Deployment", "web", image, pod)
}

func object(version, kind, name, image, pod string) string {
	spec := fmt.Sprintf("{%scontainers: [{name: web, image: %q}]}", pod, image)
	switch kind {
	case "Pod":
	case "CronJob":
		spec = "{jobTemplate: {spec: {template: {spec: " + spec + "}}}}"
	default:
		spec = "{template: {spec: " + spec + "}}"
	}
	return fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: %s, namespace: shop}, spec: %s}", version, kind, name, spec)
}

// sign puts receipts of an issuer onto an object.
func sign(t testing.TB, obj map[string]any, issuer string, change func(*receipt.Claims)) map[string]any {
	t.Helper()
	return carry(obj, receiptFor(t, obj, issuer, change))
}

func carry(obj map[string]any, receipts ...string) map[string]any {
	meta := obj["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	if annotations == nil {
		annotations = map[string]any{}
		meta["annotations"] = annotations
	}
	annotations["syncgate.io/receipt"] = strings.Join(receipts, " ")
	return obj
}

func receiptFor(t testing.TB, obj map[string]any, issuer string, change func(*receipt.Claims)) string {
	t.Helper()
	p, err := projection.Project(obj)
	if err != nil {
		t.Fatal(err)
	}
	group, kind := groupKind(obj)
	meta := obj["metadata"].(map[string]any)
	name, _ := meta["name"].(string)
	ns, _ := meta["namespace"].(string)
	s := receipt.Subject{Group: projection.CanonicalGroup(group, kind), Kind: kind, Namespace: ns, Name: name}
	c := receipt.Claims{Issuer: issuer, Subject: s.String(), Environment: "prod", Profile: projection.Profile,
		IssuedAt: now - day, Expires: now + day, ID: "01J9" + issuer + "xxxxxxxxxxxxxxxxxxxxxx", Leaves: map[string]string{}}
	for _, l := range p.Leaves() {
		c.Leaves[gate.LeafKey(l)] = l.ShortHash()
	}
	for _, a := range p.Applies() {
		c.Covers = append(c.Covers, string(a))
	}
	if change != nil {
		change(&c)
	}
	var covers []projection.Category
	for _, a := range c.Covers {
		covers = append(covers, projection.Category(a))
	}
	if c.Digest, err = p.Digest(covers); err != nil {
		t.Fatal(err)
	}
	compact, err := receipt.Sign(c, signer(t, issuer))
	if err != nil {
		t.Fatal(err)
	}
	return compact
}

// deletionReceipt is for the empty projection of a subject.
func deletionReceipt(t testing.TB, subject string, covers ...projection.Category) string {
	t.Helper()
	p, err := projection.Project(tree(t, `{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: n}}`))
	if err != nil {
		t.Fatal(err)
	}
	digest, err := p.Empty().Digest(covers)
	if err != nil {
		t.Fatal(err)
	}
	c := receipt.Claims{Issuer: "release", Subject: subject, Environment: "prod", Profile: projection.Profile,
		IssuedAt: now - day, Expires: now + day, ID: "01J9deletionxxxxxxxxxxxxxx", Digest: digest}
	for _, x := range covers {
		c.Covers = append(c.Covers, string(x))
	}
	compact, err := receipt.Sign(c, signer(t, "release"))
	if err != nil {
		t.Fatal(err)
	}
	return compact
}

// ask makes the request that an API server would make of these objects.
func ask(operation, user string, obj, old map[string]any) request {
	subject := obj
	if subject == nil {
		subject = old
	}
	group, kind := groupKind(subject)
	meta, _ := subject["metadata"].(map[string]any)
	name, _ := meta["name"].(string)
	ns, _ := meta["namespace"].(string)
	return request{UID: "u", Operation: operation, Group: group, Kind: kind, Namespace: ns, Name: name, User: user, Object: obj, Old: old}
}

// body encodes a request as the API server does.
func body(t testing.TB, q request) []byte {
	t.Helper()
	data, err := json.Marshal(map[string]any{"apiVersion": reviewVersion, "kind": reviewKind, "request": map[string]any{
		"uid": q.UID, "operation": q.Operation, "kind": map[string]any{"group": q.Group, "kind": q.Kind, "version": "v1"},
		"namespace": q.Namespace, "name": q.Name, "subResource": q.Subresource, "dryRun": q.DryRun,
		"userInfo": map[string]any{"username": q.User, "groups": q.Groups}, "object": q.Object, "oldObject": q.Old,
	}})
	if err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSpace(data)
}

func at(seconds int64) func() time.Time { return func() time.Time { return time.Unix(seconds, 0) } }
