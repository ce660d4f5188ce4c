package cli

import (
	"bytes"
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
		Use:   "explain [DIR|-|(RECEIPT|CODE)...]",
		Short: "Decode receipts, say why an object is allowed or refused, or what a code means",
		Long: `Explain takes a reason code (such as DigestMismatch), a receipt (the compact form,
or a .jwt file of the lock; with a policy its signature is verified), or an application's directory, of which it tells
for each gated object which receipts there are and what is wrong with each. Of
codes and receipts it takes several.`,
		Args: cobra.ArbitraryArgs, // each is a code, a receipt or a directory, or refused
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return explainAll(c, &t, args)
			}
			t.arg(args)
			if known, err := explainWord(c.OutOrStdout(), &t); known || err != nil {
				return err
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

// explainAll explains codes and receipts, all or none of them.
func explainAll(c *cobra.Command, t *target, args []string) error {
	var b bytes.Buffer
	for i, arg := range args {
		if i > 0 {
			b.WriteByte('\n')
		}
		t.dir = arg
		known, err := explainWord(&b, t)
		if err != nil {
			return fmt.Errorf("%s: %w", arg, err)
		}
		if !known {
			return usage(c, "%q is not a receipt or a reason code; a directory is explained alone", arg)
		}
	}
	_, err := c.OutOrStdout().Write(b.Bytes())
	return err
}

// explainWord explains the argument if it is a code or a receipt.
func explainWord(w io.Writer, t *target) (known bool, err error) {
	if text, ok := codes[gate.Reason(t.dir)]; ok {
		class := gate.Reason(t.dir).Class()
		_, err := fmt.Fprintf(w, "%s (%s, exit %d)\n%s\nFix: %s\n", t.dir, class.Words(), class.ExitStatus(), text.means, text.fix)
		return true, err
	}
	compact, ok := receiptArgument(t.dir)
	if !ok {
		return false, nil
	}
	return true, explainReceipt(w, compact, t.verify(compact))
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
