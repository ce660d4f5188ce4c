// Package cli is the command line: one file a subcommand. A command's result
// goes to stdout, everything else to stderr, and a refusal leaves stdout empty.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/syncgate/syncgate/plugin/app"
)

// New returns the root command. Version is what "syncgate version" prints;
// further commands (of the other front ends) are added to it.
func New(version string, more ...*cobra.Command) *cobra.Command {
	root := &cobra.Command{
		Use:   "syncgate",
		Short: "A pre-sync gate: refuses manifests whose gated fields nobody signed",
		Long: `syncgate decides whether a rendered set of Kubernetes manifests may be synced.
Images, identities and RBAC, secret references, network exposure, privilege and
commands need a signed receipt; replicas, resources, labels and configuration
pass freely.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version,
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return &usageError{c.CommandPath(), err} })
	root.AddCommand(newCheck(), newRender(), newFields(), newPin(), newSign(), newKeys(), newRevoke(), newExplain(), newVersion(version))
	root.AddCommand(more...)
	return root
}

// usageError is a command that was not called as its help says.
type usageError struct {
	command string
	err     error
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// usage makes a usageError.
func usage(c *cobra.Command, format string, args ...any) error {
	return &usageError{c.CommandPath(), fmt.Errorf(format, args...)}
}

// Execute runs the root command and returns the exit status: 0; 10, 20 or 30
// for a refusal (docs/spec/refusal.md); 2 for a usage error; 1 for anything
// else. What a refusal says is one line on stderr.
func Execute(root *cobra.Command, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	var refusal *app.Refusal
	if errors.As(err, &refusal) {
		fmt.Fprintln(stderr, refusal.Sentence.String())
		return refusal.Sentence.Class().ExitStatus()
	}
	fmt.Fprintf(stderr, "syncgate: %s\n", oneLine(err.Error()))
	var bad *usageError
	// Cobra's own complaints about commands and arguments have no type.
	if errors.As(err, &bad) || isCobraUsage(err) {
		fmt.Fprintf(stderr, "see '%s --help'\n", c.CommandPath())
		return 2
	}
	return 1
}

func isCobraUsage(err error) bool {
	for _, prefix := range []string{"unknown command", "accepts ", "requires ", "required flag", "invalid argument", "if any flags in the group", "at least one of the flags"} {
		if strings.HasPrefix(err.Error(), prefix) {
			return true
		}
	}
	return false
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
