package main_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"strings"
	"time"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/lock"
	"github.com/syncgate/syncgate/plugin/policy"
	"github.com/syncgate/syncgate/plugin/projection"
	"github.com/syncgate/syncgate/plugin/receipt"
	"github.com/syncgate/syncgate/plugin/render"
)

func errorf(format string, args ...any) error { return fmt.Errorf(format, args...) }

// forgery makes a receipt that "syncgate sign" would not make. What is not
// said here is as it should be for the object as it is rendered now.
type forgery struct {
	by     string         // whose key signs; default release
	kid    string         // default: that key's own
	claims map[string]any // override; a time.Duration is that long after now
	header map[string]any // override
	broken bool           // the last byte of the signature is another one
}

// forge signs a receipt for a subject of the application in dir. Nothing
// checks the claims: that is what they are made for.
func (s *stage) forge(dir, subject string, f forgery) (string, error) {
	if f.by == "" {
		f.by = "release"
	}
	signer, err := receipt.NewSigner(privateKey(f.by), f.kid, "")
	if err != nil {
		return "", err
	}
	p, err := s.projection(dir, subject)
	if err != nil {
		return "", err
	}
	covers := p.Applies()
	if names, ok := f.claims["covers"].([]string); ok {
		covers = nil
		for _, n := range names {
			covers = append(covers, projection.Category(n))
		}
	}
	digest, err := p.Digest(covers)
	if err != nil { // covers what does not apply, or is no category: any digest will do
		digest = "sha256:" + strings.Repeat("0", 64)
	}
	id := sha256.Sum256([]byte(subject))
	claims := map[string]any{
		"iss": "release", "sub": subject, "environment": "prod", "profile": projection.Profile, "covers": covers, "digest": digest,
		"iat": -time.Minute, "exp": 24 * time.Hour, "jti": "forged" + base64.RawURLEncoding.EncodeToString(id[:])[:22],
	}
	maps.Copy(claims, f.claims)
	for name, v := range claims {
		if d, ok := v.(time.Duration); ok {
			claims[name] = time.Now().Add(d).Unix()
		}
	}
	header := map[string]any{"alg": signer.Algorithm(), "kid": signer.KeyID(), "typ": "syncgate-receipt+jwt"}
	maps.Copy(header, f.header)
	return compact(header, claims, signer, f.broken)
}

func compact(header, payload map[string]any, signer receipt.Signer, broken bool) (string, error) {
	var parts []string
	for _, part := range []map[string]any{header, payload} {
		data, err := json.Marshal(part) // sorted, and nothing here needs more of RFC 8785
		if err != nil {
			return "", err
		}
		parts = append(parts, base64.RawURLEncoding.EncodeToString(data))
	}
	signature, err := signer.Sign([]byte(strings.Join(parts, ".")))
	if err != nil {
		return "", err
	}
	if broken {
		signature[len(signature)-1] ^= 1
	}
	return strings.Join(append(parts, base64.RawURLEncoding.EncodeToString(signature)), "."), nil
}

// projection renders the application as sign would and projects one object.
func (s *stage) projection(dir, subject string) (*projection.Projection, error) {
	b, err := app.New(context.Background(), app.Settings{Render: render.Options{Dir: s.path(dir)}, Effective: policy.Defaults("prod")})
	if err != nil {
		return nil, err
	}
	for _, o := range b.Objects {
		if o.Subject.String() == subject {
			if o.Problem != nil {
				return nil, errorf("%s: %s", subject, o.Problem.Text)
			}
			return o.Projection, nil
		}
	}
	return nil, errorf("no %s in %s", subject, dir)
}

// annotate puts a receipt where a file says $RECEIPT.
func (s *stage) annotate(file, compact string) error { return s.replace(file, "$RECEIPT", compact) }

// lock puts a well-formed receipt into the lock of an application.
func (s *stage) lock(dir, compact string) error {
	u, err := receipt.ParseUnverified(compact)
	if err != nil {
		return err
	}
	subject, err := receipt.ParseSubject(u.Claims.Subject)
	if err != nil {
		return err
	}
	subject.Generated = u.Claims.Generated
	l, err := lock.Open(s.path(dir))
	if err != nil {
		return err
	}
	err = l.PutReceipt(lock.Entry{Environment: u.Claims.Environment, Subject: subject, Issuer: u.Claims.Issuer, Comment: "forged", Receipt: compact})
	if err != nil {
		return err
	}
	return l.Save()
}

// revocations writes a list that release issued so long ago.
func (s *stage) revocations(file string, age time.Duration) error {
	signer, err := receipt.NewSigner(privateKey("release"), "", "")
	if err != nil {
		return err
	}
	list := receipt.RevocationList{Issued: time.Now().Add(-age).Unix(), Serial: 1}
	compact, err := receipt.SignRevocations(list, "release", signer)
	if err != nil {
		return err
	}
	return os.WriteFile(s.path(file), []byte(compact+"\n"), 0o600)
}
