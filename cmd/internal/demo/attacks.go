package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/syncgate/syncgate/plugin/lock"
	"github.com/syncgate/syncgate/plugin/receipt"
)

// elsewhere takes the allowed output, receipts and all, to another environment.
func elsewhere(d *demo) error {
	r, err := d.syncgate(generate...)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(d.dir, "copied"), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(d.dir, "copied", "all.yaml"), []byte(r.stdout), 0o644); err != nil {
		return err
	}
	if err := d.policyWith("test.yaml", "environment: prod", "environment: test"); err != nil {
		return err
	}
	if r, err = d.call([]string{"SYNCGATE_POLICY=test.yaml"}, "generate", "copied"); err != nil {
		return err
	}
	return r.want(10, "[EnvironmentMismatch]", "is for environment prod, this is test")
}

// revoked revokes the Deployment's receipt by its nonce, with a list that the
// policy names.
func revoked(d *demo) error {
	l, err := lock.Open(filepath.Join(d.dir, "shop"))
	if err != nil {
		return err
	}
	entries := l.Receipts("prod", receipt.Subject{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"})
	u, err := receipt.ParseUnverified(entries[0].Receipt)
	if err != nil {
		return err
	}
	err = expect(d, 0, []string{"serial 1, 1 entries"}, "revoke", "--list", "revocations.jwt", "--key", "release.pem", "--issuer", "release", "--jti", u.Claims.ID)
	if err != nil {
		return err
	}
	if err := d.policyWith("revoking.yaml", "issuers:", "revocations: {file: revocations.jwt, issuers: [release]}\nissuers:"); err != nil {
		return err
	}
	r, err := d.call([]string{"SYNCGATE_POLICY=revoking.yaml"}, generate...)
	if err != nil {
		return err
	}
	return r.want(10, "1 of 6 gated objects", "[ReceiptRevoked]", "Deployment shop/web")
}

// forged signs as the release team with a key of the forger's own, under the
// key ID that the policy knows.
func forged(d *demo) error {
	r, err := d.syncgate("keys", "show", "release.pem")
	if err != nil {
		return err
	}
	kid := strings.Fields(strings.Split(r.stdout, "\n")[1])[0]
	if err := expect(d, 0, nil, "keys", "new", "--out", "forger.pem"); err != nil {
		return err
	}
	return keepingLock(d, func() error {
		// With the policy at hand, sign itself would refuse; the forger goes without.
		r, err := d.call([]string{"SYNCGATE_POLICY="}, "sign", "shop", "--key", "forger.pem", "--kid", kid, "--issuer", "release", "--environment", "prod", "--yes")
		if err != nil {
			return err
		}
		if err := r.want(0); err != nil {
			return err
		}
		// The lock keeps the receipts that were there as the previous ones, and
		// they are still good: the forger has to remove them.
		l, err := lock.Open(filepath.Join(d.dir, "shop"))
		if err != nil {
			return err
		}
		l.Remove(func(e lock.Entry) bool { return e.Previous })
		if err := l.Save(); err != nil {
			return err
		}
		return refused(10, "[SignatureInvalid]")(d)
	})
}

// policyWith writes a copy of the policy with one change.
func (d *demo) policyWith(file, old, new string) error {
	data, err := os.ReadFile(filepath.Join(d.dir, "policy.yaml"))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(d.dir, file), []byte(strings.Replace(string(data), old, new, 1)), 0o644)
}

// keepingLock puts the lock back after do.
func keepingLock(d *demo, do func() error) error {
	at := filepath.Join(d.dir, "shop", ".syncgate")
	kept := filepath.Join(d.dir, "kept")
	if err := os.CopyFS(kept, os.DirFS(at)); err != nil {
		return err
	}
	err := do()
	if rmErr := os.RemoveAll(at); err == nil {
		err = rmErr
	}
	if mvErr := os.Rename(kept, at); err == nil {
		err = mvErr
	}
	return err
}
