package keys

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/syncgate/syncgate/plugin/receipt"
)

func TestExecSignerTakesEveryEncoding(t *testing.T) {
	dir := t.TempDir()
	for _, alg := range []string{"EdDSA", "ES256", "ES384", "PS256"} {
		private, _, err := New(alg)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, alg+".pem")
		err = WritePrivate(path, private)
		if err != nil {
			t.Fatal(err)
		}
		key, err := receipt.NewKey("hardware", private.Public())
		if err != nil {
			t.Fatal(err)
		}
		for _, form := range []string{"raw", "base64", "base64url", "der", "der-base64"} {
			if strings.HasPrefix(form, "der") && !strings.HasPrefix(alg, "ES") {
				continue
			}
			t.Run(alg+" "+form, func(t *testing.T) {
				t.Setenv("SYNCGATE_TEST_SIGNER", form)
				s, err := NewExecSigner(context.Background(), []string{os.Args[0], path}, key, "")
				if err != nil {
					t.Fatal(err)
				}
				compact, err := receipt.Sign(claims(), s)
				if err != nil {
					t.Fatal(err)
				}
				_, err = receipt.Verify(compact, func(string) (receipt.Issuer, bool) { return receipt.Issuer{Keys: []receipt.Key{key}}, true })
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func TestExecSignerFailuresSayWhatTheCommandSaid(t *testing.T) {
	private, _, err := New("EdDSA")
	if err != nil {
		t.Fatal(err)
	}
	key, err := receipt.NewKey("hardware", private.Public())
	if err != nil {
		t.Fatal(err)
	}
	done, cancel := context.WithCancel(context.Background())
	cancel()
	for _, tc := range []struct {
		name, form string
		ctx        context.Context
		command    []string
		want       string
	}{
		{"it fails", "fail", context.Background(), []string{os.Args[0]}, `"no token in slot 0"`},
		{"it prints nothing", "nothing", context.Background(), []string{os.Args[0]}, "0 bytes of output are not a signature for EdDSA"},
		{"it prints too much", "flood", context.Background(), []string{os.Args[0]}, "more than 16384 bytes"},
		{"it signs with another key", "wrong", context.Background(), []string{os.Args[0]}, "checking signature"},
		{"it does not exist", "", context.Background(), []string{filepath.Join(t.TempDir(), "missing")}, "missing"},
		{"there is no time", "nothing", done, []string{os.Args[0]}, "context canceled"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Setenv("SYNCGATE_TEST_SIGNER", tc.form)
			s, err := NewExecSigner(tc.ctx, tc.command, key, "")
			if err != nil {
				t.Fatal(err)
			}
			got, err := receipt.Sign(claims(), s)
			if got != "" || err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %q, %v, want an error with %q", got, err, tc.want)
			}
		})
	}
	for name, command := range map[string][]string{"no command": nil, "an empty command": {""}} {
		if _, err := NewExecSigner(context.Background(), command, key, ""); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
	if _, err := NewExecSigner(context.Background(), []string{"true"}, key, "ES256"); err == nil {
		t.Error("an algorithm that does not fit: got no error")
	}
	if _, err := NewExecSigner(context.Background(), []string{"true"}, receipt.Key{}, ""); err == nil {
		t.Error("no key: got no error")
	}
}
