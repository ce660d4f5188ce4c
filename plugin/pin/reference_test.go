package pin_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/plugin/pin"
)

var (
	hexA = strings.Repeat("a", 64)
	hexB = strings.Repeat("b", 64)
)

func TestReferencesAreKeptAsWritten(t *testing.T) {
	type parts struct{ Name, Tag, Lookup, Digest string }
	for _, tc := range []struct {
		ref  string
		want parts
	}{
		{"nginx", parts{"nginx", "", "latest", ""}},
		{"nginx:1.27", parts{"nginx", "1.27", "1.27", ""}},
		{"library/nginx:LATEST_x-1", parts{"library/nginx", "LATEST_x-1", "LATEST_x-1", ""}},
		{"docker.io/nginx", parts{"docker.io/nginx", "", "latest", ""}},
		{"localhost:5000/app", parts{"localhost:5000/app", "", "latest", ""}},
		{"[::1]:5000/app:1", parts{"[::1]:5000/app", "1", "1", ""}},
		{"host.example:5000/team/app:1.0", parts{"host.example:5000/team/app", "1.0", "1.0", ""}},
		{"host.example:5000/app@sha256:" + hexA, parts{"host.example:5000/app", "", "latest", "sha256:" + hexA}},
		{"ghcr.io/acme/web:1.5@sha256:" + hexA, parts{"ghcr.io/acme/web", "1.5", "1.5", "sha256:" + hexA}},
		{"acme/web:sha256-" + hexA + ".sig", parts{"acme/web", "sha256-" + hexA + ".sig", "sha256-" + hexA + ".sig", ""}},
	} {
		t.Run(tc.ref, func(t *testing.T) {
			r, err := pin.Parse(tc.ref)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, parts{r.Name(), r.Tag(), r.LookupTag(), r.Digest()}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if r.String() != tc.ref {
				t.Errorf("got %q back, want %q", r.String(), tc.ref)
			}
		})
	}
}

func TestWhatIsNotAReferenceIsToldApart(t *testing.T) {
	for _, ref := range []string{
		"", "auto", "ko://github.com/acme/web/cmd/web", "$(params.image)", "${IMAGE}", "{{ .Values.image }}",
		"<image>", "*:*", " nginx", "nginx:1 ", "nginx\n", "https://ghcr.io/acme/web", "a | b",
	} {
		t.Run(ref, func(t *testing.T) {
			if _, err := pin.Parse(ref); !errors.Is(err, pin.ErrNotReference) {
				t.Errorf("got error %v, want %v", err, pin.ErrNotReference)
			}
		})
	}
}

func TestWrongReferencesSayWhatIsWrong(t *testing.T) {
	for _, tc := range []struct{ name, ref, want string }{
		{"digest in the place of a tag", "ghcr.io/acme/web:sha256:" + hexA, `a digest needs '@' before it: "ghcr.io/acme/web@sha256:` + hexA + `"`},
		{"digest in the place of a tag, with a port", "host:5000/web:sha256:" + hexA, `"host:5000/web@sha256:`},
		{"digest in the place of a tag, cut", "acme/web:sha256:abc", "a digest needs '@'"},
		{"digest without algorithm", "acme/web@" + hexA, "a digest starts with its algorithm"},
		{"digest too short", "acme/web@sha256:abc", "the digest must be sha256"},
		{"digest in upper case", "acme/web@sha256:" + strings.ToUpper(hexA), "the digest must be sha256"},
		{"digest of another algorithm", "acme/web@sha512:" + hexA + hexA, "the digest must be sha256"},
		{"two digests", "acme/web@sha256:" + hexA + "@sha256:" + hexB, "the digest must be sha256"},
		{"upper-case repository", "ghcr.io/Acme/web:1", "must be lower case"},
		{"upper-case first component", "Acme/web:1", "must be lower case"},
		{"empty tag", "app:", "the tag is empty"},
		{"empty tag before a digest", "app:@sha256:" + hexA, "the tag is empty"},
		{"only a tag", ":1", "malformed"},
		{"only a digest", "@sha256:" + hexA, "malformed"},
		{"an identifier", hexA, "malformed"},
		{"tag too long", "app:" + strings.Repeat("x", 129), "malformed"},
		{"too long altogether", strings.Repeat("a/", 400) + "a", "longer than"},
		{"traversal", "ghcr.io/../web:1", "malformed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, err := pin.Parse(tc.ref)
			if err == nil {
				t.Fatalf("got %q, want an error", r)
			}
			if errors.Is(err, pin.ErrNotReference) {
				t.Errorf("got %v, want another error than %v", err, pin.ErrNotReference)
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %q, want it to contain %q", err, tc.want)
			}
			if r != (pin.Reference{}) {
				t.Errorf("got %v beside the error, want the zero value", r)
			}
		})
	}
}

func TestPinKeepsWhatWasWritten(t *testing.T) {
	digest := "sha256:" + hexA
	for _, tc := range []struct{ ref, want string }{
		{"nginx", "nginx@" + digest},
		{"nginx:latest", "nginx:latest@" + digest},
		{"localhost:5000/app", "localhost:5000/app@" + digest},
		{"ghcr.io/acme/web:1.5", "ghcr.io/acme/web:1.5@" + digest},
		{"ghcr.io/acme/web@" + digest, "ghcr.io/acme/web@" + digest},
	} {
		r, err := pin.Parse(tc.ref)
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.Pin(digest)
		if err != nil || got.String() != tc.want {
			t.Errorf("%s: got %q, %v; want %q", tc.ref, got, err, tc.want)
		}
	}
}

func TestPinRefusesWrongDigests(t *testing.T) {
	pinned, err := pin.Parse("acme/web:1@sha256:" + hexA)
	if err != nil {
		t.Fatal(err)
	}
	tagged, err := pin.Parse("acme/web:1")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name   string
		ref    pin.Reference
		digest string
	}{
		{"another digest than the written one", pinned, "sha256:" + hexB},
		{"no algorithm", tagged, hexA},
		{"upper case", tagged, "sha256:" + strings.ToUpper(hexA)},
		{"empty", tagged, ""},
		{"trailing line", tagged, "sha256:" + hexA + "\n"},
		{"the zero reference", pin.Reference{}, "sha256:" + hexA},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got, err := tc.ref.Pin(tc.digest); err == nil {
				t.Errorf("got %q, want an error", got)
			}
		})
	}
}

// What parses is written back as it was, and its pinned form parses to a
// pinned reference of the same name and tag.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"nginx", "a:1", "host:5000/a@sha256:" + hexA, "repo:sha256:" + hexA, "A/b", "auto", "", "a::b", "[::1]:5000/a:1@sha256:" + hexB} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := pin.Parse(s)
		if err != nil {
			return
		}
		if r.String() != s {
			t.Fatalf("got %q back, want %q", r.String(), s)
		}
		digest := r.Digest()
		if digest == "" {
			digest = "sha256:" + hexA
		}
		pinned, err := r.Pin(digest)
		if err != nil {
			t.Fatalf("pinning %q: %v", s, err)
		}
		again, err := pin.Parse(pinned.String())
		if err != nil || again != pinned || again.Name() != r.Name() || again.Tag() != r.Tag() {
			t.Fatalf("pinned %q parses to %+v, %v", pinned, again, err)
		}
	})
}
