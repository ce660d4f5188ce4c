package policy

import (
	"errors"
	"slices"
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
	f.Add(minimal + "trustedWriters: [{preset: argo-rollouts, namespaces: [shop], exempt: true, acceptImpersonation: true}, {user: u, namespaces: ['-'], categories: [rbac], until: 2027-01-01}]\n")
	f.Add(minimal + "namespace: gate\nadministrators: {groups: [a]}\nscope: {admission: {namespaces: {exclude: [b]}, kinds: [A.b.io], clusterScoped: [ClusterRole]}}\ngatedDeletes: [ClusterRole]\n")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parse(t, text)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Reason != gate.PolicyInvalid && e.Reason != gate.KeysUnavailable || e.Msg == "" {
				t.Errorf("got error %#v", err)
			}
			return
		}
		a := p.Admission()
		if a.Gated(a.Namespace) || len(a.Administrators.Groups) == 0 || slices.Contains(a.Administrators.Groups, "system:authenticated") {
			t.Errorf("the gate does not guard itself: %+v", a)
		}
		for _, w := range a.TrustedWriters {
			if w.User == "" || len(w.Namespaces) == 0 || len(w.Categories) == 0 || w.Exempt && (w.Until != 0 || len(w.Images) > 0 || len(w.Kinds) == 0) {
				t.Errorf("a trusted writer without limits: %+v", w)
			}
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
