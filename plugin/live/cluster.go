// Package live looks at one cluster and asks its API server what it would
// store: through client-go's dynamic client, with the rights of whoever runs
// it. It writes nothing but the off-switch and, for package certificate, the
// webhook's certificate; everything else is a read or a server-side dry run.
package live

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// fieldManager is who we are in requests that ask for one.
const fieldManager = "syncgate"

// requestTimeout bounds one request: an API server that waits for a webhook
// that is down answers within the 30 s that such a webhook may have at most.
const requestTimeout = 40 * time.Second

// Options say which cluster. Both may be empty: then it is what kubectl would
// take, or the cluster that the process runs in.
type Options struct {
	Kubeconfig string // file
	Context    string // name in it
}

// Cluster is a connection to one API server.
type Cluster struct {
	config    *rest.Config
	client    dynamic.Interface
	discovery *discovery.DiscoveryClient

	mu     sync.Mutex
	served map[string]*metav1.APIResourceList // by apiVersion
}

// Connect reads the kubeconfig. It asks nobody yet.
func Connect(o Options) (*Cluster, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: o.Context}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading kubeconfig: %w", err)
	}
	return New(config)
}

// New returns a connection by a client-go configuration.
func New(config *rest.Config) (*Cluster, error) {
	config = rest.CopyConfig(config)
	config.UserAgent = "syncgate"
	config.QPS, config.Burst = 200, 400 // probes come in bursts
	if config.Timeout == 0 {
		config.Timeout = requestTimeout
	}
	config.WarningHandlerWithContext = collector{}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	return &Cluster{config: config, client: client, discovery: d, served: map[string]*metav1.APIResourceList{}}, nil
}

// As returns the cluster as another user sees it, for whoever may impersonate
// that user. Whether one may turns out with the first request.
func (c *Cluster) As(user string) (*Cluster, error) {
	config := rest.CopyConfig(c.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	return New(config)
}

// Host is the API server's address, for messages.
func (c *Cluster) Host() string { return c.config.Host }

// WhoAmI returns the user name that the API server knows us by.
func (c *Cluster) WhoAmI(ctx context.Context) (string, error) {
	gvr := schema.GroupVersionResource{Group: "authentication.k8s.io", Version: "v1", Resource: "selfsubjectreviews"}
	review := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}}
	got, err := c.client.Resource(gvr).Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("asking who we are: %w", err)
	}
	name, _, err := unstructured.NestedString(got.Object, "status", "userInfo", "username")
	if err != nil || name == "" {
		return "", errors.New("asking who we are: the answer names no user")
	}
	return name, nil
}

// Get returns an object as a raw tree; the error is NotFound if there is none.
func (c *Cluster) Get(ctx context.Context, gvr schema.GroupVersionResource, namespace, name string) (map[string]any, error) {
	u, err := c.client.Resource(gvr).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return tree(u)
}

// maxList is how many objects one page of a list has.
const maxList = 500

// List returns all objects of a resource as raw trees. A resource that the API
// server does not serve has none.
func (c *Cluster) List(ctx context.Context, gvr schema.GroupVersionResource) ([]map[string]any, error) {
	var out []map[string]any
	o := metav1.ListOptions{Limit: maxList}
	for {
		page, err := c.client.Resource(gvr).List(ctx, o)
		if apierrors.IsNotFound(err) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			t, err := tree(&page.Items[i])
			if err != nil {
				return nil, err
			}
			out = append(out, t)
		}
		if o.Continue = page.GetContinue(); o.Continue == "" {
			return out, nil
		}
	}
}

// ErrNotServed says that the cluster has no such kind.
var ErrNotServed = errors.New("the cluster does not serve this kind")

// Resource returns under which name the API server serves a kind, and whether
// its objects have a namespace. The error is ErrNotServed if it does not.
func (c *Cluster) Resource(ctx context.Context, apiVersion, kind string) (gvr schema.GroupVersionResource, namespaced bool, err error) {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return gvr, false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.served[apiVersion]
	if list == nil {
		list, err = c.discovery.ServerResourcesForGroupVersionWithContext(ctx, apiVersion)
		if apierrors.IsNotFound(err) {
			list, err = &metav1.APIResourceList{}, nil
		}
		if err != nil {
			return gvr, false, fmt.Errorf("asking for the kinds of %q: %w", apiVersion, err)
		}
		c.served[apiVersion] = list
	}
	for _, r := range list.APIResources {
		if r.Kind == kind && !strings.Contains(r.Name, "/") {
			return gv.WithResource(r.Name), r.Namespaced, nil
		}
	}
	return gvr, false, ErrNotServed
}

// tree is an object as the core wants it: decoded JSON with json.Number.
func tree(u *unstructured.Unstructured) (map[string]any, error) {
	data, err := json.Marshal(u.Object)
	if err != nil {
		return nil, err
	}
	return decode(data)
}

func decode(data []byte) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var t map[string]any
	if err := d.Decode(&t); err != nil {
		return nil, fmt.Errorf("decoding what the API server sent: %w", err)
	}
	return t, nil
}

// Answered reports whether an error is the API server's own answer about the
// object that was sent, and no fault on the way to it: nobody there, nobody
// let in, an overloaded server.
func Answered(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	switch code := status.Status().Code; code {
	case http.StatusUnauthorized, http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return false
	default:
		return code >= 400
	}
}

// warnings are what the API server sent as warnings about one request.
type warnings struct {
	mu   sync.Mutex
	list []string
}

type warningsKey struct{}

// withWarnings returns a context whose requests' warnings are collected.
func withWarnings(ctx context.Context) (context.Context, *warnings) {
	w := &warnings{}
	return context.WithValue(ctx, warningsKey{}, w), w
}

func (w *warnings) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.list
}

// collector puts warnings where the request's context wants them, and nowhere
// if it does not.
type collector struct{}

var _ rest.WarningHandlerWithContext = collector{}

// maxWarnings bounds what one answer may make us keep.
const maxWarnings = 20

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (collector) HandleWarningHeaderWithContext(ctx context.Context, code int, _, text string) {
	w, ok := ctx.Value(warningsKey{}).(*warnings)
	if !ok || code != 299 || text == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.list) < maxWarnings {
		w.list = append(w.list, text)
	}
}
