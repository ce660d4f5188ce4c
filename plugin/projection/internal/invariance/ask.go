package main

import (
	"context"
	"regexp"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/syncgate/syncgate/plugin/internal/manifest"
)

const (
	// fallback is where objects without a namespace go.
	fallback = "corpus"
	// workers at once: the server does not get faster with more on two cores.
	workers = 4
)

// ask fills in the verdict of every row.
func (c *client) ask(ctx context.Context, rows, definitions []*row) error {
	if err := c.setUp(ctx); err != nil {
		return err
	}
	// Before they exist, or a dry run of them would not be a creation.
	first := func(r *row) bool {
		return r.is("apiextensions.k8s.io", "CustomResourceDefinition") || r.is("", "Namespace")
	}
	if err := c.each(ctx, rows, first); err != nil {
		return err
	}
	if err := c.install(ctx, append(definitions, rows...)); err != nil {
		return err
	}
	if err := c.surroundings(ctx, rows); err != nil {
		return err
	}
	return c.each(ctx, rows, func(r *row) bool { return !first(r) })
}

func (c *client) each(ctx context.Context, rows []*row, which func(*row) bool) error {
	todo := make(chan *row)
	var wg sync.WaitGroup
	for range workers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for r := range todo {
				c.judge(ctx, r)
			}
		}()
	}
	for _, r := range rows {
		if r.document > 0 && which(r) && ctx.Err() == nil {
			todo <- r
		}
	}
	close(todo)
	wg.Wait()
	return ctx.Err()
}

func namespaceOf(o manifest.Object) string {
	if ns := o.Namespace(); ns != "" {
		return ns
	}
	return fallback
}

// judge asks about one document, in three ways. The first that is not the same
// as what was sent is the verdict.
func (c *client) judge(ctx context.Context, r *row) {
	r.sent = withoutMetadata(r.object.Tree, "resourceVersion", "uid", "managedFields", "creationTimestamp")
	_, namespaced, err := c.at(r.sent)
	if err != nil {
		r.outcome, r.field = rejected, short(err.Error())
		return
	}
	if namespaced {
		r.sent = set(r.sent, "namespace", namespaceOf(r.object))
	}
	created, err := c.create(ctx, r.sent, true)
	if name := r.object.Name(); apierrors.IsAlreadyExists(err) && name != "" {
		// Another of that name is part of the cluster. No digest looks at names.
		r.sent = set(r.sent, "name", name+"-of-the-corpus")
		created, err = c.create(ctx, r.sent, true)
	}
	if err != nil {
		r.outcome, r.field = rejected, reason(err)
		return
	}
	r.stored = created.tree
	r.verdict = r.compare(created)
	if r.outcome != same && r.outcome != defaulted {
		return
	}
	// Some objects can be created and not applied, those with a generated name
	// or a key that stands twice in a list.
	if text(r.sent, "metadata", "name") != "" {
		if applied, err := c.apply(ctx, r.sent, true); err == nil {
			if v := r.compare(applied); v != r.verdict {
				r.verdict, r.stored = v, applied.tree
				r.outcome, r.field = differs, short("applied: "+v.outcome+" "+v.field)
				return
			}
		}
	}
	c.resubmit(ctx, r)
}

func (r *row) compare(a answer) verdict {
	return compare(r.group(), r.object.Kind(), r.sent, a.tree, a.warnings)
}

// resubmit sends what would be stored: nothing may move any more.
func (c *client) resubmit(ctx context.Context, r *row) {
	again := unallocated(withoutMetadata(r.stored, "resourceVersion", "uid", "managedFields", "creationTimestamp", "generation"))
	a, err := c.create(ctx, again, true)
	if err != nil {
		r.outcome, r.field = differs, short("resubmitted: "+reason(err))
		return
	}
	if v := compare(r.group(), r.object.Kind(), r.stored, a.tree, a.warnings); v.outcome != same {
		r.outcome, r.field = differs, short("resubmitted: "+v.outcome+" "+v.field)
	}
}

// unallocated leaves out what belongs to one object of its name alone, and is
// therefore refused in another: a Service's addresses, a Job's own labels. No
// digest looks at them.
func unallocated(obj map[string]any) map[string]any {
	generated := []string{"spec.clusterIP", "spec.clusterIPs", "spec.ports[].nodePort", "spec.healthCheckNodePort", "spec.ipFamilies", "spec.ipFamilyPolicy"}
	switch text(obj, "kind") {
	case "Service":
	case "Job":
		generated = []string{"spec.selector"}
		for _, l := range []string{"controller-uid", "batch.kubernetes.io/controller-uid"} {
			generated = append(generated, "metadata.labels."+l, "spec.template.metadata.labels."+l)
		}
	default:
		return obj
	}
	return copyWithout("", obj, func(path, _ string, v any) bool {
		if ips, _ := v.([]any); v == "None" || len(ips) == 1 && ips[0] == "None" {
			return false // a headless Service has none
		}
		return slices.Contains(generated, position.ReplaceAllString(path, "[]"))
	}).(map[string]any)
}

var position = regexp.MustCompile(`\[\d+\]`)
