package doctor

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/syncgate/syncgate/plugin/live"
	"github.com/syncgate/syncgate/plugin/policy"
)

// Annotation marks a probe: the webhook's refusal then says which replica it
// is and what it has loaded.
const Annotation = "syncgate.io/doctor"

// Probes come in bursts: requests at the same time take several connections,
// which a Service spreads over the replicas; one after the other they would all
// take the same.
const (
	burst    = 8  // probes a replica
	maxBurst = 64 // probes in all
	rounds   = 5
)

// probe is an object of which nothing comes, and which needs a receipt.
type probe struct {
	resource schema.GroupVersionResource
	tree     map[string]any
}

// candidates are the probes, the first that policy gates is taken. A Role that
// nobody is bound to gives nothing to anybody; whoever creates one must hold
// its rights, and everybody holds these. No controller acts on a PodTemplate.
func candidates() []probe {
	return []probe{
		{schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}, map[string]any{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
			"rules": []any{map[string]any{"apiGroups": []any{"authorization.k8s.io"}, "resources": []any{"selfsubjectaccessreviews"}, "verbs": []any{"create"}}},
		}},
		{schema.GroupVersionResource{Version: "v1", Resource: "podtemplates"}, map[string]any{
			"apiVersion": "v1", "kind": "PodTemplate",
			"template": map[string]any{"spec": map[string]any{
				"serviceAccountName": "syncgate-doctor", "hostNetwork": true,
				"containers": []any{map[string]any{
					"name": "doctor", "image": "syncgate.invalid/doctor@sha256:" + strings.Repeat("0", 64), "command": []any{"true"},
					"envFrom": []any{map[string]any{"secretRef": map[string]any{"name": "syncgate-doctor"}}},
				}},
			}},
		}},
		{schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"}, map[string]any{
			"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
			"spec": map[string]any{"podSelector": map[string]any{"matchLabels": map[string]any{"syncgate.io/doctor": "none"}}, "ingress": []any{map[string]any{}}, "policyTypes": []any{"Ingress"}},
		}},
	}
}

// ErrNotGated says that policy gates none of the objects that a probe can be.
var ErrNotGated = errors.New("policy gates neither Roles nor PodTemplates nor NetworkPolicies there: nothing can be probed")

// choose returns the probe for a namespace.
func choose(e policy.Effective, namespace string) (probe, error) {
	for _, p := range candidates() {
		p.tree["metadata"] = map[string]any{"namespace": namespace, "annotations": map[string]any{Annotation: "true"}}
		projection, err := e.Projector.Project(p.tree)
		if err != nil {
			return probe{}, fmt.Errorf("projecting a probe: %w", err)
		}
		if e.Rules.Gates(projection) {
			return p, nil
		}
	}
	return probe{}, ErrNotGated
}

// named returns the probe's object under a name that nobody uses.
func (p probe) named() (map[string]any, error) {
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		return nil, err
	}
	meta, _ := p.tree["metadata"].(map[string]any)
	next := map[string]any{"name": "syncgate-doctor-" + hex.EncodeToString(b[:])}
	for k, v := range meta {
		next[k] = v
	}
	out := map[string]any{}
	for k, v := range p.tree {
		out[k] = v
	}
	out["metadata"] = next
	return out, nil
}

// answer is what came of one probe.
type answer struct {
	replica Replica // if the webhook refused it and told about itself
	warned  bool    // the webhook was asked, and only warns
	how     string  // what else came of it
	fix     string
	err     error // the cluster could not be asked
}

