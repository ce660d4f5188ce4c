package receipt_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/syncgate/syncgate/plugin/keys"
	"github.com/syncgate/syncgate/plugin/receipt"
	"github.com/syncgate/syncgate/plugin/receipt/vectors"
)

// issuersOf returns the lookup of a set of issuers.
func issuersOf(t testing.TB, set string) func(string) (receipt.Issuer, bool) {
	t.Helper()
	list, err := vectors.IssuerSet(set)
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]receipt.Issuer{}
	for _, i := range list {
		found, err := keys.LoadJWKS(i.JWKS)
		if err != nil {
			t.Fatal(err)
		}
		byName[i.Name] = receipt.Issuer{Name: i.Name, Algorithms: i.Algorithms, Keys: found}
	}
	return func(name string) (receipt.Issuer, bool) {
		i, ok := byName[name]
		return i, ok
	}
}

func all(t testing.TB) []vectors.Vector {
	t.Helper()
	list, err := vectors.All()
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < 150 {
		t.Fatalf("got %d vectors, want the whole set", len(list))
	}
	return list
}

func vector(t testing.TB, name string) vectors.Vector {
	t.Helper()
	for _, v := range all(t) {
		if v.Name == name {
			return v
		}
	}
	t.Fatalf("no vector %q", name)
	return vectors.Vector{}
}

// outcome is "valid" or the kind of the error.
func outcome(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return "valid"
	}
	var failure *receipt.Error
	if !errors.As(err, &failure) {
		t.Fatalf("got %v (%T), want a *receipt.Error", err, err)
	}
	return string(failure.Kind)
}

func TestVectorsThroughEveryEntryPoint(t *testing.T) {
	for _, v := range all(t) {
		t.Run(v.Name, func(t *testing.T) {
			issuers := issuersOf(t, v.Issuers)
			var err error
			if v.Kind == "revocations" {
				var list receipt.RevocationList
				list, err = receipt.VerifyRevocations(v.Raw, issuers)
				if err != nil && (list.Serial != 0 || list.Entries != nil) {
					t.Errorf("got %+v beside an error, want nothing", list)
				}
			} else {
				var got receipt.Verified
				got, err = receipt.Verify(v.Raw, issuers)
				if err != nil && (got.Claims().Subject != "" || got.KeyID() != "" || got.Algorithm() != "" || got.Thumbprint() != "") {
					t.Errorf("got %+v beside an error, want nothing", got)
				}
				if err == nil && (got.Claims().Subject == "" || got.KeyID() == "" || got.Algorithm() == "" || got.Thumbprint() == "") {
					t.Errorf("got %+v, want every member", got)
				}
			}
			if got := outcome(t, err); got != v.Expect {
				t.Errorf("got %s (%v), want %s: %s", got, err, v.Expect, v.Comment)
			}
			if err != nil {
				checkText(t, err.Error(), v.Raw)
			}
			_, err = receipt.ParseUnverified(v.Raw)
			if (err == nil) != v.Readable {
				t.Errorf("ParseUnverified: got %v, want readable: %t", err, v.Readable)
			}
			if err != nil && outcome(t, err) != string(receipt.Malformed) {
				t.Errorf("ParseUnverified: got %s, want Malformed", outcome(t, err))
			}
		})
	}
}

// checkText: an error is one printable line and holds no part of the token
// that would be worth stealing.
func checkText(t *testing.T, text, raw string) {
	t.Helper()
	for _, r := range text {
		if r < ' ' || r == 0x7f || r == '\u202e' {
			t.Errorf("error text %q holds a control character", text)
		}
	}
	if len(text) > 600 {
		t.Errorf("error text of %d bytes, want one line: %q", len(text), text)
	}
	if i := strings.LastIndexByte(raw, '.'); i >= 0 && len(raw)-i > 20 && strings.Contains(text, raw[i+1:i+20]) {
		t.Errorf("error text %q holds the signature", text)
	}
}

// A vector that is refused for another reason than its own proves nothing.
func TestVectorsThatAreRefusedDifferInOneThing(t *testing.T) {
	kinds := map[string]int{}
	for _, v := range all(t) {
		kinds[v.Kind+" "+v.Expect]++
		if v.Comment == "" {
			t.Errorf("%s has no comment", v.Name)
		}
		if v.Kind == "receipt" && v.Issuers == "standard" && v.Expect == "valid" {
			_, err := receipt.Verify(v.Raw, issuersOf(t, "revokers"))
			if got := outcome(t, err); v.Name != "valid_other_issuer" && got != string(receipt.IssuerUnknown) {
				t.Errorf("%s without its issuer: got %s, want IssuerUnknown", v.Name, got)
			}
		}
	}
	for _, want := range []string{"receipt valid", "receipt Malformed", "receipt AlgorithmNotAllowed", "receipt IssuerUnknown",
		"receipt KeyUnknown", "receipt SignatureInvalid", "revocations valid", "revocations Malformed", "revocations IssuerUnknown", "revocations SignatureInvalid"} {
		if kinds[want] == 0 {
			t.Errorf("no vector for %q", want)
		}
	}
}
