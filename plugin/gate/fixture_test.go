package gate_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/projection"
	"github.com/syncgate/syncgate/plugin/receipt"
)

const (
	now   = int64(1_800_000_000)
	day   = int64(86400)
	image = "ghcr.io/acme/web:1.4@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	other = "ghcr.io/acme/web:1.5@sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

var web = receipt.Subject{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}

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

// rules trusts issuers "release" and "security" with a key named like them.
func rules(t testing.TB) *gate.Rules {
	t.Helper()
	r := &gate.Rules{Environment: "prod", Issuers: map[string]gate.Issuer{}}
	for _, name := range []string{"release", "security"} {
		r.Issuers[name] = gate.Issuer{
			Issuer:      receipt.Issuer{Name: name, Keys: []receipt.Key{signer(t, name).Key()}},
			AllSubjects: true, MaxLifetime: 90 * day,
		}
	}
	return r
}

// deployment projects Deployment shop/web with one container; spec holds
// further members of the pod spec, container further ones of the container.
func deployment(t testing.TB, img, spec, container string) *projection.Projection {
	t.Helper()
	return project(t, fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"},
		"spec":{"template":{"spec":{%s"containers":[{%s"name":"web","image":%q}]}}}}`, spec, container, img))
}

func project(t testing.TB, object string) *projection.Projection {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader([]byte(object)))
	d.UseNumber()
	var tree map[string]any
	if err := d.Decode(&tree); err != nil {
		t.Fatal(err)
	}
	p, err := projection.Project(tree)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// sign makes a receipt of issuer for p; change adjusts the claims first.
func sign(t testing.TB, issuer string, p *projection.Projection, change func(*receipt.Claims)) string {
	t.Helper()
	c := receipt.Claims{
		Issuer: issuer, Subject: web.String(), Environment: "prod", Profile: projection.Profile,
		IssuedAt: now - day, Expires: now + day, ID: "01J9" + issuer + "xxxxxxxxxxxxxxxxxxxxxx",
	}
	for _, a := range p.Applies() {
		c.Covers = append(c.Covers, string(a))
	}
	if change != nil {
		change(&c)
	}
	if c.Digest == "" {
		covers := make([]projection.Category, 0, len(c.Covers))
		for _, a := range c.Covers {
			covers = append(covers, projection.Category(a))
		}
		d, err := p.Digest(covers)
		if err != nil {
			t.Fatal(err)
		}
		c.Digest = d
	}
	compact, err := receipt.Sign(c, signer(t, issuer))
	if err != nil {
		t.Fatal(err)
	}
	return compact
}

func leaves(p *projection.Projection) map[string]string {
	out := map[string]string{}
	for _, l := range p.Leaves() {
		out[gate.LeafKey(l)] = l.ShortHash()
	}
	return out
}

func covers(cs ...string) func(*receipt.Claims) {
	return func(c *receipt.Claims) { c.Covers = cs }
}

func evaluate(r *gate.Rules, old, p *projection.Projection, receipts ...string) gate.Decision {
	return gate.Evaluate(gate.Request{Rules: r, Subject: web, Object: p, Old: old, Receipts: receipts, Now: now})
}

func reasons(d gate.Decision) []gate.Reason {
	var out []gate.Reason
	for _, f := range d.Findings {
		out = append(out, f.Reason)
	}
	return out
}
