package cli

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/policy"
)

func newCheck() *cobra.Command {
	var t target
	var output string
	c := &cobra.Command{
		Use:   "check [DIR|-]",
		Short: "The cluster's verdict, here: every object, every finding",
		Long: `Check renders and evaluates as the cluster would, and says for each gated object
why it may or may not run. It ends with the same exit status as generate: 0, 10
(refused), 20 (the manifests) or 30 (the gate).`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			t.arg(args)
			if err := checkOutput(c, output, "text", "json"); err != nil {
				return err
			}
			e, err := t.effective(c, true)
			if err != nil {
				return err
			}
			s, err := t.settings(c, e)
			if err != nil {
				return err
			}
			s.Keep = app.KeepNothing
			b, err := app.New(c.Context(), s)
			if err != nil {
				return err
			}
			v := b.Evaluate(e, now())
			if err := b.Comments(e, &v); err != nil {
				return err
			}
			for _, w := range append(e.Warnings, b.Warnings...) {
				fmt.Fprintln(c.ErrOrStderr(), "warning: "+w)
			}
			if output == "json" {
				return checkJSON(c.OutOrStdout(), v, e)
			}
			return checkText(c, v, e)
		},
	}
	t.flags(c)
	c.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	return c
}

// checkText lists the verdict of each gated object: on stdout if all may run,
// else, with the refusal, on stderr.
func checkText(c *cobra.Command, v app.Verdict, e policy.Effective) error {
	out := c.OutOrStdout()
	if !v.Allowed() {
		out = c.ErrOrStderr()
	}
	for _, r := range v.Results {
		switch {
		case len(r.Items) > 0:
			fmt.Fprintf(out, "refused  %s\n", gate.ASCII(r.Object.Subject.Short()))
			for _, it := range r.Items {
				fmt.Fprintf(out, "         [%s] %s\n", it.Reason, gate.ASCII(it.Text))
			}
		case !e.Rules.Gates(r.Object.Projection):
			continue
		default:
			fmt.Fprintf(out, "allowed  %s%s\n", gate.ASCII(r.Object.Subject.Short()), usedBy(r.Decision))
		}
		for _, f := range r.Decision.Deferred {
			fmt.Fprintf(out, "         left to admission: [%s] %s\n", f.Reason, gate.ASCII(f.Text))
		}
	}
	if !v.Allowed() {
		return verdictError(v, e)
	}
	_, err := fmt.Fprintf(out, "%d objects, %d gated, all allowed in %s\n", len(v.Results), v.Gated, e.Rules.Environment)
	return err
}

// verdictError is the refusal, unless policy only warns.
func verdictError(v app.Verdict, e policy.Effective) error {
	if v.Allowed() || e.Warn {
		return nil
	}
	return &app.Refusal{Sentence: v.Sentence()}
}

func usedBy(d gate.Decision) string {
	text := ""
	for _, u := range d.Used {
		text += fmt.Sprintf("  receipt %s (issuer %s, until %s)", u.ID, u.Issuer, date(u.Expires))
	}
	return text
}

// objectReport is one object in "check -o json".
type objectReport struct {
	Subject  string        `json:"subject"`
	Allowed  bool          `json:"allowed"`
	Gated    bool          `json:"gated"`
	Findings []itemReport  `json:"findings,omitempty"`
	Receipts []usedReceipt `json:"receipts,omitempty"`
}

type itemReport struct {
	Reason gate.Reason `json:"reason"`
	Text   string      `json:"text"`
}

type usedReceipt struct {
	ID         string `json:"jti"`
	Issuer     string `json:"iss"`
	KeyID      string `json:"kid"`
	Expires    int64  `json:"exp"`
	BreakGlass bool   `json:"breakGlass,omitempty"`
}

func checkJSON(w io.Writer, v app.Verdict, e policy.Effective) error {
	report := struct {
		Environment string         `json:"environment"`
		Allowed     bool           `json:"allowed"`
		Message     string         `json:"message,omitempty"`
		Objects     []objectReport `json:"objects"`
	}{Environment: e.Rules.Environment, Allowed: v.Allowed(), Objects: []objectReport{}}
	if !v.Allowed() {
		report.Message = v.Sentence().String()
	}
	for _, r := range v.Results {
		o := objectReport{Subject: r.Object.Subject.String(), Allowed: len(r.Items) == 0,
			Gated: r.Object.Problem != nil || e.Rules.Gates(r.Object.Projection)}
		for _, it := range r.Items {
			o.Findings = append(o.Findings, itemReport{it.Reason, it.Text})
		}
		for _, u := range r.Decision.Used {
			o.Receipts = append(o.Receipts, usedReceipt{u.ID, u.Issuer, u.KeyID, u.Expires, u.BreakGlass})
		}
		report.Objects = append(report.Objects, o)
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	if err := enc.Encode(report); err != nil {
		return fmt.Errorf("writing report: %w", err)
	}
	return verdictError(v, e)
}

// date is the last day of a receipt, as people say it.
func date(seconds int64) string { return app.Date(seconds) }
