package certificate

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Cluster is as much of a cluster as is needed. The errors are the API
// server's: NotFound if there is no such object, Conflict if somebody else has
// changed it since.
type Cluster interface {
	Get(ctx context.Context, gvr schema.GroupVersionResource, namespace, name string) (map[string]any, error)
	CreateObject(ctx context.Context, gvr schema.GroupVersionResource, object map[string]any) error
	// UpdateObject replaces an object that was read, by its resourceVersion.
	UpdateObject(ctx context.Context, gvr schema.GroupVersionResource, object map[string]any) error
}

var (
	secrets        = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	configurations = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"}
)

// injected is cert-manager's annotation on a configuration that it fills in.
const injected = "cert-manager.io/inject-ca-from"

// Options of a renewal.
type Options struct {
	Namespace     string   // of the Service and the Secret
	Service       string   // that the webhook is behind
	Secret        string   // kubernetes.io/tls; ca.crt in it is what the configuration gets
	Configuration string   // the ValidatingWebhookConfiguration
	Hosts         []string // further names and IP addresses to serve under
	// Wait is how long to wait for a configuration that is not there yet.
	Wait time.Duration

	Now   func() time.Time
	Sleep func(context.Context, time.Duration) error
	Log   io.Writer // a line for each thing done
}

// settle is how long API servers get to learn a new authority before it is
// used; they hear of it by a watch.
const settle = 5 * time.Second

// poll is how often a missing configuration is looked for.
const poll = 2 * time.Second

// hosts are the names by which an API server calls a Service, and more.
func (o Options) hosts() []string {
	name := o.Service + "." + o.Namespace + ".svc"
	return append([]string{name, name + ".cluster.local"}, o.Hosts...)
}

// Renew sees to it that the Secret holds a certificate with more than a third
// of its life left, and that the configuration trusts its authority. Run again,
// it does nothing. It may be run by several at a time: who comes too late gets
// an error and finds things done the next time.
func Renew(ctx context.Context, c Cluster, o Options) error {
	now := o.Now()
	secret, err := c.Get(ctx, secrets, o.Namespace, o.Secret)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading Secret %s/%s: %w", o.Namespace, o.Secret, err)
	}
	old := readPair(secret)
	fresh, stale := o.fresh(secret, old, now)
	if fresh {
		return o.trust(ctx, c, old.authority)
	}
	next, err := issue(o.hosts(), now)
	if err != nil {
		return err
	}
	next.authority = bundle(now, next.authority, old.authority)
	// The configuration first, if it is there: an API server must know the
	// authority when the first replica serves by it.
	found, err := o.distribute(ctx, c, next.authority)
	if err != nil {
		return err
	}
	if found && secret != nil {
		if err := o.Sleep(ctx, settle); err != nil {
			return err
		}
	}
	if err := o.write(ctx, c, secret, next); err != nil {
		return err
	}
	fmt.Fprintf(o.Log, "made a certificate for %s until %s (%s)\n", o.hosts()[0], now.Add(Lifetime).UTC().Format(time.DateOnly), stale)
	if found {
		return nil
	}
	return o.trust(ctx, c, next.authority)
}

// fresh reports whether a Secret's certificate is good for more than a third of
// its life; stale says why not.
func (o Options) fresh(secret map[string]any, p pair, now time.Time) (fresh bool, stale string) {
	if secret == nil {
		return false, "there was none"
	}
	end, err := p.expiry(o.hosts(), now)
	if err != nil {
		return false, err.Error()
	}
	if end.Sub(now) <= Lifetime/3 {
		return false, "the old one ends " + end.UTC().Format(time.DateOnly)
	}
	return true, ""
}

// trust makes the configuration trust an authority, and waits for it if it is
// not there yet.
func (o Options) trust(ctx context.Context, c Cluster, authority []byte) error {
	for left := o.Wait; ; left -= poll {
		found, err := o.distribute(ctx, c, authority)
		if err != nil || found {
			return err
		}
		if left <= 0 {
			fmt.Fprintf(o.Log, "there is no ValidatingWebhookConfiguration %s yet: run this again when there is\n", o.Configuration)
			return nil
		}
		if err := o.Sleep(ctx, poll); err != nil {
			return err
		}
	}
}

