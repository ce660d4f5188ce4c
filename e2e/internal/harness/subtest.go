package harness

import "testing"

// On returns a view of the cluster for a subtest: what fails in it fails the
// subtest and ends it alone. Subtests in parallel may each have one, and start
// nothing.
func (c *Cluster) On(t testing.TB) *Cluster {
	env := *c.Env
	env.T = t
	view := *c
	view.Env = &env
	return &view
}
