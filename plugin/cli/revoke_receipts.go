package cli

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/receipt"
)

// maxReceiptFiles bounds what is revoked at once: a revocation list holds no
// more, and a folder that was named by mistake may be somebody's home.
const maxReceiptFiles = 10000

// receiptsIn returns the receipts in files, and in the .jwt files of folders and
// what is below them, each once. Nobody verifies them: revoking one takes no
// more than its nonce, and what a forged file could do is revoke too much.
func receiptsIn(paths []string) ([]receipt.Claims, error) {
	var out []receipt.Claims
	seen := map[string]bool{}
	add := func(file string) error {
		compact, ok := receiptArgument(file)
		if !ok {
			return fmt.Errorf("%q is not a receipt, nor a file or folder of receipts", file)
		}
		u, err := receipt.ParseUnverified(compact)
		if err != nil {
			return fmt.Errorf("%s is not a receipt: %w", file, err)
		}
		if !seen[u.Claims.ID] {
			seen[u.Claims.ID] = true
			out = append(out, u.Claims)
		}
		if len(out) > maxReceiptFiles {
			return fmt.Errorf("more than %d receipts: revoke by --release, --kid or --issued-before", maxReceiptFiles)
		}
		return nil
	}
	for _, path := range paths {
		if st, err := os.Stat(path); err != nil || !st.IsDir() {
			if err := add(path); err != nil {
				return nil, err
			}
			continue
		}
		found, looked := 0, 0
		err := filepath.WalkDir(path, func(file string, d fs.DirEntry, err error) error {
			if err != nil {
				return fmt.Errorf("reading receipts: %w", err)
			}
			if looked++; looked > 10*maxReceiptFiles {
				return fmt.Errorf("%s holds more than %d files", path, 10*maxReceiptFiles)
			}
			if !d.Type().IsRegular() || filepath.Ext(file) != ".jwt" {
				return nil
			}
			found++
			return add(file)
		})
		if err != nil {
			return nil, err
		}
		if found == 0 {
			return nil, fmt.Errorf("%s holds no .jwt file, such as the lock has in .syncgate", path)
		}
	}
	return out, nil
}

// revoked is a line about a receipt that was given as a file.
func revoked(c receipt.Claims) string {
	return fmt.Sprintf("receipt %s: %s in %s, of issuer %s", gate.ASCII(c.ID), gate.ASCII(c.Subject), gate.ASCII(c.Environment), gate.ASCII(c.Issuer))
}
