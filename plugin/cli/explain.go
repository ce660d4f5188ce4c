package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sort"
	"strings"

	"github.com/spf13/cobra"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/policy"
	"github.com/syncgate/syncgate/plugin/receipt"
)

func newExplain() *cobra.Command {
	var t target
	c := &cobra.Command{
		Use:   "explain [DIR|-|RECEIPT|CODE]",
		Short: "Decode receipts, say why an object is allowed or refused, or what a code means",
		Long: `Explain takes a reason code (such as DigestMismatch), a receipt (the compact form,
or a .jwt file of the lock; with a policy its signature is verified), or an application's directory, of which it tells
for each gated object which receipts there are and what is wrong with each.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			t.arg(args)
			if text, ok := codes[gate.Reason(t.dir)]; ok {
				_, err := fmt.Fprintf(c.OutOrStdout(), "%s (%s, exit %d)\n%s\nFix: %s\n", t.dir,
					gate.Reason(t.dir).Class().Words(), gate.Reason(t.dir).Class().ExitStatus(), text.means, text.fix)
				return err
			}
			if compact, ok := receiptArgument(t.dir); ok {
				return explainReceipt(c.OutOrStdout(), compact, t.verify(compact))
			}
			if st, err := os.Stat(t.dir); t.dir != "-" && (err != nil || !st.IsDir()) {
				return usage(c, "%q is not a directory, a receipt or a reason code", t.dir)
			}
			return explainObjects(c, &t)
		},
	}
	t.flags(c)
	return c
}

// receiptArgument takes a compact receipt, or a file that holds one behind its
// comment line.
func receiptArgument(arg string) (string, bool) {
	if strings.Count(arg, ".") == 2 && strings.HasPrefix(arg, "eyJ") {
		return arg, true
	}
	st, err := os.Stat(arg)
	if err != nil || !st.Mode().IsRegular() { // a pipe would wait for a writer
		return "", false
	}
	data, err := readBounded(arg, 2*receipt.MaxSize)
	if err != nil {
		return "", false
	}
	var lines []string
	for _, line := range strings.Split(string(data), "\n") {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, ""), true
}

// verify checks a receipt's signature with the policy's keys, and says what
// came of it. Whether the receipt counts is another question.
func (t *target) verify(compact string) string {
	if t.policy == "" {
		return "signature NOT VERIFIED: no policy, give --policy FILE"
	}
	p, err := t.loadPolicy()
	if err != nil {
		return "signature NOT VERIFIED: " + err.Error()
	}
	// Every environment of a policy has the same issuers.
	e, err := app.Effective(p, policy.App{}, p.Environments()[0])
	if err != nil {
		return "signature NOT VERIFIED: " + err.Error()
	}
	v, err := receipt.Verify(compact, func(name string) (receipt.Issuer, bool) {
		is, ok := e.Rules.Issuers[name]
		return is.Issuer, ok
	})
	if err != nil {
		return "signature NOT VERIFIED: " + err.Error()
	}
	return "signature VERIFIED with the key that policy has for issuer " + v.Claims().Issuer + "; whether it counts: syncgate explain DIR"
}

func explainReceipt(w io.Writer, compact, signature string) error {
	u, err := receipt.ParseUnverified(compact)
	if err != nil {
		return fmt.Errorf("not a receipt: %w", err)
	}
	text, err := json.MarshalIndent(u.Claims, "", "  ")
	if err != nil {
		return err
	}
	lines := strings.Split(string(text), "\n")
	for i, line := range lines { // no string in it holds a line break
		indent := len(line) - len(strings.TrimLeft(line, " "))
		lines[i] = line[:indent] + gate.ASCII(line[indent:])
	}
	_, err = fmt.Fprintf(w, "receipt %s\n%s\nkey ID    %s\nalgorithm %s\nissued    %s\nlast day  %s\n%s\n",
		gate.ASCII(u.Claims.ID), gate.ASCII(oneLine(signature)), gate.ASCII(u.KeyID), u.Algorithm, date(u.Claims.IssuedAt), date(u.Claims.Expires), strings.Join(lines, "\n"))
	return err
}

func explainObjects(c *cobra.Command, t *target) error {
	e, err := t.effective(c, true)
	if err != nil {
		return err
	}
	s, err := t.settings(c, e)
	if err != nil {
		return err
	}
	b, err := app.New(c.Context(), s)
	if err != nil {
		return err
	}
	v := b.Evaluate(e, now())
	w := c.OutOrStdout()
	for _, r := range v.Results {
		o := r.Object
		switch {
		case o.Problem != nil:
			fmt.Fprintf(w, "%s: refused\n  [%s] %s\n", gate.ASCII(o.Subject.String()), o.Problem.Reason, gate.ASCII(o.Problem.Text))
			continue
		case !e.Rules.Gates(o.Projection):
			fmt.Fprintf(w, "%s: passes freely, nothing in it is gated\n", gate.ASCII(o.Subject.String()))
			continue
		case r.Decision.Allowed():
			fmt.Fprintf(w, "%s: allowed\n", gate.ASCII(o.Subject.String()))
		default:
			fmt.Fprintf(w, "%s: refused\n", gate.ASCII(o.Subject.String()))
		}
		for _, u := range r.Decision.Used {
			names := make([]string, len(u.Categories))
			for i, x := range u.Categories {
				names[i] = string(x)
			}
			sort.Strings(names)
			fmt.Fprintf(w, "  used     receipt %s (issuer %s, key %s, until %s) for %s\n", u.ID, u.Issuer, u.KeyID, date(u.Expires), strings.Join(names, ", "))
		}
		for _, f := range r.Decision.Ignored {
			fmt.Fprintf(w, "  not used [%s] %s\n", f.Reason, gate.ASCII(f.Text))
		}
		for _, f := range r.Decision.Findings {
			fmt.Fprintf(w, "  refused  [%s] %s\n", f.Reason, gate.ASCII(f.Text))
		}
	}
	return nil
}
