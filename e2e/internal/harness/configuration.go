package harness

import "path/filepath"

// WebhookConfiguration is the ValidatingWebhookConfiguration of a policy, as
// "syncgate manifests webhook" prints it, for Install.
func WebhookConfiguration(e *Env, b Binaries, policy string) []byte {
	e.T.Helper()
	return e.Run(e.Dir, nil, b.Syncgate, "manifests", "webhook", "--configuration", "--policy", policy)
}

// WebhookWith builds the backstop with other build flags: another version of it.
func (b Binaries) WebhookWith(e *Env, flags ...string) string {
	e.T.Helper()
	path := e.Path("bin", "syncgate-webhook-other")
	output(e.T, filepath.Dir(moduleDir(e.T)), "go", append(append([]string{"build", "-o", path}, flags...), "./cmd/syncgate-webhook")...)
	return path
}
