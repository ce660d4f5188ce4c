package harness

import "testing"

// On returns a view of the cluster for a subtest: what fails in it fails the
// subtest and ends it alone. Subtests in parallel may each have one, and start
// nothing.
func (c *Cluster) On(t testing.TB) *Cluster {
	view := *c
	view.Env = c.Env.On(t)
	return &view
}

// On returns a view of the folder for a subtest.
func (e *Env) On(t testing.TB) *Env {
	view := *e
	view.T = t
	return &view
}
