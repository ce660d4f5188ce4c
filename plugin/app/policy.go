package app

import (
	"errors"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/policy"
)

// LoadPolicy reads a policy file; the error is a *Refusal that names the file,
// the line and the field.
func LoadPolicy(path string) (*policy.Policy, error) {
	p, err := policy.Load(path)
	if err != nil {
		return nil, policyRefusal(err)
	}
	return p, nil
}

// Effective returns what a policy means for an application; environment is
// what a person asked for, or empty. The error is a *Refusal.
func Effective(p *policy.Policy, a policy.App, environment string) (policy.Effective, error) {
	e, err := effective(p, a, environment)
	if err != nil {
		return policy.Effective{}, policyRefusal(err)
	}
	return e, nil
}

func effective(p *policy.Policy, a policy.App, environment string) (policy.Effective, error) {
	if environment != "" {
		return p.ForEnvironment(a, environment)
	}
	return p.For(a)
}

func policyRefusal(err error) *Refusal {
	reason := gate.PolicyInvalid
	var e *policy.Error
	if errors.As(err, &e) && e.Reason != "" {
		reason = e.Reason
	}
	r := Refuse(reason, "%v", err)
	r.Sentence.Fix = "mend the policy; retrying does not help"
	if e != nil && e.Choice == policy.UnknownChoice {
		r.Sentence.Fix = "whoever operates the gate: change --environment to one of these"
	}
	return r
}
