package receipt_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/plugin/receipt"
)

// One receipt for each algorithm.
var byAlgorithm = []string{"valid_eddsa", "valid_es256", "valid_es384", "valid_ps256", "valid_rs256"}

func TestVerifyReturnsWhatWasSigned(t *testing.T) {
	want := receipt.Claims{
		Issuer: "release", Subject: "apps/Deployment/shop/web", Environment: "prod", Profile: "v1",
		Covers: []string{"command", "image"}, Digest: "sha256:5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef",
		IssuedAt: 1767225600, NotBefore: 1767229200, Expires: 1775001600, ID: "mJ8w3Qe5R1uXz0aB7cD9fg",
		Release: "1.5", Approver: "Alice Example, change 4711", Leaves: map[string]string{"image containers[web].image": "q83vEjRWeJA"},
	}
	issuers := issuersOf(t, "standard")
	got, err := receipt.Verify(vector(t, "valid_every_claim").Raw, issuers)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.Claims()); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
	release, _ := issuers("release")
	if got.KeyID() != "release-ed" || got.Algorithm() != "EdDSA" || got.Thumbprint() != release.Keys[0].Thumbprint {
		t.Errorf("got key %q, algorithm %q, thumbprint %q", got.KeyID(), got.Algorithm(), got.Thumbprint())
	}
	got.Claims().Covers[0] = "rbac"
	got.Claims().Leaves["image containers[web].image"] = ""
	if diff := cmp.Diff(want, got.Claims()); diff != "" {
		t.Errorf("claims after a caller changed its copy (-want +got):\n%s", diff)
	}
	unverified, err := receipt.ParseUnverified(vector(t, "valid_every_claim").Raw)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(receipt.Unverified{Claims: want, KeyID: "release-ed", Algorithm: "EdDSA"}, unverified); diff != "" {
		t.Errorf("unverified (-want +got):\n%s", diff)
	}
}

func TestVerifyAfterAnyByteChanged(t *testing.T) {
	issuers := issuersOf(t, "standard")
	for _, name := range byAlgorithm {
		good := vector(t, name).Raw
		if _, err := receipt.Verify(good, issuers); err != nil {
			t.Fatal(err)
		}
		for i := range good {
			for _, c := range []byte{good[i] + 1, good[i] - 1, good[i] ^ 0x20, good[i] ^ 0x80, '.', 0} {
				if c == good[i] {
					continue
				}
				bad := good[:i] + string([]byte{c}) + good[i+1:]
				if _, err := receipt.Verify(bad, issuers); err == nil {
					t.Errorf("%s: verified with byte %d %q instead of %q", name, i, c, good[i])
				}
			}
		}
	}
}

func TestVerifyAfterAnyCut(t *testing.T) {
	issuers := issuersOf(t, "standard")
	for _, name := range byAlgorithm {
		good := vector(t, name).Raw
		for i := range good {
			for what, bad := range map[string]string{
				"prefix": good[:i], "suffix": good[i+1:], "without a byte": good[:i] + good[i+1:],
				"with a byte twice": good[:i+1] + good[i:], "with an A": good[:i] + "A" + good[i:],
			} {
				if _, err := receipt.Verify(bad, issuers); err == nil && bad != good {
					t.Errorf("%s: verified %s at %d", name, what, i)
				}
			}
		}
		if _, err := receipt.Verify(good+"A", issuers); err == nil {
			t.Errorf("%s: verified with an A at the end", name)
		}
	}
}

func TestVerifyKnowsNobodyWithoutIssuers(t *testing.T) {
	good := vector(t, "valid_eddsa").Raw
	known, _ := issuersOf(t, "standard")("release")
	twice := known
	twice.Keys = []receipt.Key{known.Keys[0], known.Keys[1], known.Keys[0]}
	noKey := known
	noKey.Keys = []receipt.Key{{ID: "release-ed"}}
	for _, tc := range []struct {
		name    string
		issuers func(string) (receipt.Issuer, bool)
		want    receipt.Kind
	}{
		{"no lookup", nil, receipt.IssuerUnknown},
		{"found, but said not to be", func(string) (receipt.Issuer, bool) { return known, false }, receipt.IssuerUnknown},
		{"an issuer without keys", func(string) (receipt.Issuer, bool) { return receipt.Issuer{}, true }, receipt.KeyUnknown},
		{"one key ID for two keys", func(string) (receipt.Issuer, bool) { return twice, true }, receipt.KeyUnknown},
		{"a key that holds no key", func(string) (receipt.Issuer, bool) { return noKey, true }, receipt.AlgorithmNotAllowed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := receipt.Verify(good, tc.issuers)
			if got := outcome(t, err); got != string(tc.want) {
				t.Errorf("got %s (%v), want %s", got, err, tc.want)
			}
		})
	}
}

