package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/syncgate/syncgate/plugin/live"
	"github.com/syncgate/syncgate/plugin/policy"
)

// sidecar is what the Deployment of the repo-server says of the plugin. The zero
// value is one without it.
type sidecar struct {
	there  bool
	image  string
	env    map[string]string // of the plugin's container
	blind  bool              // env is not all of it
	server map[string]string // of the repo-server's
	policy string            // ConfigMap that is mounted with the policy
	mount  string            // where that is
}

// The names in manifests/argocd/sidecar.yaml.
const (
	sidecarName  = "syncgate"
	policyVolume = "syncgate-policy"
	policyFile   = "policy.yaml"
)

const fixSidecar = "syncgate manifests argocd prints the component that adds it; kubectl apply -k"

// sidecar looks whether the plugin is beside the repo-server.
func (r *Report) sidecar(ctx context.Context, c *live.Cluster, o ArgoCD) (sidecar, error) {
	var out sidecar
	at := fmt.Sprintf("Deployment %s/%s", o.ArgoNamespace, o.RepoServer)
	d, err := c.Get(ctx, deployments, o.ArgoNamespace, o.RepoServer)
	if apierrors.IsNotFound(err) {
		r.add("sidecar", false, "name the repo-server with --repo-server, and Argo CD's namespace with --argocd-namespace", at+": there is none")
		return out, nil
	}
	if err != nil {
		return out, fmt.Errorf("reading %s: %w", at, err)
	}
	pod := child(d, "spec", "template", "spec")
	for _, x := range list(pod, "containers") {
		container, _ := x.(map[string]any)
		var err error
		switch text(container, "name") {
		case sidecarName:
			out.there, out.image, out.mount = true, text(container, "image"), mountPath(container, policyVolume)
			out.env, out.blind, err = r.variables(ctx, c, o.ArgoNamespace, container, "SYNCGATE_")
		case "argocd-repo-server", "repo-server": // stock, and of the Helm chart
			out.server, _, err = r.variables(ctx, c, o.ArgoNamespace, container, "ARGOCD_PAUSE_GEN_")
		}
		if err != nil {
			return out, err
		}
	}
	for _, x := range list(pod, "volumes") {
		volume, _ := x.(map[string]any)
		if text(volume, "name") == policyVolume {
			out.policy = text(child(volume, "configMap"), "name")
		}
	}
	var details []string
	if !out.there {
		details = append(details, at+": no container "+sidecarName+": every Application that names the plugin fails")
	}
	if mounts, said := pod["automountServiceAccountToken"].(bool); !said || mounts {
		details = append(details, at+": automountServiceAccountToken is not false: code that runs during a render finds a credential for the cluster")
	}
	want, updated, ready := number(d, "spec", "replicas"), number(d, "status", "updatedReplicas"), number(d, "status", "readyReplicas")
	if want == 0 || updated != want || ready != want || number(d, "status", "replicas") != want || number(d, "status", "observedGeneration") < number(d, "metadata", "generation") {
		details = append(details, fmt.Sprintf("%s wants %d replicas: %d of the newest template, %d ready", at, want, updated, ready))
	}
	if len(details) > 0 {
		r.add("sidecar", false, fixSidecar, details...)
		return out, nil
	}
	r.add("sidecar", true, "", fmt.Sprintf("%s has the plugin, %s, in %d replicas", at, clip(out.image), want))
	return out, nil
}

// sidecarPolicy looks whether the ConfigMap that the sidecar mounts is the
// policy at hand. A mount follows it within minutes.
func (r *Report) sidecarPolicy(ctx context.Context, c *live.Cluster, o ArgoCD, side sidecar) error {
	if !side.there {
		return nil // said
	}
	const fix = "kubectl create configmap " + policyVolume + " from this policy, its key sets and its revocation list (--dry-run=client -o yaml | kubectl apply -f -)"
	if side.policy == "" {
		r.Warnings = append(r.Warnings, "the sidecar's policy is not in a ConfigMap volume "+policyVolume+": whether it is this one cannot be seen")
		return nil
	}
	if path := side.env["SYNCGATE_POLICY"]; path != "" && filepath.Clean(path) != filepath.Join(side.mount, policyFile) {
		r.add("policy", false, "take SYNCGATE_POLICY away, or mount the ConfigMap there", fmt.Sprintf("SYNCGATE_POLICY of the sidecar is %.120q, and ConfigMap %s is mounted at %.120q: it goes by another file", path, side.policy, side.mount))
		return nil
	}
	return r.mountedPolicy(ctx, c, o.Policy, o.ArgoNamespace, side.policy, "the sidecar", fix)
}

