package harness

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
)

// watch keeps the objects of a resource, all namespaces, that match a field
// selector, and calls changed when one changes, until ctx ends. It outlives a
// restart of the API server.
func watch(ctx context.Context, client dynamic.Interface, r schema.GroupVersionResource, fields string, changed func()) (cache.Store, error) {
	all := client.Resource(r)
	// Not of package dynamicinformer, which links the clients of every kind.
	informer := cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = fields
			return all.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			o.FieldSelector = fields
			return all.Watch(ctx, o)
		},
	}, &unstructured.Unstructured{}, 0, cache.Indexers{})
	// A server that is down is no news here.
	if err := informer.SetWatchErrorHandler(func(*cache.Reflector, error) {}); err != nil {
		return nil, err
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { changed() },
		UpdateFunc: func(any, any) { changed() },
		DeleteFunc: func(any) { changed() },
	})
	if err != nil {
		return nil, err
	}
	go informer.RunWithContext(ctx)
	return informer.GetStore(), nil
}

// bell wakes one loop, however often it is rung meanwhile.
type bell chan struct{}

func (b bell) ring() {
	select {
	case b <- struct{}{}:
	default:
	}
}

// tick is how often a loop looks without being woken.
const tick = 250 * time.Millisecond

// loop calls step when the bell rings, and at least each tick, until ctx ends.
func (b bell) loop(ctx context.Context, step func()) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-b:
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		step()
	}
}

// typed decodes an object of a store. The store's own is not touched.
func typed[T any](item any) (*T, error) {
	var t T
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.(*unstructured.Unstructured).Object, &t)
	if err != nil {
		return nil, err
	}
	return &t, nil
}