// distribute puts an authority into the entries of the configuration that go to
// the Service or to one of the hosts, beside what they trust already.
func (o Options) distribute(ctx context.Context, c Cluster, authority []byte) (found bool, err error) {
	object, err := c.Get(ctx, configurations, "", o.Configuration)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading ValidatingWebhookConfiguration %s: %w", o.Configuration, err)
	}
	meta, _ := object["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	if by, is := annotations[injected].(string); is {
		return true, fmt.Errorf("ValidatingWebhookConfiguration %s gets its caBundle from cert-manager (%q): use one of the two", o.Configuration, by)
	}
	changed, ours := 0, 0
	webhooks, _ := object["webhooks"].([]any)
	for _, w := range webhooks {
		entry, _ := w.(map[string]any)
		client, _ := entry["clientConfig"].(map[string]any)
		if client == nil || !o.reaches(client) {
			continue
		}
		ours++
		text, _ := client["caBundle"].(string)
		was, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return true, fmt.Errorf("reading caBundle of ValidatingWebhookConfiguration %s: %w", o.Configuration, err)
		}
		next := bundle(o.Now(), authority, was)
		if !bytes.Equal(next, was) {
			client["caBundle"] = base64.StdEncoding.EncodeToString(next)
			changed++
		}
	}
	if ours == 0 {
		return true, fmt.Errorf("ValidatingWebhookConfiguration %s has no entry for Service %s/%s", o.Configuration, o.Namespace, o.Service)
	}
	if changed == 0 {
		return true, nil
	}
	if err := c.UpdateObject(ctx, configurations, object); err != nil {
		return true, fmt.Errorf("writing ValidatingWebhookConfiguration %s: %w", o.Configuration, err)
	}
	fmt.Fprintf(o.Log, "ValidatingWebhookConfiguration %s trusts the authority in %d entries\n", o.Configuration, ours)
	return true, nil
}

func (o Options) reaches(client map[string]any) bool {
	if service, ok := client["service"].(map[string]any); ok {
		return service["namespace"] == o.Namespace && service["name"] == o.Service
	}
	text, _ := client["url"].(string)
	u, err := url.Parse(text)
	if err != nil {
		return false
	}
	for _, h := range o.hosts() {
		if u.Hostname() == h {
			return true
		}
	}
	return false
}

func (o Options) write(ctx context.Context, c Cluster, secret map[string]any, p pair) error {
	data := map[string]any{}
	for key, text := range map[string][]byte{"tls.crt": p.certificate, "tls.key": p.key, "ca.crt": p.authority} {
		data[key] = base64.StdEncoding.EncodeToString(text)
	}
	if secret == nil {
		err := c.CreateObject(ctx, secrets, map[string]any{
			"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
			"metadata": map[string]any{"name": o.Secret, "namespace": o.Namespace, "labels": map[string]any{"app.kubernetes.io/name": "syncgate"}},
			"data":     data,
		})
		if err != nil {
			return fmt.Errorf("creating Secret %s/%s: %w", o.Namespace, o.Secret, err)
		}
		return nil
	}
	secret = maps.Clone(secret)
	secret["data"] = data
	if err := c.UpdateObject(ctx, secrets, secret); err != nil {
		return fmt.Errorf("writing Secret %s/%s: %w", o.Namespace, o.Secret, err)
	}
	return nil
}

// readPair takes what is there; what is not, or no base64, is nothing.
func readPair(secret map[string]any) pair {
	data, _ := secret["data"].(map[string]any)
	get := func(key string) []byte {
		text, _ := data[key].(string)
		b, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil
		}
		return b
	}
	return pair{certificate: get("tls.crt"), key: get("tls.key"), authority: get("ca.crt")}
}
