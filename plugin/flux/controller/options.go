package controller

import (
	"errors"
	"fmt"
	"os"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/artifact/config"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Options of the controller.
type Options struct {
	Environment   string // the operator's choice; empty: what policy says
	FluxNamespace string // whose Kustomizations policy calls by their bare names
	EventsAddr    string // of notification-controller; empty: none
	Concurrent    int    // Kustomizations judged at once
	Off           string // directory of the off-switches; empty: none

	// NoCrossNamespaceRefs is that of Flux's controllers. A Kustomization of artifact
	// mode is built by the gate, so that theirs says nothing of it.
	NoCrossNamespaceRefs bool

	Storage config.Options // StoragePath empty: no artifact mode
}

// BindFlags adds the controller's flags, those of Flux under Flux's names.
func (o *Options) BindFlags(f *pflag.FlagSet) {
	f.StringVar(&o.FluxNamespace, "flux-namespace", "flux-system", "namespace whose Kustomizations policy calls by their bare names; others are NAMESPACE_NAME")
	f.StringVar(&o.EventsAddr, "events-addr", "", "address of notification-controller; empty for none")
	f.IntVar(&o.Concurrent, "concurrent", 4, "Kustomizations that are judged at once")
	f.StringVar(&o.Off, "off", "", "directory where the ConfigMap syncgate-off of the gate's namespace is mounted; empty for none")
	f.BoolVar(&o.NoCrossNamespaceRefs, "no-cross-namespace-refs", true, "build a Kustomization of sources in its own namespace only; false where kustomize-controller allows others, too")
	f.StringVar(&o.Storage.StoragePath, "storage-path", "", "folder for the artifacts that the gate publishes; without one there is no artifact mode")
	f.StringVar(&o.Storage.StorageAddress, "storage-addr", ":9090", "address on which artifacts are served (plain HTTP; their digests are in the cluster)")
	f.StringVar(&o.Storage.StorageAdvAddress, "storage-adv-addr", "", "address of that server for kustomize-controller: HOST[:PORT] of the Service")
	f.DurationVar(&o.Storage.ArtifactRetentionTTL, "artifact-retention-ttl", time.Minute, "how long an artifact is kept that another one has replaced")
	f.IntVar(&o.Storage.ArtifactRetentionRecords, "artifact-retention-records", 2, "artifacts kept of a Kustomization, whatever their age")
}

// Check returns what is wrong with the options.
func (o *Options) Check() error {
	switch {
	case o.Concurrent < 1:
		return fmt.Errorf("--concurrent %d: want at least 1", o.Concurrent)
	case o.Storage.ArtifactRetentionRecords < 1 || o.Storage.ArtifactRetentionTTL < 0:
		return errors.New("--artifact-retention-records, --artifact-retention-ttl: want at least 1, and 0s")
	case o.Storage.StoragePath == "":
		return nil
	}
	st, err := os.Stat(o.Storage.StoragePath)
	if err != nil || !st.IsDir() {
		return fmt.Errorf("--storage-path %q is not a directory", o.Storage.StoragePath)
	}
	return nil
}

// watchLabel is on ConfigMaps of which Flux's controllers want to know: the
// gate's own, and those for variables that somebody wants followed at once.
const (
	watchLabel   = "reconcile.fluxcd.io/watch"
	watchEnabled = "Enabled"
)

// Cache is what is watched, beside Kustomizations and sources in all namespaces.
func (o *Options) Cache() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&corev1.ConfigMap{}: {Label: labels.SelectorFromSet(labels.Set{watchLabel: watchEnabled})},
	}
}

// Uncached are the types that are read from the API server: no ConfigMap or
// Secret is kept, and a condition is patched on what is there now.
func (o *Options) Uncached() []client.Object {
	return []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}, &kustomizev1.Kustomization{}}
}

// Scheme has the types that controllers of the gate read and write.
func Scheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	return s, errors.Join(corev1.AddToScheme(s), kustomizev1.AddToScheme(s), sourcev1.AddToScheme(s))
}

// kustomization is an empty one to read into: as a raw tree, so that a field
// that this program does not know is seen.
func kustomization() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kustomizev1.GroupVersion.WithKind(kustomizev1.KustomizationKind))
	return u
}
