package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/policy"
	"github.com/syncgate/syncgate/plugin/projection"
)

// signDeletions signs the empty projection of live objects, and prints the
// commands that put the receipts onto them: what is gone has no place for one.
func signDeletions(c *cobra.Command, o *signOptions, b *app.Build, s app.Signing, e policy.Effective) error {
	drafts, err := b.Deletions(s, e)
	if err != nil {
		return err
	}
	for _, d := range drafts {
		fmt.Fprintf(c.ErrOrStderr(), "%s may be deleted (%s)\n", d.Object.Subject.Short(), strings.Join(d.Claims.Covers, ", "))
	}
	if err := confirm(c, o.yes, len(drafts), s); err != nil {
		return err
	}
	receipts, err := app.Sign(drafts, s)
	if err != nil {
		return err
	}
	if err := app.Refused(drafts, receipts, s); err != nil {
		return err
	}
	for i, d := range drafts {
		subject := d.Object.Subject
		kind := projection.Resource(subject.Group, subject.Kind)
		if subject.Group != "" {
			kind += "." + subject.Group
		}
		where := ""
		if subject.Namespace != "" {
			where = " --namespace " + subject.Namespace
		}
		value := strings.Join(app.Replace(d.Object.Receipts, s, receipts[i]), " ")
		if _, err := fmt.Fprintf(c.OutOrStdout(), "kubectl annotate%s %s '%s' --overwrite '%s=%s'\n", where, kind, subject.Name, e.Annotation, value); err != nil {
			return err
		}
	}
	return nil
}