// probes asks until as many replicas as are expected have answered.
func (r *Report) probes(ctx context.Context, c *live.Cluster, o Options, expected int) error {
	a := o.Policy.Admission()
	namespace, err := probeNamespace(ctx, c, a, o.Namespace)
	if err != nil {
		return err
	}
	p, err := o.probe(namespace)
	if err != nil {
		return err
	}
	seen, warned := map[string]Replica{}, false
	var other []answer
	for range rounds {
		answers := p.fire(ctx, c, min(burst*expected, maxBurst))
		for _, x := range answers {
			switch {
			case x.err != nil:
				return fmt.Errorf("probing: %w", x.err)
			case x.warned && a.Warn: // as policy says; who answered is not told
				warned = true
			case x.how != "":
				other = append(other, x)
			default:
				seen[x.replica.Name] = x.replica
			}
		}
		if len(seen) >= expected || len(other) > 0 || warned {
			break
		}
	}
	for _, name := range sortedNames(seen) {
		r.Replicas = append(r.Replicas, seen[name])
	}
	r.path(p, namespace, other, a.Warn, warned)
	if len(seen) > 0 {
		r.replicas(o, expected)
	}
	if a.Warn { // last: whatever else is wrong comes first
		r.add(checkMode, false, fixWarn, "policy says Warn: ordinary requests are only warned of, nothing is refused yet")
	}
	return nil
}

func (o Options) probe(namespace string) (probe, error) {
	app := policy.App{Namespace: namespace}
	e, err := o.Policy.For(app)
	if o.Environment != "" {
		e, err = o.Policy.ForEnvironment(app, o.Environment)
	}
	if err != nil {
		return probe{}, err
	}
	return choose(e, namespace)
}

func sortedNames(seen map[string]Replica) []string {
	var out []string
	for name := range seen {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// fire makes n probes at a time.
func (p probe) fire(ctx context.Context, c *live.Cluster, n int) []answer {
	answers := make([]answer, n)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() {
			object, err := p.named()
			if err != nil {
				answers[i] = answer{err: err}
				return
			}
			warnings, err := c.Probe(ctx, p.resource, object)
			answers[i] = judge(warnings, err)
		})
	}
	wg.Wait()
	return answers
}

// The API server's words about webhooks (k8s.io/apiserver,
// pkg/admission/plugin/webhook/errors and generic).
var (
	denied  = regexp.MustCompile(`^admission webhook "([^"]{1,253})" denied the request`)
	failing = regexp.MustCompile(`failed calling webhook "([^"]{1,253})"`)
)

// judge says what the API server's answer to a probe means.
func judge(warnings []string, err error) answer {
	if err == nil {
		return allowed(warnings)
	}
	if !live.Answered(err) {
		return answer{err: err}
	}
	message := err.Error()
	if m := denied.FindStringSubmatch(message); m != nil {
		if !strings.HasSuffix(m[1], ".syncgate.io") {
			return answer{how: fmt.Sprintf("the probe was denied by another webhook, %s, first: %s", m[1], clip(message)), fix: "exempt Roles, PodTemplates or NetworkPolicies named syncgate-doctor-* from that webhook, or take another --namespace"}
		}
		replica := told(err)
		if replica.Name == "" {
			return answer{how: "the webhook does not say which replica it is: it is of another version", fix: "install the same version of the webhook and of syncgate"}
		}
		return answer{replica: replica}
	}
	if m := failing.FindStringSubmatch(message); m != nil {
		if strings.HasSuffix(m[1], ".syncgate.io") {
			return answer{how: "the webhook is unreachable: " + clip(message), fix: "see that its Service has ready Pods, that the caBundle is that of its certificate, and that the control plane reaches port 8443"}
		}
		return answer{how: "another webhook fails before ours is heard: " + clip(message), fix: "mend or remove that webhook"}
	}
	switch code(err) {
	case http.StatusForbidden:
		return answer{how: "the probe was denied before any webhook was asked: " + clip(message), fix: "run it as somebody who may create Roles in the namespace; a dry run stores nothing"}
	case http.StatusNotFound:
		return answer{how: "the probe found no place: " + clip(message), fix: "name a gated namespace that exists with --namespace"}
	}
	return answer{how: "the probe was answered by something else: " + clip(message), fix: "take another --namespace"}
}

// allowed says why nobody refused.
func allowed(warnings []string) answer {
	for _, w := range warnings {
		switch {
		case strings.HasPrefix(w, "SYNC WOULD BE REFUSED"):
			return answer{warned: true, how: "the webhook is asked, but only warns: " + clip(w), fix: "set mode.admission to Enforce in the policy that it has loaded"}
		case strings.HasPrefix(w, "syncgate is off"):
			return answer{how: "the webhook is asked, but " + clip(w), fix: "syncgate on --namespace, or wait; --namespace probes another one"}
		}
	}
	return answer{how: "the webhook is not in the path: an object that needs a receipt would be stored without one", fix: fixConfiguration}
}

