//go:build e2e

package e2e

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// paragraph is one of what "make argocd-up" or "make flux-up" prints that has commands.
type paragraph struct {
	title    string
	commands []string
}

func paragraphs(text string) []paragraph {
	var all []paragraph
	title := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		command, ok := strings.CutPrefix(line, "    ")
		switch {
		case !ok:
			if line != "" {
				title = line
			}
		case len(all) == 0 || all[len(all)-1].title != title:
			all = append(all, paragraph{title, []string{command}})
		default:
			all[len(all)-1].commands = append(all[len(all)-1].commands, command)
		}
	}
	return all
}

// newcomer is at the terminal.
type newcomer struct {
	*harness.Env
	setup string // what the first paragraph says
}

func (n newcomer) sh(commands ...string) string {
	n.T.Helper()
	return string(n.Run(n.Dir, nil, "sh", "-c", "set -e\nexec 2>&1\n"+n.setup+strings.Join(commands, "\n")))
}

// look is a command that prints a field of an object, and a space.
func look(what, path string) string {
	return fmt.Sprintf("kubectl get %s -o jsonpath='{%s} '", what, path)
}

// upStep is a paragraph: what its commands print in the end, and what is then so.
type upStep struct{ title, prints, then []string }

// startUp runs what "make argocd-up" runs, with flags, then every command that it
// prints, and ends it as Ctrl-C does. steps are the paragraphs after the first,
// state the commands that show what is so.
func startUp(t *testing.T, flags []string, steps []upStep, state ...string) {
	e := harness.New(t)
	program, tmp := e.Path("bin", "up"), e.Mkdir("t")
	build := exec.Command("go", "build", "-o", program, "./up")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	up := exec.Command(program, flags...)
	up.Env = append(os.Environ(), "TMPDIR="+tmp)
	var stderr strings.Builder
	up.Stderr = &stderr
	stdout, err := up.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	end := func() error {
		if err := up.Process.Signal(syscall.SIGINT); err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, stdout); err != nil {
			return err
		}
		return up.Wait()
	}
	defer func() {
		if up.ProcessState == nil { // a failure, before the end
			t.Logf("ending it: %v: %s", end(), stderr.String())
		}
	}()
	var printed strings.Builder
	for lines := bufio.NewScanner(stdout); lines.Scan() && !strings.Contains(lines.Text(), "Ctrl-C ends all of it"); {
		printed.WriteString(lines.Text() + "\n")
	}
	report(t, "what it prints", printed.String())
	all := paragraphs(printed.String())
	if len(all) != 1+len(steps) {
		t.Fatalf("%d paragraphs with commands, want %d", len(all), 1+len(steps))
	}

	n := newcomer{e, strings.Join(all[0].commands, "\n") + "\n"}
	for i, step := range steps {
		p := all[1+i]
		if !harness.ContainsAll(p.title, step.title) {
			t.Fatalf("paragraph %q, want one with %q", p.title, step.title)
		}
		first, text := n.sh(p.commands...), ""
		last := p.commands[len(p.commands)-1]
		e.Eventually(p.title, func() (string, bool) {
			text = first
			if step.prints == nil || harness.ContainsAll(text, step.prints) {
				return text, true
			}
			if strings.HasPrefix(last, "kubectl get ") || strings.Contains(last, "--dry-run=server") { // a person looks again
				text += "\n" + n.sh(last)
			}
			return text, harness.ContainsAll(text, step.prints)
		})
		report(t, p.title, text)
		e.Eventually(fmt.Sprintf("%q", step.then), func() (string, bool) {
			now := n.sh(state...)
			return now, harness.ContainsAll(now, step.then)
		})
	}

	if err := end(); err != nil {
		t.Errorf("after Ctrl-C: %v: %s", err, stderr.String())
	}
	if left, err := filepath.Glob(filepath.Join(tmp, "*")); err != nil || len(left) > 0 {
		t.Errorf("it leaves %q behind, %v", left, err)
	}
}
