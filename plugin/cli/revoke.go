package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/keys"
	"github.com/syncgate/syncgate/plugin/receipt"
)

type revokeOptions struct {
	list, key, kid, issuer, known string
	jti, keyID, release, image    []string
	receipts                      []string // files and folders
	subject, environment          string
	category, issuedBefore        string
	reissue                       bool
}

func newRevoke() *cobra.Command {
	var o revokeOptions
	c := &cobra.Command{
		Use:   "revoke --list FILE --key FILE --issuer NAME",
		Short: "Add to a revocation list and sign it",
		Long: `Revoke takes receipts back: by file, nonce, key ID, release or image digest, or all of a
subject (a glob) that were issued before a time. The list in FILE, which must
verify with the signing key or with --known KEYS, is extended, its serial goes
up by one, and it is signed anew. What runs goes on running; changes to it, and
everything new, are refused.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return runRevoke(c, &o) },
	}
	f := c.Flags()
	f.StringVar(&o.list, "list", "", "the revocation list; made if it does not exist")
	f.StringVar(&o.key, "key", "", "private key of an issuer that policy names under revocations")
	f.StringVar(&o.kid, "revoker-kid", "", "key ID of that key (default: its own, else its thumbprint)")
	f.StringVar(&o.issuer, "issuer", "", "name of that issuer")
	f.StringVar(&o.known, "known", "", "key set that the present list may be signed with, beside the signing key")
	f.StringArrayVar(&o.receipts, "receipt", nil, "receipts, by the file of the lock that holds one, or a folder of such files")
	f.StringSliceVar(&o.jti, "jti", nil, "receipts, by nonce")
	f.StringSliceVar(&o.keyID, "kid", nil, "every receipt of a key")
	f.StringSliceVar(&o.release, "release", nil, "every receipt of a release")
	f.StringSliceVar(&o.image, "image", nil, "every object that runs an image, by digest (sha256:...)")
	f.StringVar(&o.subject, "subject", "", "with --issued-before: receipts for these subjects, such as 'apps/*/shop/*'")
	f.StringVar(&o.environment, "environment", "", "with --issued-before: only this environment")
	f.StringVar(&o.category, "category", "", "with --issued-before: only receipts that cover this category")
	f.StringVar(&o.issuedBefore, "issued-before", "", "RFC 3339 time or YYYY-MM-DD")
	f.BoolVar(&o.reissue, "reissue", false, "add nothing: only renew the list, so that it does not go stale")
	for _, name := range []string{"list", "key", "issuer"} {
		if err := c.MarkFlagRequired(name); err != nil {
			panic(err) // the flag is defined above
		}
	}
	return c
}

func runRevoke(c *cobra.Command, o *revokeOptions) error {
	entries, err := o.entries(c)
	if err != nil {
		return err
	}
	given, err := receiptsIn(o.receipts)
	if err != nil {
		return err
	}
	for _, r := range given {
		if !slices.Contains(o.jti, r.ID) {
			entries = append(entries, receipt.Revocation{ID: r.ID})
		}
	}
	if (len(entries) == 0) != o.reissue {
		return usage(c, "give what to revoke (--receipt, --jti, --kid, --release, --image or --issued-before), or --reissue alone")
	}
	signer, err := keys.ReadSigner(o.key, o.kid)
	if err != nil {
		return err
	}
	list, err := o.present(signer)
	if err != nil {
		return err
	}
	list.Serial++
	list.Issued = now()
	list.Entries = append(list.Entries, entries...)
	compact, err := receipt.SignRevocations(list, o.issuer, signer)
	if err != nil {
		return err
	}
	if err := app.WriteFile(o.list, []byte(compact+"\n")); err != nil {
		return err
	}
	for _, r := range given {
		if _, err := fmt.Fprintln(c.OutOrStdout(), revoked(r)); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "%s: serial %d, %d entries, %d new\n", o.list, list.Serial, len(list.Entries), len(entries))
	return err
}

func (o *revokeOptions) entries(c *cobra.Command) ([]receipt.Revocation, error) {
	var out []receipt.Revocation
	for _, x := range o.jti {
		out = append(out, receipt.Revocation{ID: x})
	}
	for _, x := range o.keyID {
		out = append(out, receipt.Revocation{KeyID: x})
	}
	for _, x := range o.release {
		out = append(out, receipt.Revocation{Release: x})
	}
	for _, x := range o.image {
		if i := strings.LastIndexByte(x, '@'); i >= 0 { // a whole reference will do
			x = x[i+1:]
		}
		out = append(out, receipt.Revocation{Image: x})
	}
	if o.issuedBefore == "" {
		if o.subject+o.environment+o.category != "" {
			return nil, usage(c, "--subject, --environment and --category go with --issued-before")
		}
		return out, nil
	}
	before, err := time.Parse(time.RFC3339, o.issuedBefore)
	if err != nil {
		before, err = time.Parse(time.DateOnly, o.issuedBefore)
	}
	if err != nil {
		return nil, usage(c, "--issued-before %q: want 2027-01-31 or 2027-01-31T12:00:00Z", o.issuedBefore)
	}
	return append(out, receipt.Revocation{Floor: &receipt.Floor{
		Subject: o.subject, Environment: o.environment, Category: o.category, IssuedBefore: before.Unix(),
	}}), nil
}

// present reads the list that is to be extended. One that does not verify is
// never replaced: the entries in it would be lost.
func (o *revokeOptions) present(signer *receipt.KeySigner) (receipt.RevocationList, error) {
	data, err := readBounded(o.list, receipt.MaxRevocationsSize+1)
	if errors.Is(err, os.ErrNotExist) {
		return receipt.RevocationList{}, nil
	}
	if err != nil {
		return receipt.RevocationList{}, fmt.Errorf("reading revocation list: %w", err)
	}
	trusted := []receipt.Key{signer.Key()}
	if o.known != "" {
		more, err := keys.ReadJWKS(o.known)
		if err != nil {
			return receipt.RevocationList{}, err
		}
		for _, k := range more {
			if k.ID != trusted[0].ID {
				trusted = append(trusted, k)
			}
		}
	}
	list, err := receipt.VerifyRevocations(strings.TrimSpace(string(data)), func(name string) (receipt.Issuer, bool) {
		return receipt.Issuer{Name: name, Keys: trusted}, true
	})
	if err != nil {
		return receipt.RevocationList{}, fmt.Errorf("verifying %s: %w; give the keys that signed it with --known", o.list, err)
	}
	return list, nil
}
