package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/syncgate/syncgate/plugin/offswitch"
	"github.com/syncgate/syncgate/plugin/policy"
	"github.com/syncgate/syncgate/plugin/receipt"
	"github.com/syncgate/syncgate/plugin/settings"
)

// Controller sweeps: it looks at all Applications at once, and does what their
// state asks for. A sweep goes by what is there and not by what happened, so
// that a restart, or a second controller that takes over, loses nothing.
type Controller struct {
	Client  client.Client // Applications, from a cache
	Reader  client.Reader // everything else, from the API server
	Events  events.EventRecorder
	Loader  *policy.Loader
	Metrics *Metrics
	Log     *slog.Logger
	Now     func() time.Time

	ArgoNamespace string   // where Argo CD is, and the ConfigMaps are
	Environment   string   // the operator's choice, as --environment of the plugin
	Projects      []string // globs over gated projects; empty: all but the gate's own
	Settle        time.Duration

	pace *pacer

	told   map[string]told                 // by key: what was said of an Application
	warned map[string]*warning             // by key: what is known of one that policy only warns for
	lists  map[string][]receipt.Revocation // entries that were in force, by listHash
}

// Sweep does everything once. Refreshes are only made due: [Controller.Refresh]
// asks for them.
func (c *Controller) Sweep(ctx context.Context) error {
	p, _ := c.Loader.Policy()
	all := &unstructured.UnstructuredList{}
	all.SetGroupVersionKind(applicationKind.GroupVersion().WithKind(applicationKind.Kind + "List"))
	if err := c.Client.List(ctx, all); err != nil {
		return fmt.Errorf("listing Applications: %w", err)
	}
	var apps []application
	off, err := c.switches(ctx)
	if err != nil {
		return err
	}
	standings := map[string]standing{}
	published := map[string]string{}
	for i := range all.Items {
		a := read(&all.Items[i], c.ArgoNamespace)
		if !settings.ValidKey(a.key) {
			c.Log.Warn("the name is too long for a ConfigMap: nothing can be published", "application", a.key)
			continue
		}
		e := a.entry(p, c.Environment)
		text, err := e.Encode()
		if err != nil {
			e = settings.Refuse(err.Error())
			if text, err = e.Encode(); err != nil {
				return err
			}
		}
		apps = append(apps, a)
		standings[a.key] = standing{entry: e, warn: a.warned(p, c.Environment, e), off: off[a.key]}
		published[a.key] = text
	}
	if err := c.publish(ctx, published); err != nil {
		return err
	}
	c.Metrics.published.Set(float64(len(published)))
	failed := c.schedule(ctx, p, apps, published, off)
	for key, w := range c.warnings(ctx, p, apps, standings) {
		st := standings[key]
		st.warning = w
		standings[key] = st
	}
	return errors.Join(failed, c.report(ctx, apps, standings))
}

// publish makes the ConfigMap hold exactly these entries.
func (c *Controller) publish(ctx context.Context, data map[string]string) error {
	cm, err := c.configMap(ctx, settings.ConfigMap)
	if err != nil || maps.Equal(cm.Data, data) {
		return err
	}
	cm.Data, cm.BinaryData = data, nil
	if err := c.Client.Update(ctx, cm); err != nil {
		return fmt.Errorf("publishing settings: %w", err)
	}
	c.Log.Info("published", "applications", len(data))
	return nil
}

func (c *Controller) configMap(ctx context.Context, name string) (*corev1.ConfigMap, error) {
	cm := &corev1.ConfigMap{}
	if err := c.Reader.Get(ctx, types.NamespacedName{Namespace: c.ArgoNamespace, Name: name}, cm); err != nil {
		return nil, fmt.Errorf("reading ConfigMap %s/%s, which manifests/argocd/controller makes: %w", c.ArgoNamespace, name, err)
	}
	return cm, nil
}

// schedule makes due the refreshes of Applications that were judged by
// something else than what holds now.
func (c *Controller) schedule(ctx context.Context, p *policy.Policy, apps []application, published, off map[string]string) error {
	c.pace.begin()
	record, err := c.configMap(ctx, Refreshed)
	if err != nil {
		return err
	}
	entries := p.Revocations()
	c.remember(entries)
	patch := map[string]*string{} // nil removes
	for key := range record.Data {
		patch[key] = nil
	}
	var relisted []application // nothing but the list has changed
	for _, a := range apps {
		if len(a.asking()) == 0 {
			continue // the gate has no part in its renders
		}
		want := newStamp(p, a, published[a.key], off[a.key] != "")
		have, known := parseStamp(record.Data[a.key])
		if known {
			delete(patch, a.key)
		}
		switch {
		case have == want:
			c.pace.drop(a.key)
		case !known:
			c.put(a.key, want, "new")
		case have.rules != want.rules:
			c.put(a.key, want, "policy")
		case have.asked != want.asked:
			c.put(a.key, want, "annotations")
		case have.place != want.place:
			c.put(a.key, want, "moved")
		default:
			relisted = append(relisted, a)
		}
	}
	if err := c.relist(ctx, p, relisted, record.Data, published, off, patch); err != nil {
		return err
	}
	c.Metrics.pending.Set(float64(c.pace.size()))
	return c.record(ctx, patch)
}