// told reads what the webhook says of itself.
func told(err error) Replica {
	var r Replica
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return r
	}
	for _, c := range status.Status().Details.Causes {
		switch c.Type {
		case "Replica":
			r.Name = c.Message
		case "PolicyHash":
			r.PolicyHash = c.Message
		case "KeyID":
			r.KeyIDs = append(r.KeyIDs, c.Message)
		case "ReloadFailed":
			r.ReloadFailed = c.Message
		}
	}
	return r
}

func code(err error) int32 {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return 0
	}
	return status.Status().Code
}

// path says whether the webhook is asked and heard.
func (r *Report) path(p probe, namespace string, other []answer, warns, warned bool) {
	kind := text(p.tree, "kind")
	if len(other) == 0 && warned {
		r.add("path", true, "", fmt.Sprintf("the API server asks the webhook: it warns of a %s in %s without receipt, and does not say which replica it is", kind, namespace))
		return
	}
	if len(other) == 0 && warns {
		r.add("path", true, "", fmt.Sprintf("the API server asks the webhook, and it answers: it refuses this probe, a %s in %s without receipt, to say which replica it is", kind, namespace))
		return
	}
	if len(other) == 0 {
		r.add("path", true, "", fmt.Sprintf("the API server asks the webhook: a %s in %s without receipt is refused by it", kind, namespace))
		return
	}
	var details []string
	for _, x := range other {
		if !slices.Contains(details, x.how) {
			details = append(details, x.how)
		}
	}
	slices.Sort(details)
	r.add("path", false, other[0].fix, details[:min(len(details), 3)]...)
}

// replicas says whether every replica judges alike.
func (r *Report) replicas(o Options, expected int) {
	r.add("replicas", len(r.Replicas) >= expected, "see that each has a ready Pod behind the Service; a replica that takes no connection cannot be asked",
		fmt.Sprintf("%d of %d answered: %s", len(r.Replicas), expected, clip(strings.Join(names(r.Replicas), ", "))))
	want := o.Policy.Hash()
	var lagging, failed, missing []string
	for _, x := range r.Replicas {
		if x.PolicyHash != want {
			lagging = append(lagging, fmt.Sprintf("replica %s has policy %s, the file at hand is %s", x.Name, x.PolicyHash, want))
		}
		if x.ReloadFailed != "" {
			failed = append(failed, fmt.Sprintf("replica %s cannot load its newest files: %s", x.Name, clip(x.ReloadFailed)))
		}
		for _, k := range o.KeyIDs {
			if !slices.Contains(x.KeyIDs, k) {
				missing = append(missing, fmt.Sprintf("replica %s has no key %s", x.Name, k))
			}
		}
	}
	r.each("policy", lagging, fixLag, "every replica has policy "+want)
	if len(o.KeyIDs) > 0 {
		r.each("keys", missing, fixLag, "every replica has key "+strings.Join(o.KeyIDs, ", "))
	}
	r.each("reload", failed, fixReload, "every replica goes by its newest files")
}

func (r *Report) each(name string, wrong []string, fix, good string) {
	if len(wrong) == 0 {
		r.add(name, true, "", good)
		return
	}
	r.add(name, false, fix, wrong...)
}

func names(list []Replica) []string {
	var out []string
	for _, r := range list {
		out = append(out, r.Name)
	}
	return out
}

// probeNamespace chooses where to probe: what was asked for, else default if it
// is gated, else the first that policy includes, else the first gated one that
// there is.
func probeNamespace(ctx context.Context, c *live.Cluster, a policy.Admission, asked string) (string, error) {
	switch {
	case asked != "":
		return asked, nil
	case a.Gated("default"):
		return "default", nil
	case len(a.Include) > 0:
		return a.Include[0], nil
	}
	all, err := c.List(ctx, namespaces)
	if err != nil {
		return "", fmt.Errorf("listing namespaces: %w", err)
	}
	for _, n := range all {
		if name := configurationName(n); a.Gated(name) {
			return name, nil
		}
	}
	return "", errors.New("no namespace of the cluster is gated: name one with --namespace")
}
