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
	"time"

	"github.com/spf13/cobra"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/gate"
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
	root.AddCommand(newCheck(), newRender(), newFields(), newDiff(), newPin(), newSign(), newKeys(), newRevoke(), newExplain(), newManifests(),
		newDoctor(version), newMigrate(), newFixedpoint(), newOff(), newOn(), newCertificates(), newFlux(), newVersion(version))
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

// checkOutput refuses a value of --output that the command does not know.
func checkOutput(c *cobra.Command, got, one, other string) error {
	if got != one && got != other {
		return usage(c, "unknown output %q: want %s or %s", got, one, other)
	}
	return nil
}

// usage makes a usageError.
func usage(c *cobra.Command, format string, args ...any) error {
	return &usageError{c.CommandPath(), fmt.Errorf(format, args...)}
}

// Execute runs the root command and returns the exit status: 0; 10, 20 or 30
// for a refusal (docs/spec/refusal.md); 2 for a usage error; 1 for anything
// else, a signal to stop among it. What a refusal says is one line on stderr.
func Execute(root *cobra.Command, stderr io.Writer) int {
	strict(root)
	c, err := untilSignal(root)
	if err == nil {
		return 0
	}
	var refusal *app.Refusal
	if errors.As(err, &refusal) {
		fmt.Fprintln(stderr, refusal.Sentence.String())
		return refusal.Sentence.Class().ExitStatus()
	}
	fmt.Fprintf(stderr, "syncgate: %s\n", gate.ASCII(oneLine(err.Error())))
	var g *gap
	if errors.As(err, &g) {
		return gate.Refused.ExitStatus()
	}
	var bad *usageError
	// Cobra's own complaints about commands and arguments have no type.
	if errors.As(err, &bad) || isCobraUsage(err) {
		fmt.Fprintf(stderr, "see '%s --help'\n", c.CommandPath())
		return 2
	}
	return 1
}

// grace is what a command that was told to stop has left to end by itself: it
// removes its temporary files.
const grace = time.Second

// untilSignal runs the command until it ends or, told to stop, does not: a read
// of a pipe or a terminal listens to nobody. A second signal ends the process.
func untilSignal(root *cobra.Command) (*cobra.Command, error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	type end struct {
		command *cobra.Command
		err     error
	}
	done := make(chan end, 1)
	go func() {
		c, err := execute(ctx, root)
		done <- end{c, err}
	}()
	select {
	case e := <-done:
		return e.command, e.err
	case <-ctx.Done():
	}
	stop() // the default handling again
	select {
	case e := <-done:
		return e.command, e.err
	case <-time.After(grace):
		return root, errors.New("stopped by a signal")
	}
}

// execute is cobra's, but that a panic is an error like any other: a stack
// trace tells nobody what to do, and its status, 2, is that of a usage error.
func execute(ctx context.Context, root *cobra.Command) (c *cobra.Command, err error) {
	defer func() {
		if p := recover(); p != nil {
			c, err = root, fmt.Errorf("met a case that it does not know (%v): please report it", p)
		}
	}()
	return root.ExecuteContextC(ctx)
}

// strict makes usage errors of what cobra's own commands answer with a help
// text and status 0.
func strict(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.Run, c.RunE = nil, func(c *cobra.Command, args []string) error {
				topic, _, err := c.Root().Find(args)
				if err != nil || topic == nil {
					return usage(c, "no help on %q: it is not a command", strings.Join(args, " "))
				}
				topic.InitDefaultHelpFlag()
				return topic.Help()
			}
		case "completion":
			var shells []string
			for _, shell := range c.Commands() {
				shells = append(shells, shell.Name())
			}
			c.RunE = func(c *cobra.Command, _ []string) error {
				return usage(c, "give one of: %s", strings.Join(shells, ", "))
			}
		}
	}
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
