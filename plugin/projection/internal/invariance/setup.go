package main

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/syncgate/syncgate/plugin/internal/manifest"
)

//go:embed setup.yaml
var setupManifests []byte

// patience is how long the server may take until what was created has effect.
const patience = time.Minute

// pullSecret is what every service account gets, because the API server copies
// it into Pods that name none.
const pullSecret = "from-the-service-account"

// setUp creates what makes the cluster decide fields, and waits until it does.
func (c *client) setUp(ctx context.Context) error {
	objects, err := manifest.Parse(setupManifests, "setup.yaml")
	if err != nil {
		return err
	}
	for _, o := range objects {
		if err := c.ensure(ctx, o.Tree); err != nil {
			return err
		}
	}
	balancer := object("v1", "Service", "default", "asked")
	balancer["spec"] = map[string]any{"type": "LoadBalancer", "ports": []any{map[string]any{"port": 80}}}
	entry := object("networking.k8s.io/v1", "Ingress", "default", "asked")
	entry["spec"] = map[string]any{"defaultBackend": map[string]any{"service": map[string]any{"name": "x", "port": map[string]any{"number": 80}}}}
	claim := object("v1", "PersistentVolumeClaim", "default", "asked")
	claim["spec"] = map[string]any{"accessModes": []any{"ReadWriteOnce"}, "resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}}}
	for _, probe := range []struct {
		object map[string]any
		field  string
	}{{balancer, "loadBalancerClass"}, {entry, "ingressClassName"}, {claim, "storageClassName"}} {
		err := c.until(ctx, "the cluster to fill in "+probe.field, func() (bool, error) {
			a, err := c.create(ctx, probe.object, true)
			return text(a.tree, "spec", probe.field) != "", err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// until polls a condition. An error of it is told when patience ends.
func (c *client) until(ctx context.Context, what string, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		ok, err := done()
		if ok && err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w; last: %v", what, ctx.Err(), err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// ensure creates an object for good, unless it is there.
func (c *client) ensure(ctx context.Context, obj map[string]any) error {
	if _, err := c.create(ctx, obj, false); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating %s %q: %w", text(obj, "kind"), text(obj, "metadata", "name"), err)
	}
	return nil
}

func object(version, kind, namespace, name string) map[string]any {
	meta := map[string]any{"name": name}
	if namespace != "" {
		meta["namespace"] = namespace
	}
	return map[string]any{"apiVersion": version, "kind": kind, "metadata": meta}
}

// install creates definitions of custom resources and waits until they are
// served. One that the server does not take stays out: its objects are
// rejected, and say so.
func (c *client) install(ctx context.Context, definitions []*row) error {
	var kinds []schema.GroupVersionKind
	for _, d := range definitions {
		if !d.is("apiextensions.k8s.io", "CustomResourceDefinition") {
			continue
		}
		a, err := c.create(ctx, withoutMetadata(d.object.Tree, "resourceVersion", "uid"), false)
		if err != nil {
			continue
		}
		spec, _ := a.tree["spec"].(map[string]any)
		versions, _ := spec["versions"].([]any)
		for _, v := range versions {
			if v, _ := v.(map[string]any); v["served"] == true {
				kinds = append(kinds, schema.GroupVersionKind{Group: text(spec, "group"), Version: text(v, "name"), Kind: text(spec, "names", "kind")})
			}
		}
	}
	return c.until(ctx, "custom resources to be served", func() (bool, error) {
		if err := c.discover(); err != nil {
			return false, err
		}
		for _, k := range kinds {
			if _, ok := c.served[k]; !ok {
				return false, fmt.Errorf("%s is not", k)
			}
		}
		return true, nil
	})
}

// surroundings creates what objects of the corpus need to exist: namespaces
// with a default service account, and the service accounts and classes that
// Pods name. Names that are no names are left to the server to reject.
func (c *client) surroundings(ctx context.Context, rows []*row) error {
	namespaces, accounts := map[string]bool{fallback: true}, map[[2]string]bool{}
	for _, r := range rows {
		if r.document == 0 {
			continue
		}
		ns := namespaceOf(r.object)
		namespaces[ns] = true
		if !r.is("", "Pod") {
			continue
		}
		spec, _ := r.object.Tree["spec"].(map[string]any)
		for _, field := range []string{"serviceAccountName", "serviceAccount"} {
			if name := text(spec, field); name != "" {
				accounts[[2]string{ns, name}] = true
			}
		}
		if err := c.classes(ctx, spec); err != nil {
			return err
		}
	}
	for ns := range namespaces {
		if err := tolerate(c.ensure(ctx, object("v1", "Namespace", "", ns))); err != nil {
			return err
		}
		accounts[[2]string{ns, "default"}] = true
	}
	for a := range accounts {
		account := object("v1", "ServiceAccount", a[0], a[1])
		account["imagePullSecrets"] = []any{map[string]any{"name": pullSecret}}
		if _, err := c.apply(ctx, account, false); tolerate(err) != nil {
			return fmt.Errorf("applying ServiceAccount %q: %w", a, err)
		}
	}
	return nil
}

func (c *client) classes(ctx context.Context, pod map[string]any) error {
	if name := text(pod, "priorityClassName"); name != "" {
		class := object("scheduling.k8s.io/v1", "PriorityClass", "", name)
		class["value"] = 1000
		if err := tolerate(c.ensure(ctx, class)); err != nil {
			return err
		}
	}
	if name := text(pod, "runtimeClassName"); name != "" {
		class := object("node.k8s.io/v1", "RuntimeClass", "", name)
		class["handler"] = "corpus"
		return tolerate(c.ensure(ctx, class))
	}
	return nil
}

// tolerate lets what the server finds wrong with a name of the corpus pass.
func tolerate(err error) error {
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) || apierrors.IsBadRequest(err) ||
		apierrors.ReasonForError(err) == metav1.StatusReasonMethodNotAllowed {
		return nil
	}
	return err
}
