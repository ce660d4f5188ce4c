package keys

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/syncgate/syncgate/plugin/receipt"
)

func claims() receipt.Claims {
	return receipt.Claims{
		Issuer: "release", Subject: "apps/Deployment/shop/web", Environment: "prod", Profile: "v1",
		Covers: []string{"image"}, Digest: "sha256:" + strings.Repeat("0a", 32),
		IssuedAt: 1767225600, Expires: 1775001600, ID: "mJ8w3Qe5R1uXz0aB7cD9fg",
	}
}

func TestNewKeysGoThroughFilesAndVerify(t *testing.T) {
	var public []receipt.Key
	var issuer receipt.Issuer
	var receipts []string
	for _, alg := range []string{"EdDSA", "ES256", "ES384", "PS256"} {
		private, kid, err := New(alg)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "key.pem")
		err = WritePrivate(path, private)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != 0o600 {
			t.Errorf("%s: got mode %o, want 600", alg, got)
		}
		s, err := ReadSigner(path, "")
		if err != nil {
			t.Fatal(err)
		}
		if s.KeyID() != kid || s.Key().Thumbprint != kid || s.Algorithm() != alg {
			t.Errorf("%s: got key %q, thumbprint %q, %s, want the key ID %q", alg, s.KeyID(), s.Key().Thumbprint, s.Algorithm(), kid)
		}
		compact, err := receipt.Sign(claims(), s)
		if err != nil {
			t.Fatal(err)
		}
		receipts = append(receipts, compact)
		public = append(public, s.Key())
	}
	set, err := PublicJWKS(public)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "keys.json")
	err = os.WriteFile(path, set, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	issuer.Keys, err = ReadJWKS(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, compact := range receipts {
		_, err := receipt.Verify(compact, func(string) (receipt.Issuer, bool) { return issuer, true })
		if err != nil {
			t.Error(err)
		}
	}
}

func TestLoadSignerReadsEveryForm(t *testing.T) {
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	r, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	sec1, err := x509.MarshalECPrivateKey(ec)
	ecPEM := pemOf(t, "EC PRIVATE KEY", sec1, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(r)
	rsaPEM := pemOf(t, "PRIVATE KEY", pkcs8, err)
	rsaJWK, err := json.Marshal(jose.JSONWebKey{Key: r, KeyID: "jwk", Algorithm: "RS256"})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, in, kid   string
		wantID, wantAlg string
	}{
		{"private JWK", rfcPrivate, "", rfcThumbprint, "EdDSA"},
		{"private JWK with a name", rfcPrivate, "release", "release", "EdDSA"},
		{"RSA JWK with alg and kid", string(rsaJWK), "", "jwk", "RS256"},
		{"the same kid twice", string(rsaJWK), "jwk", "jwk", "RS256"},
		{"SEC 1", ecPEM, "k1", "k1", "ES256"},
		{"SEC 1 after the name of the curve", pemOf(t, "EC PARAMETERS", []byte{6, 1, 1}, nil) + ecPEM, "k1", "k1", "ES256"},
		{"PKCS #8", rsaPEM, "k1", "k1", "PS256"},
		{"PKCS #1", pemOf(t, "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(r), nil), "k1", "k1", "PS256"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := LoadSigner([]byte(tc.in), tc.kid)
			if err != nil {
				t.Fatal(err)
			}
			if got.KeyID() != tc.wantID || got.Algorithm() != tc.wantAlg {
				t.Errorf("got %q, %s, want %q, %s", got.KeyID(), got.Algorithm(), tc.wantID, tc.wantAlg)
			}
			_, err = receipt.Sign(claims(), got)
			if err != nil {
				t.Error(err)
			}
		})
	}
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, in, kid, want string
	}{
		{"empty", "", "", "neither PEM nor a private JWK"},
		{"a public JWK", rfcPublic, "", "without d"},
		{"another kid", string(rsaJWK), "other", `got kid "jwk", want "other"`},
		{"two keys", ecPEM + rsaPEM, "", "got 2 PEM blocks"},
		{"a public key", pemOf(t, "PUBLIC KEY", []byte{1}, nil), "", `got a PEM block "PUBLIC KEY"`},
		{"encrypted PKCS #8", pemOf(t, "ENCRYPTED PRIVATE KEY", []byte{1}, nil), "", "is encrypted"},
		{"encrypted the old way", "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nMIIB\n-----END RSA PRIVATE KEY-----\n", "", "is encrypted"},
		{"OpenSSH", pemOf(t, "OPENSSH PRIVATE KEY", []byte{1}, nil), "", "OPENSSH PRIVATE KEY"},
		{"RSA of 1024 bits", pemOf(t, "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(small), nil), "", "1024"},
		{"a symmetric key", `{"kty":"oct","k":"c2VjcmV0"}`, "", "without d"},
		{"d of another key", strings.Replace(rfcPrivate, "11qYAY", "11qYAX", 1), "", "parsing private key"},
		{"duplicate members", strings.Replace(rfcPrivate, "{", `{"kty":"OKP",`, 1), "", "neither PEM"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := LoadSigner([]byte(tc.in), tc.kid)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, %v, want an error with %q", got, err, tc.want)
			}
		})
	}
}

