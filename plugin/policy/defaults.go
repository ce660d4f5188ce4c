package policy

// Defaults returns what holds without a policy file, for commands that only
// show or sign: the default categories, annotation, pins and protected
// namespaces. It trusts nobody, so that nothing is ever allowed by it.
func Defaults(environment string) Effective {
	v := &validator{}
	v.doc.Environment = environment
	p := v.policy()
	e := p.base
	e.Rules.Environment = environment
	return e
}
