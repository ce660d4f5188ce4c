package receipt

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/syncgate/syncgate/plugin/projection"
)

const (
	// maxName bounds names of issuers, environments, profiles, keys and nonces:
	// 253 is the longest name Kubernetes knows.
	maxName = 256
	// maxText bounds a subject (four names) and what only people read.
	maxText = 1024
	// minNonce is 128 bits in base64url, minHexNonce in hexadecimal.
	minNonce    = 22
	minHexNonce = 32
	// maxTime is the end of the year 9999: later times have no RFC 3339 form.
	maxTime = 253402300799
	// leafHashLength is 8 bytes in base64url.
	leafHashLength = 11
)

// Validate reports every claim that is not well-formed, in the order of the
// table of docs/spec/receipt.md. Verify has called it already on what it
// returns, and Sign calls it first. A profile that this version does not know
// is well-formed: package gate judges it.
func (c Claims) Validate() error {
	var errs []error
	check := func(claim string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", claim, err))
		}
	}
	check("iss", checkText(c.Issuer, maxName))
	check("sub", checkSubject(c.Subject))
	check("environment", checkText(c.Environment, maxName))
	check("profile", checkText(c.Profile, maxName))
	check("covers", checkCovers(c.Covers, c.Profile))
	check("digest", checkDigest(c.Digest))
	check("iat", checkTime(c.IssuedAt))
	check("exp", checkTime(c.Expires))
	if c.Expires <= c.IssuedAt {
		check("exp", fmt.Errorf("got %d, want later than iat, %d", c.Expires, c.IssuedAt))
	}
	if c.NotBefore != 0 {
		check("nbf", checkTime(c.NotBefore))
		if c.NotBefore >= c.Expires {
			check("nbf", fmt.Errorf("got %d, want earlier than exp, %d", c.NotBefore, c.Expires))
		}
	}
	check("jti", checkNonce(c.ID))
	if c.Release != "" {
		check("release", checkText(c.Release, maxText))
	}
	if c.Approver != "" {
		check("approver", checkText(c.Approver, maxText))
	}
	check("leaves", checkLeaves(c.Leaves))
	return joined(errs)
}

// joined puts the errors on one line: they end up in one-line refusals.
func joined(errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	texts := make([]string, len(errs))
	for i, err := range errs {
		texts[i] = err.Error()
	}
	return errors.New(strings.Join(texts, "; "))
}

// checkText accepts what can be shown to a person on one line: printable
// characters and spaces, but none at either end.
func checkText(s string, limit int) error {
	switch {
	case s == "":
		return errors.New("empty")
	case len(s) > limit:
		return fmt.Errorf("%d bytes, want at most %d", len(s), limit)
	case !utf8.ValidString(s):
		return errors.New("invalid UTF-8")
	case s[0] == ' ' || s[len(s)-1] == ' ':
		return fmt.Errorf("%.80q starts or ends with a space", s)
	}
	for _, r := range s {
		if !strconv.IsPrint(r) {
			return fmt.Errorf("%.80q holds a character that cannot be printed", s)
		}
	}
	return nil
}

func checkSubject(s string) error {
	err := checkText(s, maxText)
	if err != nil {
		return err
	}
	subject, err := ParseSubject(s)
	if err != nil {
		return err
	}
	if subject.String() != s {
		return fmt.Errorf("got %q, want %q", s, subject)
	}
	return nil
}

// checkCovers knows the categories of this version's profile; of another
// profile it checks only that they are sorted words.
func checkCovers(covers []string, profile string) error {
	if len(covers) == 0 {
		return errors.New("empty")
	}
	for i, c := range covers {
		if i > 0 && covers[i-1] >= c {
			return fmt.Errorf("%.80q after %.80q, want sorted and no duplicates", c, covers[i-1])
		}
		known := projection.Category(c).Valid()
		if !known && (profile == projection.Profile || !isWord(c)) {
			return fmt.Errorf("%.80q is not a category", c)
		}
	}
	return nil
}

func isWord(s string) bool {
	if s == "" || len(s) > maxName {
		return false
	}
	for _, r := range s {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' {
			return false
		}
	}
	return true
}

func checkDigest(s string) error {
	digits, ok := strings.CutPrefix(s, "sha256:")
	if !ok || len(digits) != 64 || strings.Trim(digits, "0123456789abcdef") != "" {
		return fmt.Errorf(`got %.80q, want "sha256:" and 64 lower-case hexadecimal digits`, s)
	}
	return nil
}

func checkTime(seconds int64) error {
	if seconds <= 0 || seconds > maxTime {
		return fmt.Errorf("got %d, want seconds since 1970, at most %d", seconds, int64(maxTime))
	}
	return nil
}

// checkNonce sees only that there is room for 128 bits; that they are random
// is the issuer's part.
func checkNonce(s string) error {
	if len(s) > maxName {
		return fmt.Errorf("%d bytes, want at most %d", len(s), maxName)
	}
	if strings.Trim(s, base64urlAlphabet) != "" {
		return fmt.Errorf("%.80q holds characters outside of base64url", s)
	}
	if len(s) < minNonce || len(s) < minHexNonce && strings.Trim(s, "0123456789abcdefABCDEF") == "" {
		return fmt.Errorf("%d characters, want room for 128 bits: %d of base64url or %d of hexadecimal", len(s), minNonce, minHexNonce)
	}
	return nil
}

const base64urlAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// isLeafHash reports whether s is the one base64url spelling of 8 bytes.
func isLeafHash(s string) bool {
	var in [leafHashLength]byte
	var out [8]byte
	if len(s) != len(in) || strings.ContainsAny(s, "\r\n") { // which package base64 skips
		return false
	}
	copy(in[:], s)
	n, err := strictBase64.Decode(out[:], in[:])
	return err == nil && n == len(out)
}

func checkLeaves(leaves map[string]string) error {
	var bad []string
	for path, hash := range leaves {
		if path == "" || !utf8.ValidString(path) || !isLeafHash(hash) {
			bad = append(bad, path)
		}
	}
	if len(bad) == 0 {
		return nil
	}
	return fmt.Errorf("path %.80q: want a path and the base64url of 8 bytes", slices.Min(bad))
}
