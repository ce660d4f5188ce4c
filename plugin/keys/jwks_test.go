package keys

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/plugin/receipt"
)

// The Ed25519 key of RFC 8037, appendix A, and its thumbprint.
const (
	rfcPublic     = `{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","kid":"release"}`
	rfcPrivate    = `{"kty":"OKP","crv":"Ed25519","d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}`
	rfcThumbprint = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"
)

func TestLoadJWKSKnowsTheThumbprintOfRFC8037(t *testing.T) {
	got, err := LoadJWKS([]byte(`{"keys":[` + rfcPublic + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	public, err := base64.RawURLEncoding.DecodeString("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo")
	if err != nil {
		t.Fatal(err)
	}
	want := []receipt.Key{{ID: "release", Public: ed25519.PublicKey(public), Thumbprint: rfcThumbprint}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}

func TestPublicJWKSIsTheSameForTheSameKeys(t *testing.T) {
	a, err := LoadJWKS([]byte(`{"keys":[` + rfcPublic + `,` + strings.Replace(rfcPublic, "release", "b", 1) + `,` + strings.Replace(rfcPublic, "release", "<a>", 1) + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"keys":[
{"crv":"Ed25519","kid":"<a>","kty":"OKP","use":"sig","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"},
{"crv":"Ed25519","kid":"b","kty":"OKP","use":"sig","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"},
{"crv":"Ed25519","kid":"release","kty":"OKP","use":"sig","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}
]}
`
	for _, list := range [][]receipt.Key{{a[0], a[1], a[2]}, {a[2], a[0], a[1]}, {a[1], a[2], a[0]}} {
		got, err := PublicJWKS(list)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("JWK set (-want +got):\n%s", diff)
		}
	}
	for name, list := range map[string][]receipt.Key{"no keys": nil, "a key twice": {a[0], a[0]}, "a key without an ID": {{Public: a[0].Public}}, "an ID without a key": {{ID: "a"}}} {
		if got, err := PublicJWKS(list); err == nil {
			t.Errorf("%s: got %s, want an error", name, got)
		}
	}
}

// publicJWK is a member of a set with members set or removed (nil).
func publicJWK(t *testing.T, key crypto.PublicKey, members map[string]any) string {
	t.Helper()
	text, err := json.Marshal(jose.JSONWebKey{Key: key, KeyID: "k1"})
	if err != nil {
		t.Fatal(err)
	}
	object := map[string]any{}
	err = json.Unmarshal(text, &object)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range members {
		object[name] = value
		if value == nil {
			delete(object, name)
		}
	}
	text, err = json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return `{"keys":[` + string(text) + `]}`
}

func TestLoadJWKSRefusesByName(t *testing.T) {
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p521, err := ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	big, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	with := func(name string, value any) string { return publicJWK(t, ec.Public(), map[string]any{name: value}) }
	for _, tc := range []struct {
		name, in, want string
	}{
		{"empty", "", "unexpected end"},
		{"YAML", "keys: []", "unexpected byte"},
		{"no keys", `{"keys":[]}`, "no keys"},
		{"no member keys", `{}`, "no keys"},
		{"a single key", rfcPublic, "unknown member"},
		{"duplicate members", `{"keys":[],"keys":[` + rfcPublic + `]}`, "duplicate member"},
		{"wrong case", `{"Keys":[` + rfcPublic + `]}`, `unknown member "Keys"`},
		{"trailing data", `{"keys":[` + rfcPublic + `]}{}`, "trailing data"},
		{"unknown member of a key", with("x5c", []string{"MIIB"}), `unknown member "x5c"`},
		{"no kid", with("kid", nil), "kid missing"},
		{"an empty kid", with("kid", ""), "kid missing"},
		{"a kid that cannot be printed", with("kid", "a\nb"), "key ID"},
		{"a kid twice", `{"keys":[` + rfcPublic + `,` + rfcPublic + `]}`, `duplicate key ID "release"`},
		{"a private EC key", with("d", "AQAB"), "private key in a public key set"},
		{"a private RSA key", publicJWK(t, big.Public(), map[string]any{"dp": "AQAB"}), "private key in a public key set"},
		{"a symmetric key", `{"keys":[{"kty":"oct","k":"c2VjcmV0","kid":"k1"}]}`, "symmetric key"},
		{"a symmetric member", with("k", "c2VjcmV0"), "symmetric key"},
		{"for encryption", with("use", "enc"), `want "sig"`},
		{"for signing operations", with("key_ops", []string{"sign"}), `want "verify"`},
		{"alg of another curve", with("alg", "ES384"), "does not fit"},
		{"a symmetric alg", with("alg", "HS256"), "does not fit"},
		{"P-521", publicJWK(t, p521.Public(), nil), "neither P-256 nor P-384"},
		{"RSA of 1024 bits", publicJWK(t, small.Public(), nil), "RSA key of 1024 bits"},
		{"X25519", `{"keys":[{"kty":"OKP","crv":"X25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","kid":"k1"}]}`, `crv "X25519"`},
		{"no kty", with("kty", nil), "kty"},
		{"no x", with("x", nil), "kty"},
		{"a point off the curve", with("y", base64.RawURLEncoding.EncodeToString(make([]byte, 32))), "kty"},
		{"padding", strings.Replace(`{"keys":[`+rfcPublic+`]}`, "HURo", "HURo=", 1), "x: illegal base64"},
		{"trailing bits", strings.Replace(`{"keys":[`+rfcPublic+`]}`, "HURo", "HURp", 1), "x: illegal base64"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := LoadJWKS([]byte(tc.in))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, %v, want an error with %q", got, err, tc.want)
			}
		})
	}
	for _, in := range []string{publicJWK(t, big.Public(), map[string]any{"alg": "RS256", "use": "sig", "key_ops": []string{"verify"}}), publicJWK(t, ec.Public(), nil)} {
		if _, err := LoadJWKS([]byte(in)); err != nil {
			t.Errorf("a good key: %v", err)
		}
	}
}

func pemOf(t *testing.T, typ string, der []byte, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: typ, Bytes: der}))
}

func TestLoadJWKSReadsPublicPEM(t *testing.T) {
	signer, err := LoadSigner([]byte(rfcPrivate), "")
	if err != nil {
		t.Fatal(err)
	}
	ec, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(signer.Key().Public)
	first := pemOf(t, "PUBLIC KEY", der, err)
	der, err = x509.MarshalPKIXPublicKey(ec.Public())
	second := pemOf(t, "PUBLIC KEY", der, err)
	der, err = x509.MarshalPKCS8PrivateKey(ec)
	private := pemOf(t, "PRIVATE KEY", der, err)
	got, err := LoadJWKS([]byte("\n" + first + second))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0].ID != rfcThumbprint || got[0].Thumbprint != rfcThumbprint || got[1].ID != got[1].Thumbprint {
		t.Errorf("got %v, want two keys with their thumbprints for IDs", got)
	}
	for _, tc := range []struct {
		name, in, want string
	}{
		{"a private key", first + private, "PEM block 2: private key in a public key file"},
		{"a certificate", strings.ReplaceAll(first, "PUBLIC KEY", "CERTIFICATE"), `got "CERTIFICATE"`},
		{"the same key twice", first + first, "duplicate key ID"},
		{"a damaged second block", first + strings.Replace(second, "\n", "\n!", 1), "damaged"},
		{"a damaged block before a good one", strings.Replace(second, "\n", "\n!", 1) + first, "damaged"},
		{"a second block without its end", first + "-----BEGIN PUBLIC KEY-----\n", "damaged"},
		{"trailing data", first + "more", "damaged or trailing"},
		{"rubbish inside", strings.Replace(first, "MC", "MA", 1), "PEM block 1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := LoadJWKS([]byte(tc.in))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, %v, want an error with %q", got, err, tc.want)
			}
		})
	}
}
