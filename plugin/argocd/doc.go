// Package argocd is the command of a config management plugin: it reads what
// Argo CD tells a plugin (environment, working directory), runs the gate, and
// answers with manifests on stdout or one line on stderr.
//
// Argo CD passes nothing here that an application's owner could not write,
// except what names the application: ARGOCD_APP_NAME, ARGOCD_APP_NAMESPACE (of
// the destination) and the source's path and repository. So keys, rules and
// environments come from the operator's policy file, and what comes from
// plugin.env or parameters only selects among what policy allows.
package argocd
