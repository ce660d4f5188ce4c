package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/syncgate/syncgate/plugin/internal/jcs"
	"github.com/syncgate/syncgate/plugin/keys"
	"github.com/syncgate/syncgate/plugin/receipt"
)

// vector is one file. The zero values of kind, issuers and opaque are those of
// most vectors.
type vector struct {
	name, expect, comment string
	kind                  string // "receipt" or "revocations"
	issuers               string // name of a file in issuers/
	opaque                bool   // not even ParseUnverified reads it
	raw                   string
}

func (v vector) file() []byte {
	if v.kind == "" {
		v.kind = "receipt"
	}
	if v.issuers == "" {
		v.issuers = "standard"
	}
	unverified := "readable"
	if v.opaque {
		unverified = "unreadable"
	}
	return fmt.Appendf(nil, "expect: %s\ncomment: %s\nkind: %s\nissuers: %s\nunverified: %s\n\n%s",
		v.expect, v.comment, v.kind, v.issuers, unverified, v.raw)
}

// generate returns the files by name.
func generate() (map[string][]byte, error) {
	r, err := newRing()
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, set := range issuerSets(r) {
		files["issuers/"+set.name+".json"], err = set.file()
		if err != nil {
			return nil, err
		}
	}
	m := maker{ring: r}
	for _, list := range [][]vector{m.valid(), m.shape(), m.header(), m.payload(), m.claimsVectors(), m.trust(), m.signature(), m.revocations()} {
		for _, v := range list {
			name := v.name + ".txt"
			if _, twice := files[name]; twice {
				return nil, fmt.Errorf("vector %q twice", v.name)
			}
			files[name] = v.file()
		}
	}
	return files, m.err
}

type issuerSet struct {
	name    string
	issuers []issuerKeys
}

type issuerKeys struct {
	name       string
	algorithms []string
	keys       []receipt.Key
}

func issuerSets(r ring) []issuerSet {
	release := []receipt.Key{r.ed.Key(), r.es256.Key(), r.es384.Key(), r.ps256.Key(), r.rs256.Key()}
	// One key says which algorithm it is for, the other does not.
	release[3].Algorithm = "PS256"
	security := issuerKeys{"security", []string{}, []receipt.Key{r.security.Key()}}
	return []issuerSet{
		{"standard", []issuerKeys{{"release", []string{}, release}, security}},
		{"narrow", []issuerKeys{{"release", []string{"ES256"}, release}, security}},
		{"revokers", []issuerKeys{security}},
	}
}

func (s issuerSet) file() ([]byte, error) {
	list := []any{}
	for _, i := range s.issuers {
		set, err := keys.PublicJWKS(i.keys)
		if err != nil {
			return nil, err
		}
		tree, err := jcs.Decode(set)
		if err != nil {
			return nil, err
		}
		list = append(list, map[string]any{"algorithms": i.algorithms, "jwks": tree, "name": i.name})
	}
	text, err := json.MarshalIndent(map[string]any{"issuers": list}, "", "  ")
	return append(text, '\n'), err
}

// maker makes receipts that receipt.Sign would refuse to make. The first error
// stays in err.
type maker struct {
	ring
	err error
}

// standardClaims are those of every receipt that does not test a claim.
func standardClaims() receipt.Claims {
	return receipt.Claims{
		Issuer:      "release",
		Subject:     "apps/Deployment/shop/web",
		Environment: "prod",
		Profile:     "v1",
		Covers:      []string{"command", "image"},
		Digest:      "sha256:5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef",
		IssuedAt:    1767225600, // 2026-01-01T00:00:00Z
		Expires:     1775001600, // 2026-04-01T00:00:00Z
		ID:          "mJ8w3Qe5R1uXz0aB7cD9fg",
		Release:     "1.5",
	}
}

func (m *maker) note(err error) {
	if m.err == nil && err != nil {
		m.err = err
	}
}

// claims encodes the standard claims after a change.
func (m *maker) claims(change func(*receipt.Claims)) string {
	c := standardClaims()
	change(&c)
	text, err := json.Marshal(c)
	m.note(err)
	text, err = jcs.Transform(text)
	m.note(err)
	return string(text)
}

// edited encodes the standard claims with members set, or removed where the
// value is nil. A json.RawMessage stands as it is.
func (m *maker) edited(members map[string]any) string {
	tree, err := jcs.Decode([]byte(m.standard()))
	m.note(err)
	object, ok := tree.(map[string]any)
	if !ok {
		m.note(fmt.Errorf("claims are a %T", tree))
		return ""
	}
	for name, value := range members {
		object[name] = value
		if value == nil {
			delete(object, name)
		}
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	m.note(encoder.Encode(object))
	return string(bytes.TrimSpace(out.Bytes()))
}

func (m *maker) standard() string { return m.claims(func(*receipt.Claims) {}) }

func protected(alg, kid, typ string) string {
	return fmt.Sprintf(`{"alg":%q,"kid":%q,"typ":%q}`, alg, kid, typ)
}

func headerOf(s *receipt.KeySigner) string {
	return protected(s.Algorithm(), s.KeyID(), receipt.Type)
}

func b64(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

// signed signs any header over any payload.
func (m *maker) signed(s *receipt.KeySigner, header, payload string) string {
	input := b64(header) + "." + b64(payload)
	signature, err := s.Sign([]byte(input))
	m.note(err)
	return input + "." + b64(string(signature))
}

// plain is the receipt of the standard claims.
func (m *maker) plain(s *receipt.KeySigner) string {
	return m.signed(s, headerOf(s), m.standard())
}
