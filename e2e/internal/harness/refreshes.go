package harness

import (
	"context"
	"maps"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// refreshAnnotation asks Argo CD for a refresh, which then takes it away.
const refreshAnnotation = "argocd.argoproj.io/refresh"

// Refreshes are the hard refreshes that somebody has asked for.
type Refreshes struct {
	mu    sync.Mutex
	count map[string]int // by "NAMESPACE/NAME"
}

// StandInForArgoCD answers requests for a refresh as Argo CD does once it has
// compared, by taking the annotation away, and counts the hard ones: each comes
// in a watch, of which nothing is left out. It ends with the test.
func (c *Cluster) StandInForArgoCD() *Refreshes {
	c.T.Helper()
	r := &Refreshes{count: map[string]int{}}
	ctx, cancel := context.WithCancel(context.Background())
	apps := c.client.Resource(Applications)
	var asked sync.Map // who has the annotation now
	look := func(o any) {
		u, ok := o.(*unstructured.Unstructured)
		if !ok {
			return
		}
		name := u.GetNamespace() + "/" + u.GetName()
		value, there := u.GetAnnotations()[refreshAnnotation]
		if !there {
			asked.Delete(name)
			return
		}
		if _, already := asked.LoadOrStore(name, true); already {
			return
		}
		if value == "hard" {
			r.mu.Lock()
			r.count[name]++
			r.mu.Unlock()
		}
		// One that fails is seen by who waits for the next.
		_, _ = apps.Namespace(u.GetNamespace()).Patch(ctx, u.GetName(), types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+refreshAnnotation+`":null}}}`), metav1.PatchOptions{})
	}
	informer := cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return apps.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			return apps.Watch(ctx, o)
		},
	}, &unstructured.Unstructured{}, 0, cache.Indexers{})
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: look, UpdateFunc: func(_, o any) { look(o) }}); err != nil {
		c.T.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() { informer.RunWithContext(ctx) })
	c.T.Cleanup(func() { cancel(); running.Wait() })
	return r
}

// Take returns how often each was to be refreshed since the last Take.
func (r *Refreshes) Take() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := maps.Clone(r.count)
	clear(r.count)
	return out
}

// Seen returns how many different ones were to be refreshed since the last Take.
func (r *Refreshes) Seen() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.count)
}
