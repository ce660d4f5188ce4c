package harness

import (
	"bytes"
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
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
	// Extra are files beside the policy and the key sets, such as a revocation
	// list; they appear with the next SwapPolicy.
	Extra map[string]string

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
	maps.Copy(files, p.Extra)
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

// compact is a receipt in a stream of manifests.
var compact = regexp.MustCompile(`eyJ[\w-]+\.eyJ[\w-]+\.[\w-]+`)

// Reclaim signs the signer's receipts in manifests again with other claims, which
// the program would not write: times that are past, say. The key is an Ed25519
// one, as NewSigner makes it.
func (s *Signer) Reclaim(manifests string, change func(claims map[string]any)) string {
	s.T.Helper()
	return compact.ReplaceAllStringFunc(manifests, func(receipt string) string {
		parts := strings.Split(receipt, ".")
		payload, err := base64.RawURLEncoding.DecodeString(parts[1])
		if err != nil {
			s.T.Fatal(err)
		}
		var claims map[string]any
		decoder := json.NewDecoder(bytes.NewReader(payload))
		decoder.UseNumber()
		if err := decoder.Decode(&claims); err != nil {
			s.T.Fatal(err)
		}
		if claims["iss"] != s.Name {
			return receipt
		}
		change(claims)
		var canonical bytes.Buffer // names sorted, nothing escaped: RFC 8785 for what receipts hold
		encoder := json.NewEncoder(&canonical)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(claims); err != nil {
			s.T.Fatal(err)
		}
		input := parts[0] + "." + base64.RawURLEncoding.EncodeToString(bytes.TrimSpace(canonical.Bytes()))
		signature, err := s.private().Sign(nil, []byte(input), crypto.Hash(0))
		if err != nil {
			s.T.Fatal(err)
		}
		return input + "." + base64.RawURLEncoding.EncodeToString(signature)
	})
}

func (s *Signer) private() crypto.Signer {
	s.T.Helper()
	block, _ := pem.Decode(s.readFile(s.Key))
	if block == nil {
		s.T.Fatalf("%s holds no PEM", s.Key)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		s.T.Fatal(err)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		s.T.Fatalf("%s holds a %T", s.Key, key)
	}
	return signer
}

// Image is a reference with a tag and a digest that is always the same for it,
// such as "web:1". No registry has it.
func Image(name string) string {
	if !strings.Contains(name, ":") {
		name += ":1"
	}
	return fmt.Sprintf("registry.example.test/%s@sha256:%x", name, sha256.Sum256([]byte(name)))
}
