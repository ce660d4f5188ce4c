package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// client talks to the API server in bytes, so that trees are decoded as the
// gate decodes them and no typed struct stands between.
type client struct {
	discovery *discovery.DiscoveryClient
	http      rest.Interface
	version   string
	served    map[schema.GroupVersionKind]resource
}

// resource is where a kind is served.
type resource struct {
	path       string // "/api/v1" or "/apis/apps/v1"
	plural     string
	namespaced bool
}

func connect(kubeconfig string) (*client, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1 // no limit of our own
	config.WarningHandler = rest.NoWarnings{}
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	c := &client{discovery: d, http: d.RESTClient()}
	v, err := d.ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("asking for the server's version: %w", err)
	}
	c.version = v.GitVersion
	return c, c.discover()
}

// discover asks which kinds are served.
func (c *client) discover() error {
	_, lists, err := c.discovery.ServerGroupsAndResources()
	if err != nil {
		return fmt.Errorf("asking what is served: %w", err)
	}
	c.served = map[schema.GroupVersionKind]resource{}
	for _, l := range lists {
		gv, err := schema.ParseGroupVersion(l.GroupVersion)
		if err != nil {
			return err
		}
		path := "/apis/" + l.GroupVersion
		if gv.Group == "" {
			path = "/api/" + gv.Version
		}
		for _, r := range l.APIResources {
			if slices.Contains(r.Verbs, "create") && !bytes.ContainsRune([]byte(r.Name), '/') {
				c.served[gv.WithKind(r.Kind)] = resource{path, r.Name, r.Namespaced}
			}
		}
	}
	return nil
}

// at is the path of the collection that an object belongs to.
func (c *client) at(obj map[string]any) (path string, namespaced bool, err error) {
	gvk := gvk(obj)
	r, ok := c.served[gvk]
	if !ok {
		return "", false, fmt.Errorf("%s is not served", gvk.GroupVersion().WithKind(gvk.Kind))
	}
	if !r.namespaced {
		return r.path + "/" + r.plural, false, nil
	}
	return r.path + "/namespaces/" + text(obj, "metadata", "namespace") + "/" + r.plural, true, nil
}

func gvk(obj map[string]any) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(text(obj, "apiVersion"), text(obj, "kind"))
}

// answer is what the server would store, and its warnings.
type answer struct {
	tree     map[string]any
	warnings []string
}

// create sends an object; with dry the server stores nothing.
func (c *client) create(ctx context.Context, obj map[string]any, dry bool) (answer, error) {
	path, _, err := c.at(obj)
	if err != nil {
		return answer{}, err
	}
	return send(ctx, c.http.Post().AbsPath(path).SetHeader("Content-Type", "application/json"), obj, dry)
}

// apply is create by server-side apply.
func (c *client) apply(ctx context.Context, obj map[string]any, dry bool) (answer, error) {
	path, _, err := c.at(obj)
	if err != nil {
		return answer{}, err
	}
	r := c.http.Patch(types.ApplyPatchType).AbsPath(path+"/"+text(obj, "metadata", "name")).
		Param("force", "true").Param("fieldManager", "invariance")
	return send(ctx, r, obj, dry)
}

func send(ctx context.Context, r *rest.Request, obj map[string]any, dry bool) (answer, error) {
	body, err := json.Marshal(obj)
	if err != nil {
		return answer{}, err
	}
	if dry {
		r = r.Param("dryRun", "All")
	}
	result := r.Param("fieldValidation", "Warn").SetHeader("Accept", "application/json").Body(body).Do(ctx)
	raw, err := result.Raw()
	if err != nil {
		if status := result.Error(); status != nil {
			err = status
		}
		return answer{}, err
	}
	a := answer{}
	for _, w := range result.Warnings() {
		a.warnings = append(a.warnings, w.Text)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&a.tree); err != nil {
		return answer{}, fmt.Errorf("decoding the answer: %w", err)
	}
	return a, nil
}

// reason says in a few words why the server rejected an object.
func reason(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return short(string(status.Status().Reason) + ": " + status.Status().Message)
	}
	return short(err.Error())
}

// text returns the string at a path of members, or "".
func text(obj map[string]any, path ...string) string {
	for _, k := range path[:len(path)-1] {
		obj, _ = obj[k].(map[string]any)
	}
	s, _ := obj[path[len(path)-1]].(string)
	return s
}

// set copies an object with another value for a member of its metadata.
func set(obj map[string]any, name string, value any) map[string]any {
	out := maps.Clone(obj)
	meta, _ := obj["metadata"].(map[string]any)
	meta = maps.Clone(meta)
	if meta == nil {
		meta = map[string]any{}
	}
	meta[name] = value
	out["metadata"] = meta
	return out
}
