package projection

import (
	"fmt"
	"testing"
)

// TestAVariableThatAnInterpreterReadsItselfIsGated: bash takes functions from
// its environment, so that BASH_FUNC_exec%% stands for exec in a signed script.
func TestAVariableThatAnInterpreterReadsItselfIsGated(t *testing.T) {
	for name, want := range map[string]bool{
		"BASH_FUNC_exec%%": true, "BASHOPTS": true, "SHELLOPTS": true, "PS4": true, "ZDOTDIR": true,
		"ERL_FLAGS": true, "ERL_AFLAGS": true, "GIT_EXEC_PATH": true, "PHPRC": true, "PHP_INI_SCAN_DIR": true,
		"BASH_FUNCTION": false, "PS1": false, "ERLANG_NODE": false, "PHP_MEMORY_LIMIT": false,
	} {
		p, err := Project(parse(t, deployment(fmt.Sprintf("containers: [{name: a, env: [{name: %q, value: x}]}]", name))))
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Has(Command); got != want {
			t.Errorf("%s: gated %t, want %t", name, got, want)
		}
	}
}