func TestSizesAreBounded(t *testing.T) {
	if got := len(vector(t, "valid_largest").Raw); got != receipt.MaxSize {
		t.Errorf("valid_largest has %d bytes, want %d", got, receipt.MaxSize)
	}
	if got := len(vector(t, "shape_too_large").Raw); got != receipt.MaxSize+1 {
		t.Errorf("shape_too_large has %d bytes, want %d", got, receipt.MaxSize+1)
	}
	good := vector(t, "valid_eddsa").Raw
	for name, huge := range map[string]string{
		"letters":  strings.Repeat("A", 1<<20),
		"dots":     strings.Repeat(".", 1<<20),
		"receipts": strings.Repeat(good+".", 1<<20/len(good)),
	} {
		_, err := receipt.Verify(huge, issuersOf(t, "standard"))
		if err == nil || !strings.Contains(err.Error(), "want at most 16384") {
			t.Errorf("1 MB of %s: got %v, want an error about the size", name, err)
		}
		_, err = receipt.VerifyRevocations(huge+huge, issuersOf(t, "standard"))
		if err == nil || !strings.Contains(err.Error(), "want at most 1048576") {
			t.Errorf("2 MB of %s as a revocation list: got %v, want an error about the size", name, err)
		}
	}
}

func TestValidateReportsEveryClaim(t *testing.T) {
	err := receipt.Claims{Generated: true, NotBefore: -1}.Validate()
	if err == nil {
		t.Fatal("got no error")
	}
	last := -1
	for _, claim := range []string{"iss: ", "sub: ", "environment: ", "profile: ", "covers: ", "digest: ", "iat: ", "exp: ", "nbf: ", "jti: "} {
		at := strings.Index(err.Error(), claim)
		if at <= last {
			t.Errorf("got %q, want %q in the order of the table", err, claim)
		}
		last = at
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("got %q, want one line", err)
	}
}

// FuzzVerify: what verifies has one spelling and well-formed claims, and says
// the same to those who only read it.
func FuzzVerify(f *testing.F) {
	for _, v := range all(f) {
		f.Add(v.Raw)
	}
	standard := issuersOf(f, "standard")
	f.Fuzz(func(t *testing.T, compact string) {
		unverified, readErr := receipt.ParseUnverified(compact)
		verified, err := receipt.Verify(compact, standard)
		if err != nil {
			if got := verified.Claims().Issuer; got != "" {
				t.Errorf("claims of %q beside an error", got)
			}
			return
		}
		if readErr != nil {
			t.Errorf("verifies and cannot be read: %v", readErr)
		}
		parts := strings.Split(compact, ".")
		for i, part := range parts {
			b, err := base64.RawURLEncoding.DecodeString(part)
			if err != nil {
				t.Fatal(err)
			}
			parts[i] = base64.RawURLEncoding.EncodeToString(b)
		}
		if again := strings.Join(parts, "."); again != compact {
			t.Errorf("got %q, which encodes again to %q", compact, again)
		}
		if err := verified.Claims().Validate(); err != nil {
			t.Errorf("verified claims: %v", err)
		}
		if diff := cmp.Diff(verified.Claims(), unverified.Claims); diff != "" {
			t.Errorf("claims (-verified +unverified):\n%s", diff)
		}
		// encoding/json, which is laxer, must not see anything else.
		payload, err := base64.RawURLEncoding.DecodeString(parts[1])
		if err != nil {
			t.Fatal(err)
		}
		var lax receipt.Claims
		if err := json.Unmarshal(payload, &lax); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(verified.Claims(), lax); diff != "" {
			t.Errorf("claims (-verified +encoding/json):\n%s", diff)
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	issuers := issuersOf(b, "standard")
	for _, name := range byAlgorithm {
		compact := vector(b, name).Raw
		b.Run(strings.TrimPrefix(name, "valid_"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := receipt.Verify(compact, issuers); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	compact := vector(b, "valid_eddsa").Raw
	// What eddsa is to be compared with.
	b.Run("bare ed25519.Verify", func(b *testing.B) {
		release, _ := issuers("release")
		public, ok := release.Keys[0].Public.(ed25519.PublicKey)
		last := strings.LastIndexByte(compact, '.')
		signature, err := base64.RawURLEncoding.DecodeString(compact[last+1:])
		if err != nil || !ok {
			b.Fatal(ok, err)
		}
		for b.Loop() {
			if !ed25519.Verify(public, []byte(compact[:last]), signature) {
				b.Fatal("not verified")
			}
		}
	})
	b.Run("unverified", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := receipt.ParseUnverified(compact); err != nil {
				b.Fatal(err)
			}
		}
	})
}
