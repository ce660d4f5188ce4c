package policy

import (
	"errors"
	"testing"

	"github.com/syncgate/syncgate/plugin/gate"
)

// FuzzParse: a policy loads and has an environment and an issuer with keys, or
// it is an error of the two kinds; nothing loads into something lax.
func FuzzParse(f *testing.F) {
	f.Add(minimal)
	f.Add(minimal + "mode: {render: Warn}\n")
	f.Add(minimal + "receipts: {backstop: true, minRemaining: 1h}\napps: [{match: {name: a-*}, mode: {render: Warn}}]\n")
	f.Add("apiVersion: syncgate.io/v1alpha1\nkind: GatePolicy\n")
	f.Add("a: &a [*a]\n")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parse(t, text)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Reason != gate.PolicyInvalid && e.Reason != gate.KeysUnavailable || e.Msg == "" {
				t.Errorf("got error %#v", err)
			}
			return
		}
		for _, name := range p.Environments() {
			e, err := p.ForEnvironment(App{}, name)
			if err != nil || e.Rules.Environment == "" || len(e.Rules.Issuers) == 0 {
				t.Errorf("loads without environment or issuers: %+v %v", e.Rules, err)
			}
			for _, is := range e.Rules.Issuers {
				if len(is.Keys) == 0 || is.MaxLifetime <= 0 {
					t.Errorf("issuer %q has no keys or no end", is.Name)
				}
			}
		}
	})
}