// relist makes due those of which a new entry of the revocation list may take
// back something, and notes for the others that the list is no news.
func (c *Controller) relist(ctx context.Context, p *policy.Policy, apps []application, record, published, off map[string]string, patch map[string]*string) error {
	if len(apps) == 0 {
		return nil
	}
	entries := p.Revocations()
	live, err := look(ctx, c.Reader, p.Annotation(), apps, entries)
	if err != nil {
		return err
	}
	for _, a := range apps {
		have, _ := parseStamp(record[a.key])
		want := newStamp(p, a, published[a.key], off[a.key] != "")
		yes, unread := live.concerned(a, c.added(have.revoked, entries))
		if !yes {
			c.pace.drop(a.key)
			text := want.String()
			patch[a.key] = &text
			continue
		}
		cause := "revocation"
		if unread != nil {
			cause = "revocation, perhaps"
		}
		c.put(a.key, want, cause)
	}
	return nil
}

// remember keeps the entries of lists, to know later what is new in another.
func (c *Controller) remember(entries []receipt.Revocation) {
	const several = 16
	if c.lists == nil || len(c.lists) >= several {
		c.lists = map[string][]receipt.Revocation{}
	}
	c.lists[listHash(entries)] = entries
}

// added returns the entries that another list did not have; all, if this
// process never saw that one.
func (c *Controller) added(since string, entries []receipt.Revocation) []receipt.Revocation {
	if since == listHash(nil) {
		return entries
	}
	before, known := c.lists[since]
	if !known {
		return entries
	}
	had := map[string]bool{}
	for _, e := range before {
		had[listHash([]receipt.Revocation{e})] = true
	}
	return slices.DeleteFunc(slices.Clone(entries), func(e receipt.Revocation) bool { return had[listHash([]receipt.Revocation{e})] })
}

// put makes a refresh due when the sidecars' mounts are sure to be as new as
// what is to be seen.
func (c *Controller) put(key string, want stamp, cause string) {
	if c.pace.put(key, refresh{at: c.Now().Add(jitter(c.Settle)), want: want, cause: cause}) {
		c.Log.Info("refresh is due", "application", key, "cause", cause, "in", c.Settle.String())
	}
}

// record changes stamps.
func (c *Controller) record(ctx context.Context, patch map[string]*string) error {
	if len(patch) == 0 {
		return nil
	}
	cm := &corev1.ConfigMap{}
	cm.Namespace, cm.Name = c.ArgoNamespace, Refreshed
	if err := c.Client.Patch(ctx, cm, mergePatch(map[string]any{"data": patch})); err != nil {
		return fmt.Errorf("recording refreshes: %w", err)
	}
	return nil
}

// Refresh asks Argo CD for a render that is not from its cache, and notes by
// what it will be judged. Only the hard refresh is: another one is answered from
// the cache.
func (c *Controller) Refresh(ctx context.Context, key string, r refresh) error {
	namespace, name, found := strings.Cut(key, "_")
	if !found {
		namespace, name = c.ArgoNamespace, key
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(applicationKind)
	u.SetNamespace(namespace)
	u.SetName(name)
	err := c.Client.Patch(ctx, u, mergePatch(map[string]any{"metadata": map[string]any{"annotations": map[string]any{refreshAnnotation: "hard"}}}))
	if client.IgnoreNotFound(err) != nil {
		c.Log.Error("asking for a refresh", "application", key, "error", err.Error())
		return fmt.Errorf("asking for a refresh of %s: %w", key, err)
	}
	if err != nil { // it is gone
		return nil
	}
	c.Log.Info("refresh", "application", key, "cause", r.cause)
	c.Metrics.refreshes.WithLabelValues(r.cause).Inc()
	text := r.want.String()
	if err := c.record(ctx, map[string]*string{key: &text}); err != nil {
		c.Log.Error("recording a refresh", "application", key, "error", err.Error())
		return err
	}
	return nil
}

// refreshAnnotation is Argo CD's: it takes it away when the refresh is done.
const refreshAnnotation = "argocd.argoproj.io/refresh"

// switches returns the applications for which the gate is off now, with until
// when and why, by the ConfigMap that the sidecars mount. When a switch ends, what was rendered under
// it must go from the cache. One that cannot be read switches nothing off.
func (c *Controller) switches(ctx context.Context) (map[string]string, error) {
	cm := &corev1.ConfigMap{}
	err := c.Reader.Get(ctx, types.NamespacedName{Namespace: c.ArgoNamespace, Name: offswitch.ConfigMap}, cm)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading off-switches: %w", err)
	}
	out := map[string]string{}
	for key, value := range cm.Data {
		s, err := offswitch.Decode([]byte(value))
		if err != nil || s.Key() != key || s.App == "" || s.Check(c.Now()) != nil {
			continue
		}
		if until, err := time.Parse(time.RFC3339, s.Until); err == nil && c.Now().Before(until) {
			out[s.App] = s.Until + ": " + s.Reason
		}
	}
	return out, nil
}

// inGatedProject reports whether a project is one in which every source is
// meant to name the plugin.
func (c *Controller) inGatedProject(project string) bool {
	return Options{Projects: c.Projects}.gates(project)
}
