package main_test

import (
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScripts runs testdata/script. Beside what testscript has, a script can
// say:
//
//	exits STATUS PROGRAM ARG...   run, and want this exit status
//	refused CODE PROGRAM ARG...   run, and want a refusal: status of its class, one ASCII line, no stdout
//	usage PROGRAM ARG...          run, and want a usage error: status 2, what is wrong and a hint, no stdout
//	forge [FLAG...] DIR SUBJECT FILE   put a made-up receipt where FILE says $RECEIPT, or into DIR's lock (FILE "-lock")
//	push IMAGE SEED               store another image under a tag of the registry
//	receipts N FILE               want N receipts in the annotations of a rendered stream, in all
//
// $REGISTRY is a registry on loopback, in scripts and in their files; keys/
// has the key pairs of release, release-old, security and intruder; policy.yaml
// is in $SYNCGATE_POLICY and trusts release in prod, unless a script brings its
// own.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			s, stop, err := newStage(e.WorkDir)
			if err != nil {
				return err
			}
			e.Defer(stop)
			e.Values["stage"] = s
			e.Setenv("PATH", filepath.Dir(program)+string(os.PathListSeparator)+e.Getenv("PATH"))
			e.Setenv("REGISTRY", s.host)
			e.Setenv("SIGNER", os.Args[0])
			e.Setenv("SYNCGATE_POLICY", "policy.yaml")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": scriptExits, "refused": scriptRefused, "usage": scriptUsage,
			"forge": scriptForge, "push": scriptPush, "receipts": scriptReceipts,
		},
	})
}

// runIn runs a program of the script, whose output the script can then match.
func runIn(ts *testscript.TestScript, neg bool, args []string) result {
	if neg || len(args) == 0 {
		ts.Fatalf("want a program, and no negation")
	}
	r := result{}
	var exit *exec.ExitError
	err := ts.Exec(args[0], args[1:]...)
	switch {
	case errors.As(err, &exit):
		r.exit = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%q: %v", args, err)
	}
	r.stdout, r.stderr = ts.ReadFile("stdout"), ts.ReadFile("stderr")
	return r
}

func scriptExits(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: exits STATUS PROGRAM ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	if r := runIn(ts, neg, args[1:]); r.exit != want {
		ts.Fatalf("ended with status %d, want %d", r.exit, want)
	}
}

func scriptRefused(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: refused CODE PROGRAM ARG...")
	}
	ts.Check(runIn(ts, neg, args[1:]).refusal(args[0]))
}

func scriptUsage(ts *testscript.TestScript, neg bool, args []string) {
	r := runIn(ts, neg, args)
	lines := strings.Split(r.stderr, "\n")
	switch {
	case r.exit != 2:
		ts.Fatalf("ended with status %d, want 2", r.exit)
	case r.stdout != "":
		ts.Fatalf("a usage error wrote to stdout: %q", r.stdout)
	case len(lines) != 3 || !strings.HasPrefix(lines[0], "syncgate: ") || !strings.HasPrefix(lines[1], "see 'syncgate") || lines[2] != "":
		ts.Fatalf("got %q, want a line that says what is wrong, and a hint", r.stderr)
	}
}

func scriptForge(ts *testscript.TestScript, neg bool, args []string) {
	f := forgery{claims: map[string]any{}, header: map[string]any{}}
	set := flag.NewFlagSet("forge", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.StringVar(&f.by, "by", "", "whose key signs")
	set.StringVar(&f.kid, "kid", "", "key ID in the header")
	set.BoolVar(&f.broken, "broken", false, "a signature that is not right")
	pairs := func(to map[string]any) func(string) error {
		return func(s string) error {
			name, text, found := strings.Cut(s, "=")
			if !found {
				return errors.New("want NAME=JSON or NAME=DURATION")
			}
			if d, err := time.ParseDuration(text); err == nil {
				to[name] = d
				return nil
			}
			if name == "covers" {
				to[name] = strings.Split(text, ",")
				return nil
			}
			var v any
			err := json.Unmarshal([]byte(text), &v)
			to[name] = v
			return err
		}
	}
	set.Func("set", "claim", pairs(f.claims))
	set.Func("header", "header member", pairs(f.header))
	ts.Check(set.Parse(args))
	if neg || set.NArg() != 3 {
		ts.Fatalf("usage: forge [FLAG...] DIR SUBJECT FILE|-lock")
	}
	s := ts.Value("stage").(*stage)
	c, err := s.forge(set.Arg(0), set.Arg(1), f)
	ts.Check(err)
	if set.Arg(2) == "-lock" {
		ts.Check(s.lock(set.Arg(0), c))
		return
	}
	ts.Check(s.annotate(set.Arg(2), c))
}

func scriptPush(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: push IMAGE SEED")
	}
	ts.Check(ts.Value("stage").(*stage).push(args[0], args[1]))
}

// scriptReceipts counts per place, so that a CronJob's two count twice.
func scriptReceipts(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: receipts N FILE")
	}
	if got := strconv.Itoa(strings.Count(ts.ReadFile(args[1]), "eyJhbGciOi")); got != args[0] {
		ts.Fatalf("%s receipts, want %s", got, args[0])
	}
}
