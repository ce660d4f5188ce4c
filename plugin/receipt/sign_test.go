package receipt_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"errors"
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/plugin/internal/jcs"
	"github.com/syncgate/syncgate/plugin/receipt"
)

func goodClaims() receipt.Claims {
	return receipt.Claims{
		Issuer: "release", Subject: "apps/Deployment/shop/web", Environment: "prod", Profile: "v1",
		Covers: []string{"image", "rbac"}, Digest: "sha256:" + strings.Repeat("0a", 32),
		IssuedAt: 1767225600, Expires: 1775001600, ID: "mJ8w3Qe5R1uXz0aB7cD9fg", Release: "<1.5> & later",
	}
}

func privateKeys(t testing.TB) map[string]crypto.Signer {
	t.Helper()
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p256, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	r, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]crypto.Signer{"EdDSA": ed, "ES256": p256, "ES384": p384, "PS256": r, "RS256": r}
}

func trusting(name string, list ...receipt.Key) func(string) (receipt.Issuer, bool) {
	return func(asked string) (receipt.Issuer, bool) {
		return receipt.Issuer{Name: name, Keys: list}, asked == name
	}
}

func TestSignedReceiptsVerify(t *testing.T) {
	for alg, private := range privateKeys(t) {
		t.Run(alg, func(t *testing.T) {
			s, err := receipt.NewSigner(private, "k1", alg)
			if err != nil {
				t.Fatal(err)
			}
			// Short r and s occur once in some hundred signatures.
			for range 20 {
				compact, err := receipt.Sign(goodClaims(), s)
				if err != nil {
					t.Fatal(err)
				}
				got, err := receipt.Verify(compact, trusting("release", s.Key()))
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(goodClaims(), got.Claims()); diff != "" {
					t.Errorf("claims (-want +got):\n%s", diff)
				}
				if got.KeyID() != "k1" || got.Algorithm() != alg {
					t.Errorf("got key %q, algorithm %q, want k1, %s", got.KeyID(), got.Algorithm(), alg)
				}
				for i, part := range strings.Split(compact, ".")[:2] {
					text, err := base64.RawURLEncoding.DecodeString(part)
					if err != nil {
						t.Fatal(err)
					}
					canonical, err := jcs.Transform(text)
					if err != nil || !bytes.Equal(canonical, text) {
						t.Errorf("part %d: got %s, want the RFC 8785 bytes %s (%v)", i, text, canonical, err)
					}
				}
			}
			list := receipt.RevocationList{Issued: 1767225600, Serial: 1}
			compact, err := receipt.SignRevocations(list, "security", s)
			if err != nil {
				t.Fatal(err)
			}
			got, err := receipt.VerifyRevocations(compact, trusting("security", s.Key()))
			if err != nil {
				t.Fatal(err)
			}
			want := receipt.RevocationList{Issuer: "security", Issued: 1767225600, Serial: 1, Entries: []receipt.Revocation{}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("revocations (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSignRefusesWhatWouldNotVerify(t *testing.T) {
	s, err := receipt.NewSigner(privateKeys(t)["EdDSA"], "k1", "")
	if err != nil {
		t.Fatal(err)
	}
	leaves := map[string]string{}
	for i := range 600 {
		leaves["image "+strings.Repeat("x", i%7)+big.NewInt(int64(i)).String()] = "q83vEjRWeJA"
	}
	for _, tc := range []struct {
		name   string
		change func(*receipt.Claims)
		want   string
	}{
		{"no subject", func(c *receipt.Claims) { c.Subject = "" }, "sub: empty"},
		{"two claims at once", func(c *receipt.Claims) { c.Digest, c.ID = "", "" }, `digest: got "", want "sha256:" and 64 lower-case hexadecimal digits; jti: 0 characters`},
		{"invalid UTF-8, which encoding/json would replace", func(c *receipt.Claims) { c.Release = "a\xff" }, "release: invalid UTF-8"},
		{"too large", func(c *receipt.Claims) { c.Leaves = leaves }, "want at most 16384"},
		{"a path that is not UTF-8", func(c *receipt.Claims) { c.Leaves = map[string]string{"a\xff": "q83vEjRWeJA"} }, "leaves: path"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := goodClaims()
			tc.change(&c)
			got, err := receipt.Sign(c, s)
			if got != "" || err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %q, %v, want an error with %q", got, err, tc.want)
			}
		})
	}
	_, err = receipt.SignRevocations(receipt.RevocationList{Issued: 1, Serial: 1, Entries: make([]receipt.Revocation, 9)}, "security", s)
	if err == nil || !strings.Contains(err.Error(), "and 4 more") {
		t.Errorf("nine empty entries: got %v, want five of them and a count", err)
	}
}

// odd is a signer that does something wrong.
type odd struct {
	receipt.Signer
	alg, kid string
	key      receipt.Key
	sign     func([]byte) ([]byte, error)
}

func (o odd) Algorithm() string              { return o.alg }
func (o odd) KeyID() string                  { return o.kid }
func (o odd) Key() receipt.Key               { return o.key }
func (o odd) Sign(in []byte) ([]byte, error) { return o.sign(in) }

func TestSignChecksItsSigner(t *testing.T) {
	private := privateKeys(t)
	s, err := receipt.NewSigner(private["EdDSA"], "k1", "")
	if err != nil {
		t.Fatal(err)
	}
	other, err := receipt.NewKey("k1", private["ES256"].Public())
	if err != nil {
		t.Fatal(err)
	}
	good := odd{alg: "EdDSA", kid: "k1", key: s.Key(), sign: s.Sign}
	for _, tc := range []struct {
		name   string
		change func(*odd)
		want   string
	}{
		{"nothing wrong", func(*odd) {}, ""},
		{"a symmetric algorithm", func(o *odd) { o.alg = "HS256" }, `algorithm "HS256" is not one of`},
		{"alg none", func(o *odd) { o.alg = "none" }, `algorithm "none" is not one of`},
		{"no key ID", func(o *odd) { o.kid = "" }, "kid: empty"},
		{"the ID of another key", func(o *odd) { o.kid = "k2" }, `key ID "k2"`},
		{"another key", func(o *odd) { o.key = other }, "checking signature"},
		{"an empty signature", func(o *odd) { o.sign = func([]byte) ([]byte, error) { return nil, nil } }, "signature: empty"},
		{"the signature of something else", func(o *odd) { o.sign = func(in []byte) ([]byte, error) { return s.Sign(in[1:]) } }, "checking signature"},
		{"a failure", func(o *odd) { o.sign = func([]byte) ([]byte, error) { return nil, errors.New("token removed") } }, "making signature: token removed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := good
			tc.change(&o)
			got, err := receipt.Sign(goodClaims(), o)
			if tc.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != "" || err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %q, %v, want an error with %q", got, err, tc.want)
			}
		})
	}
	if _, err := receipt.Sign(goodClaims(), nil); err == nil {
		t.Error("signed without a signer")
	}
	if _, err := new(receipt.KeySigner).Sign(nil); err == nil {
		t.Error("the zero signer signed")
	}
}

func TestNewSignerRefusesAlgorithmsThatDoNotFit(t *testing.T) {
	private := privateKeys(t)
	for _, tc := range []struct {
		key, alg, want string
	}{
		{"EdDSA", "", "EdDSA"}, {"ES256", "", "ES256"}, {"ES384", "", "ES384"}, {"PS256", "", "PS256"},
		{"RS256", "RS256", "RS256"}, {"EdDSA", "ES256", ""}, {"ES256", "ES384", ""}, {"PS256", "HS256", ""}, {"EdDSA", "none", ""},
	} {
		s, err := receipt.NewSigner(private[tc.key], "", tc.alg)
		if (err == nil) != (tc.want != "") {
			t.Errorf("%s key for %q: got %v, want an error: %t", tc.key, tc.alg, err, tc.want == "")
			continue
		}
		if err == nil && (s.Algorithm() != tc.want || s.KeyID() != s.Key().Thumbprint) {
			t.Errorf("%s key for %q: got %s, %q, want %s and the thumbprint %q", tc.key, tc.alg, s.Algorithm(), s.KeyID(), tc.want, s.Key().Thumbprint)
		}
	}
	if _, err := receipt.NewSigner(nil, "k1", ""); err == nil {
		t.Error("made a signer without a key")
	}
}

func TestNewKeyRefusesWeakAndForeignKeys(t *testing.T) {
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	p521, err := ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	good := privateKeys(t)
	off := *good["ES256"].Public().(*ecdsa.PublicKey)
	off.Y = new(big.Int).Add(off.Y, big.NewInt(1)) //lint:ignore SA1019 how else to make a point that is off the curve
	even := *good["PS256"].Public().(*rsa.PublicKey)
	even.E = 65536
	huge := even
	huge.E, huge.N = 65537, new(big.Int).Lsh(even.N, 8000)
	for name, key := range map[string]crypto.PublicKey{
		"nil":                   nil,
		"a private key":         good["EdDSA"],
		"a secret":              []byte("secret"),
		"a short Ed25519 key":   ed25519.PublicKey(make([]byte, 31)),
		"an Ed25519 key of 0":   ed25519.PublicKey(make([]byte, 32)),
		"a nil EC key":          (*ecdsa.PublicKey)(nil),
		"an empty EC key":       &ecdsa.PublicKey{},
		"P-521":                 p521.Public(),
		"a point off the curve": &off,
		"a nil RSA key":         (*rsa.PublicKey)(nil),
		"an empty RSA key":      &rsa.PublicKey{},
		"RSA of 1024 bits":      small.Public(),
		"RSA of 10000 bits":     &huge,
		"an even exponent":      &even,
	} {
		if got, err := receipt.NewKey("k1", key); err == nil {
			t.Errorf("%s: got %v, want an error", name, got)
		}
	}
	for _, id := range []string{"a\nb", " a", strings.Repeat("a", 257), "a\xff"} {
		if _, err := receipt.NewKey(id, good["EdDSA"].Public()); err == nil {
			t.Errorf("accepted the key ID %q", id)
		}
	}
}

func TestRawECDSARefusesWhatIsNotOneSignature(t *testing.T) {
	for name, der := range map[string][]byte{
		"empty":            nil,
		"trailing data":    {0x30, 6, 2, 1, 1, 2, 1, 1, 0},
		"zero":             {0x30, 6, 2, 1, 0, 2, 1, 1},
		"negative":         {0x30, 6, 2, 1, 0xff, 2, 1, 1},
		"one integer":      {0x30, 3, 2, 1, 1},
		"past 32 bytes":    append([]byte{0x30, 38, 2, 33, 1}, append(make([]byte, 32), 2, 1, 1)...),
		"not an ASN.1 tag": bytes.Repeat([]byte{0xff}, 70),
	} {
		if got, err := receipt.RawECDSA(der, "ES256"); err == nil {
			t.Errorf("%s: got %x, want an error", name, got)
		}
	}
	got, err := receipt.RawECDSA([]byte{0x30, 6, 2, 1, 1, 2, 1, 2}, "ES384")
	if err != nil || len(got) != 96 || got[47] != 1 || got[95] != 2 {
		t.Errorf("got %x, %v, want 1 and 2 in 48 bytes each", got, err)
	}
	if _, err := receipt.RawECDSA([]byte{0x30, 6, 2, 1, 1, 2, 1, 2}, "EdDSA"); err == nil {
		t.Error("made an ECDSA signature for EdDSA")
	}
}