func TestErrorsHoldNoPartOfAPrivateKey(t *testing.T) {
	secret := "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"
	for name, in := range map[string]string{
		"as the name of a member":   strings.Replace(rfcPrivate, `"d":"`+secret, `"`+secret+`":"d`, 1),
		"with padding":              strings.Replace(rfcPrivate, secret, secret+"=", 1),
		"in an unknown member":      strings.Replace(rfcPrivate, `"d"`, `"secret"`, 1),
		"not closed":                strings.TrimSuffix(rfcPrivate, `"}`),
		"under another type":        strings.Replace(rfcPrivate, "OKP", "EC", 1),
		"in a public set":           `{"keys":[` + rfcPrivate + `]}`,
		"bare":                      secret,
		"in a PEM block without it": "-----BEGIN PRIVATE KEY-----\n" + secret + "\n-----END PRIVATE KEY-----\n",
	} {
		_, err := LoadSigner([]byte(in), "")
		_, publicErr := LoadJWKS([]byte(in))
		for _, err := range []error{err, publicErr} {
			if err == nil || strings.Contains(err.Error(), secret[:12]) {
				t.Errorf("%s: got %v, want an error without the key", name, err)
			}
		}
	}
}

func TestFilesAreBoundedAndNamed(t *testing.T) {
	dir := t.TempDir()
	huge := filepath.Join(dir, "huge.json")
	err := os.WriteFile(huge, bytes.Repeat([]byte(" "), maxFile+1), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(dir, "broken.json")
	err = os.WriteFile(broken, []byte("{"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{huge, broken, filepath.Join(dir, "missing.json"), dir} {
		_, err := ReadJWKS(path)
		_, privateErr := ReadSigner(path, "")
		for _, err := range []error{err, privateErr} {
			if err == nil || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v, want an error that names %s", err, path)
			}
		}
	}
	if _, err := ReadJWKS(filepath.Join(dir, "missing.json")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want fs.ErrNotExist", err)
	}
}

func TestWritePrivateNeverOverwrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key.pem")
	err := os.WriteFile(path, []byte("the only copy"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	private, _, err := New("EdDSA")
	if err != nil {
		t.Fatal(err)
	}
	err = WritePrivate(path, private)
	if !errors.Is(err, fs.ErrExist) {
		t.Errorf("got %v, want fs.ErrExist", err)
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != "the only copy" {
		t.Errorf("got %q, %v, want the file untouched", got, err)
	}
	if _, _, err := New("HS256"); err == nil {
		t.Error("made a symmetric key")
	}
}
