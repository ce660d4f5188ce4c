package receipt_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/syncgate/syncgate/plugin/receipt"
)

// The receipt of the package documentation.
const exampleReceipt = "" +
	"eyJhbGciOiJFZERTQSIsImtpZCI6InJlbGVhc2UtZWQiLCJ0eXAiOiJzeW5jZ2F0ZS1yZWNlaXB0" +
	"K2p3dCJ9." +
	"eyJjb3ZlcnMiOlsiY29tbWFuZCIsImltYWdlIl0sImRpZ2VzdCI6InNoYTI1Njo1ZjcwYmYxOGEw" +
	"ODYwMDcwMTZlOTQ4YjA0YWVkM2I4MjEwM2EzNmJlYTQxNzU1YjZjZGRmYWYxMGFjZTNjNmVmIiwi" +
	"ZW52aXJvbm1lbnQiOiJwcm9kIiwiZXhwIjoxNzc1MDAxNjAwLCJpYXQiOjE3NjcyMjU2MDAsImlz" +
	"cyI6InJlbGVhc2UiLCJqdGkiOiJtSjh3M1FlNVIxdVh6MGFCN2NEOWZnIiwicHJvZmlsZSI6InYx" +
	"IiwicmVsZWFzZSI6IjEuNSIsInN1YiI6ImFwcHMvRGVwbG95bWVudC9zaG9wL3dlYiJ9." +
	"40kDJ5jhiKVT2GiP6lhGCl-n9uYAqOyNAHMKzAYDHaY_z8HF3hgYvuL_G3GAMx_aXQed8ZCEXKXF" +
	"PV-4qcSCBw"

func Example() {
	public, err := base64.RawURLEncoding.DecodeString("m7NqPY27n1zfvj2i8et5iwYtaolnywWSn-WtAo3tQcI")
	if err != nil {
		fmt.Println(err)
		return
	}
	key, err := receipt.NewKey("release-ed", ed25519.PublicKey(public))
	if err != nil {
		fmt.Println(err)
		return
	}
	issuers := func(name string) (receipt.Issuer, bool) {
		return receipt.Issuer{Name: "release", Keys: []receipt.Key{key}}, name == "release"
	}

	verified, err := receipt.Verify(exampleReceipt, issuers)
	if err != nil {
		fmt.Println(err)
		return
	}
	claims := verified.Claims()
	fmt.Println(claims.Subject, "in", claims.Environment)
	fmt.Println(claims.Covers, claims.Digest)
	fmt.Println(claims.Expires)

	_, err = receipt.Verify(exampleReceipt[:len(exampleReceipt)-4]+"AAAA", issuers)
	fmt.Println(err)

	// Output:
	// apps/Deployment/shop/web in prod
	// [command image] sha256:5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef
	// 1775001600
	// signature is not that of key "release-ed" over these bytes
}

// TestExamplesInTheTextsAreTheVector keeps the texts that people implement
// from honest.
func TestExamplesInTheTextsAreTheVector(t *testing.T) {
	want := vector(t, "valid_eddsa").Raw
	if exampleReceipt != want {
		t.Errorf("example: got %q, want the vector valid_eddsa, %q", exampleReceipt, want)
	}
	parts := strings.Split(want, ".")
	for _, path := range []string{"doc.go", filepath.Join("..", "..", "docs", "spec", "receipt.md")} {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.NewReplacer("//", "", " ", "", "\t", "", "\n", "").Replace(string(data))
		for name, example := range map[string]string{
			"receipt": want, "header": decoded(t, parts[0]), "payload": decoded(t, parts[1]), "public key": "m7NqPY27n1zfvj2i8et5iwYtaolnywWSn-WtAo3tQcI",
		} {
			if !strings.Contains(text, example) {
				t.Errorf("%s does not hold the %s of the vector valid_eddsa, %q", path, name, example)
			}
		}
	}
}

func decoded(t *testing.T, part string) string {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
