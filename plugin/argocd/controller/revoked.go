package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/receipt"
)

// Which Applications a revocation concerns. The controller does not see what is
// in Argo CD's cache, only what runs: where an Application is Synced the two
// are the same, and the receipts of its objects are in their annotations. For
// every other Application, and wherever something cannot be read, the answer is
// yes: a refresh too many is slow, one too few leaves a revoked approval.

// page is how many objects one request lists.
const page = 500

// receiptless are kinds that never carry a receipt: their objects need not be
// found, and no right to list them is asked for.
var receiptless = []schema.GroupKind{
	{Kind: "ConfigMap"}, {Kind: "LimitRange"}, {Kind: "ResourceQuota"},
	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}, {Group: "policy", Kind: "PodDisruptionBudget"},
}

// subject is an object in the cluster.
type subject struct {
	kind            schema.GroupKind
	namespace, name string
}

// subjectOf is the one that an entry of an Application's status is about.
func subjectOf(r tree) subject {
	return subject{schema.GroupKind{Group: r.text("group"), Kind: r.text("kind")}, r.text("namespace"), r.text("name")}
}

// resources returns what an Application manages, by kind in a version that
// serves it. ok is false if not all of it can be looked for.
func (a application) resources() (list []subject, kinds map[schema.GroupKind]string, ok bool) {
	kinds = map[schema.GroupKind]string{}
	all := a.status().objects("resources")
	for _, r := range all {
		s := subjectOf(r)
		kind := s.kind
		if slices.Contains(receiptless, kind) {
			continue
		}
		if kind == (schema.GroupKind{Kind: "Secret"}) {
			return nil, nil, false // the right to list them is that to read them
		}
		kinds[kind] = r.text("version")
		list = append(list, s)
	}
	return list, kinds, len(all) > 0
}

// known reports whether what runs of an Application tells what its cached
// render has.
func (a application) known() bool {
	if !a.local() || a.status().object("sync").text("status") != "Synced" || a.spec().has("sourceHydrator") {
		return false
	}
	for _, d := range a.spec().objects("ignoreDifferences") { // Synced, whatever receipt is rendered
		if slices.ContainsFunc(d.texts("jsonPointers"), func(p string) bool { return strings.HasPrefix(p, "/metadata") || p == "" || p == "/" }) ||
			len(d.texts("jqPathExpressions"))+len(d.texts("managedFieldsManagers")) > 0 {
			return false
		}
	}
	return true
}

// running is what entries of a revocation list go by in the objects that run, as
// far as they could be read.
type running struct {
	receipts   map[subject][]receipt.Unverified // an object without any is there, too
	images     map[subject]map[string]bool      // digests of entries that stand in the object
	unreadable map[schema.GroupKind]bool
}

// look lists the objects of Applications, their metadata alone unless an entry
// is about an image. Kinds that are not served, or must not be listed, are
// unreadable; any other error is one.
func look(ctx context.Context, c client.Reader, annotation string, apps []application, entries []receipt.Revocation) (running, error) {
	out := running{receipts: map[subject][]receipt.Unverified{}, images: map[subject]map[string]bool{}, unreadable: map[schema.GroupKind]bool{}}
	digests := map[string]bool{}
	for _, e := range entries {
		if e.Image != "" {
			digests[e.Image] = true
		}
	}
	wanted := map[subject]bool{}
	versions := map[schema.GroupKind]string{}
	for _, a := range apps {
		list, kinds, ok := a.resources()
		if !ok || !a.known() {
			continue
		}
		for _, s := range list {
			wanted[s] = true
		}
		for kind, version := range kinds {
			versions[kind] = max(versions[kind], version)
		}
	}
	for kind, version := range versions {
		err := out.list(ctx, c, kind.WithVersion(version), annotation, wanted, digests)
		switch {
		case err == nil:
		case apierrors.IsForbidden(err), apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err), meta.IsNoMatchError(err):
			out.unreadable[kind] = true
		default:
			return running{}, fmt.Errorf("listing %s: %w", kind, err)
		}
	}
	return out, nil
}

