package cli

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/keys"
	"github.com/syncgate/syncgate/plugin/policy"
	"github.com/syncgate/syncgate/plugin/projection"
	"github.com/syncgate/syncgate/plugin/receipt"
)

// defaultLifetime is that of policy (docs/spec/policy.md, maxLifetime).
const defaultLifetime = 90 * 24 * time.Hour

type signOptions struct {
	target
	key, kid, issuer  string
	command, public   string
	imageCheck        string
	annotate          bool
	renewOnly, prune  bool
	release, approver string
	covers            []string
	lifetime, renew   time.Duration
	yes, noLeaves     bool
	deletion          bool
}

func newSign() *cobra.Command {
	var o signOptions
	c := &cobra.Command{
		Use:   "sign [DIR] --key FILE --issuer NAME --environment E",
		Short: "Sign what changed since the last receipts, into the lock",
		Long: `Sign renders the application as the cluster would, shows which gated fields
changed since the last receipts of this issuer, asks on a terminal (or takes
--yes), and writes one receipt an object to .syncgate/ENVIRONMENT. Signing again
what is signed changes no byte. Images must be pinned first: syncgate pin.

With --deletion it reads live objects (kubectl get -o yaml) from standard input
and signs that they may be deleted, where policy gates that (gatedDeletes). The
receipt has to be on the live object first: what is printed are the kubectl
commands that put it there.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			o.arg(args)
			return runSign(c, &o)
		},
	}
	o.flags(c)
	f := c.Flags()
	f.StringVar(&o.key, "key", "", "private key: PEM or JWK")
	f.StringVar(&o.kid, "kid", "", "key ID (default: the key's own, else its thumbprint)")
	f.StringVar(&o.issuer, "issuer", "", "name of the issuer, as policy has it")
	f.StringVar(&o.release, "release", "", "what a person recognises: commit, tag, change request")
	f.StringVar(&o.approver, "approver", "", "who decided")
	f.StringSliceVar(&o.covers, "covers", nil, "categories to sign (default: all that apply and are this issuer's to sign: an issuer that policy names under requirements leaves what is not reserved for it to the others)")
	f.DurationVar(&o.lifetime, "lifetime", defaultLifetime, "how long the receipts are good")
	f.DurationVar(&o.renew, "renew-within", 0, "make receipts anew that have less left than this")
	f.BoolVar(&o.yes, "yes", false, "do not ask")
	f.BoolVar(&o.renewOnly, "renew-only", false, "sign only what was signed before and is unchanged: safe in a scheduled job")
	f.BoolVar(&o.prune, "prune", false, "also drop this issuer's receipts of objects that the application no longer has")
	f.StringVar(&o.command, "sign-command", "", "instead of --key: a command that gets the signing input on standard input and prints the signature (raw or base64; ECDSA as DER or r||s)")
	f.StringVar(&o.public, "public-key", "", "with --sign-command: the public key (PEM or JWK set) that belongs to it")
	f.StringVar(&o.imageCheck, "image-check", "", "a shell command that is run once for each image with the reference as its last argument, such as 'cosign verify --key k.pub'; if it fails nothing is signed")
	f.BoolVar(&o.annotate, "annotate", false, "write receipts into the manifests (plain YAML files), comments kept, instead of the lock")
	f.BoolVar(&o.noLeaves, "no-leaves", false, "leave out the field hashes that let a refusal name the field that moved")
	f.BoolVar(&o.deletion, "deletion", false, "sign that live objects, read from standard input, may be deleted")
	c.MarkFlagsMutuallyExclusive("deletion", "annotate")
	c.MarkFlagsMutuallyExclusive("deletion", "prune")
	c.MarkFlagsMutuallyExclusive("deletion", "renew-only")
	if err := c.MarkFlagRequired("issuer"); err != nil {
		panic(err) // the flag is defined above
	}
	c.MarkFlagsOneRequired("key", "sign-command")
	c.MarkFlagsMutuallyExclusive("key", "sign-command")
	c.MarkFlagsRequiredTogether("sign-command", "public-key")
	return c
}

func runSign(c *cobra.Command, o *signOptions) error {
	if o.deletion && o.dir != "-" {
		return usage(c, "--deletion signs live objects: kubectl get -o yaml KIND NAME | syncgate sign - --deletion ...")
	}
	if o.dir == "-" && !o.deletion {
		return usage(c, "receipts are written beside an application: give its directory")
	}
	e, err := o.effective(c, false)
	if err != nil {
		return err
	}
	s, err := o.signing(c, e)
	if err != nil {
		return err
	}
	settings, err := o.settings(c, e)
	if err != nil {
		return err
	}
	b, err := app.New(c.Context(), settings)
	if err != nil {
		return err
	}
	if o.deletion {
		return signDeletions(c, o, b, s, e)
	}
	if err := b.Sound(e); err != nil {
		return err
	}
	drafts, err := b.Drafts(s, e)
	if err != nil {
		return err
	}
	if o.prune {
		if n := b.Prune(s); n > 0 && len(drafts) == 0 {
			if err := b.Lock.Save(); err != nil {
				return fmt.Errorf("saving the lock: %w", err)
			}
		}
	}
	if len(drafts) == 0 {
		_, err := fmt.Fprintf(c.OutOrStdout(), "nothing to sign: %s has receipts of %s for everything that is gated\n", s.Environment, s.Issuer)
		return err
	}
	for _, d := range drafts {
		showDraft(c, d)
	}
	if err := confirm(c, o.yes, len(drafts), s); err != nil {
		return err
	}
	if err := checkImages(c, o.imageCheck, drafts); err != nil {
		return err
	}
	if o.annotate {
		err = annotateDrafts(o.dir, e, b, drafts, s)
	} else {
		err = b.Write(drafts, s)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "signed %d of %d objects for %s as %s with key %s, until %s\n",
		len(drafts), len(b.Objects), s.Environment, s.Issuer, s.Signer.KeyID(), date(s.Now+s.Lifetime))
	return err
}

func (o *signOptions) signing(c *cobra.Command, e policy.Effective) (app.Signing, error) {
	s := app.Signing{
		Issuer: o.issuer, Environment: e.Rules.Environment, Now: now(), Release: o.release, Approver: o.approver,
		Lifetime: int64(o.lifetime / time.Second), RenewWithin: int64(o.renew / time.Second), NoLeaves: o.noLeaves,
	}
	if s.Environment == "" {
		return s, usage(c, "no environment: give --environment, or a policy that names one")
	}
	if is, known := e.Rules.Issuers[o.issuer]; o.policy != "" && !known {
		return s, usage(c, "issuer %q is not in the policy", o.issuer)
	} else if known && is.MaxLifetime > 0 && s.Lifetime > is.MaxLifetime {
		if c.Flags().Changed("lifetime") {
			return s, usage(c, "--lifetime %s is more than the policy allows issuer %s (%s)", o.lifetime, o.issuer, time.Duration(is.MaxLifetime)*time.Second)
		}
		s.Lifetime = is.MaxLifetime
	}
	if s.Lifetime <= 0 {
		return s, usage(c, "--lifetime %s: want more than none", o.lifetime)
	}
	for _, name := range o.covers {
		cat := projection.Category(name)
		if !cat.Valid() {
			return s, usage(c, "--covers: %q is not a category", name)
		}
		s.Covers = append(s.Covers, cat)
	}
	s.RenewOnly = o.renewOnly
	if o.policy != "" {
		s.Policy = &e
	}
	signer, err := o.signer(c)
	if err != nil {
		return s, err
	}
	s.Signer = signer
	return s, nil
}

func (o *signOptions) signer(c *cobra.Command) (receipt.Signer, error) {
	if o.command == "" {
		return keys.ReadSigner(o.key, o.kid)
	}
	list, err := publicKeys(o.public)
	if err != nil {
		return nil, err
	}
	for _, k := range list {
		if o.kid == "" && len(list) == 1 || k.ID == o.kid {
			return keys.NewExecSigner(c.Context(), strings.Fields(o.command), k, "")
		}
	}
	return nil, usage(c, "%s holds %d keys: say which one with --kid", o.public, len(list))
}

// showDraft tells the person who signs what is about to be approved.
func showDraft(c *cobra.Command, d app.Draft) {
	w := c.ErrOrStderr()
	fmt.Fprintf(w, "%s (%s)\n", gate.ASCII(d.Object.Subject.Short()), strings.Join(d.Claims.Covers, ", "))
	switch {
	case d.First:
		for _, l := range d.Object.Projection.Leaves() {
			fmt.Fprintf(w, "  new      %-9s %s = %s\n", l.Category, gate.ASCII(gate.ShortPath(l.Path)), gate.ASCII(leafValue(l)))
		}
	case d.Renewal:
		fmt.Fprintf(w, "  renewed  nothing gated changed\n")
	case len(d.Changes) == 0:
		fmt.Fprintf(w, "  changed  the last receipt has no field hashes to tell what\n")
	}
	for _, m := range d.Changes {
		value := ""
		for _, l := range d.Object.Projection.In(m.Category) {
			if l.Path == m.Path {
				value = " = " + gate.ASCII(leafValue(l))
			}
		}
		fmt.Fprintf(w, "  %-8s %-9s %s%s\n", m.What, m.Category, gate.ASCII(gate.ShortPath(m.Path)), value)
	}
}

func confirm(c *cobra.Command, yes bool, n int, s app.Signing) error {
	if yes {
		return nil
	}
	in, ok := c.InOrStdin().(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return errors.New("nobody to ask: standard input is no terminal; look at the list above and give --yes")
	}
	fmt.Fprintf(c.ErrOrStderr(), "Sign %d receipts for %s as %s? [y/N] ", n, s.Environment, s.Issuer)
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	if a := strings.ToLower(strings.TrimSpace(line)); a != "y" && a != "yes" {
		return errors.New("not signed")
	}
	return nil
}
