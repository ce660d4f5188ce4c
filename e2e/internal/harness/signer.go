package harness

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Signer is an issuer of receipts with a key of its own.
type Signer struct {
	*Env
	Name string
	Key  string // file of the private key (PEM)
	JWKS string // the key set (JSON)

	syncgate string
	signed   int
}

// NewSigner makes the key of an issuer with the program under test.
func NewSigner(e *Env, b Binaries, name string) *Signer {
	e.T.Helper()
	s := &Signer{Env: e, Name: name, Key: e.Path("keys", name+".pem"), syncgate: b.Syncgate}
	e.Run(e.Dir, nil, s.syncgate, "keys", "new", "--out", s.Key)
	s.JWKS = string(e.Run(e.Dir, nil, s.syncgate, "keys", "jwks", s.Key))
	return s
}

// Policy is a policy as its ConfigMap is mounted: policy.yaml, and the key set
// of each signer as NAME.jwks.json. It may be swapped.
type Policy struct {
	*Mount

	signers []*Signer
}

// BasicPolicy is the least policy: what the issuers sign is allowed, in the
// environment prod.
func BasicPolicy(issuers ...string) string {
	text := `apiVersion: syncgate.io/v1alpha1
kind: GatePolicy
environment: prod
issuers:
`
	for _, name := range issuers {
		text += fmt.Sprintf("- name: %s\n  keys: {file: %[1]s.jwks.json}\n  subjects: [\"*/*/*/*\"]\n", name)
	}
	return text
}

// NewPolicy mounts a policy.
func NewPolicy(e *Env, name, text string, signers ...*Signer) *Policy {
	e.T.Helper()
	p := &Policy{signers: signers}
	p.Mount = NewMount(e, name, p.files(text))
	return p
}

// SwapPolicy puts another text, and other signers, in the place of the policy's.
func (p *Policy) SwapPolicy(text string, signers ...*Signer) {
	p.T.Helper()
	p.signers = signers
	p.Swap(p.files(text))
}

// Path is the policy file.
func (p *Policy) Path() string { return p.File("policy.yaml") }

func (p *Policy) files(text string) map[string]string {
	files := map[string]string{"policy.yaml": text}
	for _, s := range p.signers {
		files[s.Name+".jwks.json"] = s.JWKS
	}
	return files
}

// Sign signs manifests (YAML; their images have digests, see Image) as an
// application of their own and returns them as a sync applies them: every
// receipt stamped, that of a CronJob in its job template too. namespace is for
// objects that name none. flags are those of syncgate sign.
func (s *Signer) Sign(p *Policy, manifests, namespace string, flags ...string) string {
	s.T.Helper()
	s.signed++
	return s.SignApp(p, fmt.Sprintf("%s-%d", s.Name, s.signed), manifests, namespace, flags...)
}

// SignApp is Sign for an application that is signed more than once. The lock of
// the last time is there: it has the receipts of other signers, and the previous
// one of each object, which is stamped beside the current one.
func (s *Signer) SignApp(p *Policy, app, manifests, namespace string, flags ...string) string {
	s.T.Helper()
	dir := s.Mkdir(filepath.Join("apps", app))
	if err := os.WriteFile(filepath.Join(dir, "manifests.yaml"), []byte(manifests), 0o600); err != nil {
		s.T.Fatal(err)
	}
	where := []string{"--policy", p.Path(), "--namespace", namespace}
	s.Run(dir, nil, s.syncgate, append(append([]string{"sign", "--key", s.Key, "--issuer", s.Name, "--yes"}, where...), flags...)...)
	return string(s.Run(dir, nil, s.syncgate, append([]string{"render"}, where...)...))
}

// Image is a reference with a tag and a digest that is always the same for it,
// such as "web:1". No registry has it.
func Image(name string) string {
	if !strings.Contains(name, ":") {
		name += ":1"
	}
	return fmt.Sprintf("registry.example.test/%s@sha256:%x", name, sha256.Sum256([]byte(name)))
}