func (r running) list(ctx context.Context, c client.Reader, kind schema.GroupVersionKind, annotation string, wanted map[subject]bool, digests map[string]bool) error {
	options := &client.ListOptions{Limit: page}
	for {
		more, err := listPage(ctx, c, kind, options, len(digests) > 0, func(o client.Object) {
			s := subject{kind.GroupKind(), o.GetNamespace(), o.GetName()}
			if !wanted[s] {
				return
			}
			r.receipts[s] = parse(o.GetAnnotations()[annotation])
			if u, whole := o.(*unstructured.Unstructured); whole {
				r.images[s] = map[string]bool{}
				eachDigest(u.Object, func(digest string) {
					if digests[digest] {
						r.images[s][digest] = true
					}
				})
			}
		})
		if err != nil || more == "" {
			return err
		}
		options.Continue = more
	}
}

// listPage calls each for the objects of one page, whole or of metadata alone,
// and returns where the next begins.
func listPage(ctx context.Context, c client.Reader, kind schema.GroupVersionKind, o *client.ListOptions, whole bool, each func(client.Object)) (more string, err error) {
	of := kind.GroupVersion().WithKind(kind.Kind + "List")
	if whole {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(of)
		if err := c.List(ctx, list, o); err != nil {
			return "", err
		}
		for i := range list.Items {
			each(&list.Items[i])
		}
		return list.GetContinue(), nil
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(of)
	if err := c.List(ctx, list, o); err != nil {
		return "", err
	}
	for i := range list.Items {
		each(&list.Items[i])
	}
	return list.Continue, nil
}

// eachDigest finds the digest of every string that ends like a pinned image, in
// whatever field: one too many is a refresh too many.
func eachDigest(v any, found func(digest string)) {
	switch v := v.(type) {
	case map[string]any:
		for _, x := range v {
			eachDigest(x, found)
		}
	case []any:
		for _, x := range v {
			eachDigest(x, found)
		}
	case string:
		if i := strings.LastIndexByte(v, '@'); i >= 0 {
			found(v[i+1:])
		}
	}
}

// parse reads the receipts of an annotation. What nobody signed may stand among
// them: they only select, and what is no receipt selects nothing.
func parse(annotation string) []receipt.Unverified {
	out := []receipt.Unverified{}
	for i, compact := range strings.Fields(annotation) {
		if i == receipt.MaxPerObject {
			break
		}
		if u, err := receipt.ParseUnverified(compact); err == nil {
			out = append(out, u)
		}
	}
	return out
}

// errNotRead is why an Application is taken for concerned that may not be.
var errNotRead = errors.New("what its render holds cannot be read")

// concerned reports whether one of the entries takes back something that an
// Application's cached render may have been allowed by. The error, errNotRead,
// stands beside true.
func (r running) concerned(a application, entries []receipt.Revocation) (bool, error) {
	if len(entries) == 0 {
		return false, nil
	}
	list, kinds, ok := a.resources()
	if !ok || !a.known() {
		return true, errNotRead
	}
	for kind := range kinds {
		if r.unreadable[kind] {
			return true, errNotRead
		}
	}
	for _, s := range list {
		found, there := r.receipts[s]
		if !there { // the Job of a hook, or just deleted
			return true, errNotRead
		}
		if slices.ContainsFunc(entries, func(e receipt.Revocation) bool { return r.images[s][e.Image] }) {
			return true, nil
		}
		for _, u := range found {
			if slices.ContainsFunc(entries, func(e receipt.Revocation) bool { return takesBack(e, u) }) {
				return true, nil
			}
		}
	}
	return false, nil
}

// takesBack reports whether an entry is about a receipt. Images stand in objects
// and not in receipts.
func takesBack(e receipt.Revocation, u receipt.Unverified) bool {
	switch f := e.Floor; {
	case e.ID != "":
		return e.ID == u.Claims.ID
	case e.KeyID != "":
		return e.KeyID == u.KeyID
	case e.Release != "":
		return e.Release == u.Claims.Release
	case f != nil:
		return u.Claims.IssuedAt < f.IssuedBefore &&
			(f.Subject == "" || gate.Glob(f.Subject).Match(u.Claims.Subject)) &&
			(f.Environment == "" || f.Environment == u.Claims.Environment) &&
			(f.Category == "" || slices.Contains(u.Claims.Covers, f.Category))
	}
	return false
}