// mountedPolicy looks whether the ConfigMap that somebody mounts is the policy at
// hand. A mount follows it within minutes.
func (r *Report) mountedPolicy(ctx context.Context, c *live.Cluster, want *policy.Policy, namespace, name, who, fix string) error {
	at := fmt.Sprintf("ConfigMap %s/%s", namespace, name)
	data, there, err := configMap(ctx, c, namespace, name)
	if err != nil {
		return err
	}
	if !there {
		r.add("policy", false, fix, at+": there is none, and "+who+" does not start")
		return nil
	}
	hash, err := hashOf(data)
	switch {
	case err != nil:
		r.add("policy", false, fix, fmt.Sprintf("%s does not load: %s", at, clip(err.Error())))
	case hash != want.Hash():
		r.add("policy", false, fix, fmt.Sprintf("%s is policy %s, want %s", at, hash, want.Hash()))
	default:
		r.add("policy", true, "", fmt.Sprintf("%s is this policy, %s", at, hash))
	}
	return nil
}

// hashOf loads a policy from the data of a ConfigMap, as it would be mounted.
func hashOf(data map[string]string) (hash string, err error) {
	dir, err := os.MkdirTemp("", "syncgate-doctor-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for name, text := range data {
		if !filepath.IsLocal(name) || filepath.Base(name) != name {
			return "", fmt.Errorf("key %.80q is no file name", name)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	p, err := policy.Load(filepath.Join(dir, policyFile))
	if err != nil {
		return "", errors.New(strings.ReplaceAll(err.Error(), dir+string(filepath.Separator), ""))
	}
	return p.Hash(), nil
}

// What holds where nobody says anything else.
const (
	ownTimeout  = 45 * time.Second // SYNCGATE_TIMEOUT
	argoTimeout = 60 * time.Second // of the callers of the repo-server
)

// parameters are what Argo CD is told at its start.
func (r *Report) parameters(ctx context.Context, c *live.Cluster, o ArgoCD, side sidecar, others map[string]int) error {
	data, _, err := configMap(ctx, c, o.ArgoNamespace, "argocd-cmd-params-cm")
	if err != nil {
		return err
	}
	r.elsewhere(data, others)
	r.timeouts(data, side)
	r.cache(data, side)
	if data["controller.diff.server.side"] == "true" {
		r.Warnings = append(r.Warnings, "controller.diff.server.side is true: Argo CD compares by dry runs that the admission webhook is asked about, too, and what it refuses is a ComparisonError")
	}
	return nil
}

func (r *Report) timeouts(data map[string]string, side sidecar) {
	budget := ownTimeout
	if d, err := time.ParseDuration(side.env["SYNCGATE_TIMEOUT"]); err == nil {
		budget = d
	}
	var details []string
	for _, key := range []string{"controller.repo.server.timeout.seconds", "server.repo.server.timeout.seconds"} {
		have := argoTimeout
		if s := data[key]; s != "" {
			n, err := strconv.Atoi(s)
			if err != nil {
				details = append(details, fmt.Sprintf("%s is %.40q: want a number of seconds", key, s))
				continue
			}
			have = time.Duration(n) * time.Second
		}
		if have <= budget {
			details = append(details, fmt.Sprintf("%s is %s, and a render may take SYNCGATE_TIMEOUT, %s: Argo CD ends it without a reason", key, have, budget))
		}
	}
	if len(details) > 0 {
		r.add("timeouts", false, "set both to 120 in argocd-cmd-params-cm (the component recommended does) and restart Argo CD, or lower SYNCGATE_TIMEOUT", details...)
		return
	}
	r.add("timeouts", true, "", fmt.Sprintf("Argo CD waits longer than a render may take, %s", budget))
}

// cache is about what is synced without asking the gate.
func (r *Report) cache(data map[string]string, side sidecar) {
	var details []string
	if data["reposerver.plugin.use.manifest.generate.paths"] == "true" {
		details = append(details, "reposerver.plugin.use.manifest.generate.paths is true: a render may not be sent the receipts")
	}
	for _, name := range []string{"ARGOCD_PAUSE_GEN_AFTER_FAILED_ATTEMPTS", "ARGOCD_PAUSE_GEN_REQUESTS"} {
		if have := side.server[name]; have != "1" {
			details = append(details, fmt.Sprintf("%s of the repo-server is %.40q, want \"1\": a refusal does not take the place of the good render in the cache", name, have))
		}
	}
	if d, err := time.ParseDuration(data["reposerver.repo.cache.expiration"]); err != nil || d > time.Hour {
		r.Warnings = append(r.Warnings, fmt.Sprintf("reposerver.repo.cache.expiration is %.40q, want at most 1h: what expires is synced from the cache until then (24h if nothing is said)", data["reposerver.repo.cache.expiration"]))
	}
	if len(details) > 0 {
		r.add("cache", false, "apply the component recommended (docs/argocd.md, Install) and restart Argo CD", details...)
		return
	}
	r.add("cache", true, "", "a refusal takes the place of what was cached")
}

// child is the object at a path in a tree: empty if there is none.
func child(t map[string]any, path ...string) map[string]any {
	for _, p := range path {
		t, _ = t[p].(map[string]any)
	}
	return t
}
