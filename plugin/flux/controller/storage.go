package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/artifact/storage"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/syncgate/syncgate/plugin/flux/hook"
)

// records is the folder, in that of the artifacts, of what was approved last of
// each Kustomization: RECORDS/NAMESPACE/NAME.json. The cluster's own status is
// no memory: others can write it.
const records = "approved"

// maxRecord bounds one, in bytes.
const maxRecord = 64 << 10

func (r *Reconciler) recordFile(key client.ObjectKey) string {
	return filepath.Join(r.Storage.BasePath, records, key.Namespace, key.Name+".json")
}

// record notes what was approved.
func (r *Reconciler) record(s subject, a meta.Artifact) error {
	data, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("encoding a record: %w", err)
	}
	file := r.recordFile(client.ObjectKeyFromObject(s))
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("writing a record: %w", err)
	}
	if err := os.WriteFile(file+".new", data, 0o600); err != nil {
		return fmt.Errorf("writing a record: %w", err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		return fmt.Errorf("writing a record: %w", err)
	}
	return nil
}

// stored returns what was approved last, if this process can still serve it:
// nil if there is nothing, or its file is gone or is not what it was.
func (r *Reconciler) stored(s subject) (*meta.Artifact, error) {
	f, err := os.Open(r.recordFile(client.ObjectKeyFromObject(s)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading a record: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxRecord))
	if err != nil {
		return nil, fmt.Errorf("reading a record: %w", err)
	}
	a := &meta.Artifact{}
	if err := json.Unmarshal(data, a); err != nil {
		r.Log.Error("a record cannot be read; nothing is approved by it", "file", f.Name(), "error", err.Error())
		return nil, nil
	}
	if err := r.Storage.VerifyArtifact(*a); err != nil {
		r.Metrics.repairs.WithLabelValues("file").Inc()
		r.Log.Warn("a stored artifact is gone or changed", "path", a.Path, "error", err.Error())
		return nil, nil
	}
	r.Storage.SetArtifactURL(a) // the address may have changed
	return a, nil
}

// collect removes artifacts that others have replaced, once nobody fetches them
// any more.
func (r *Reconciler) collect(ctx context.Context, current meta.Artifact) {
	const patience = time.Minute
	gone, err := r.Storage.GarbageCollect(ctx, current, patience)
	if err != nil {
		r.Log.Error("collecting old artifacts", "path", current.Path, "error", err.Error())
	} else if len(gone) > 0 {
		r.Log.Info("collected old artifacts", "path", current.Path, "count", len(gone))
	}
}

// discard removes what is stored for a Kustomization that is gone.
func (r *Reconciler) discard(key client.ObjectKey) error {
	own, err := hook.Name(key.Name)
	if r.Storage == nil || err != nil {
		return nil
	}
	dir := filepath.Join(r.Storage.BasePath, storage.ArtifactDir(sourcev1.ExternalArtifactKind, key.Namespace, own))
	if err := errors.Join(os.RemoveAll(dir), os.RemoveAll(r.recordFile(key))); err != nil {
		return fmt.Errorf("removing artifacts: %w", err)
	}
	return nil
}

// sweep removes what is stored for Kustomizations that went while nobody was
// looking.
func (r *Reconciler) sweep(ctx context.Context) error {
	files, err := filepath.Glob(filepath.Join(r.Storage.BasePath, records, "*", "*.json"))
	if err != nil {
		return err
	}
	for _, file := range files {
		key := client.ObjectKey{Namespace: filepath.Base(filepath.Dir(file)), Name: strings.TrimSuffix(filepath.Base(file), ".json")}
		if err := r.Cache.Get(ctx, key, kustomization()); !apierrors.IsNotFound(err) {
			continue // it is there, or nobody knows
		}
		if err := r.discard(key); err != nil {
			return err
		}
		r.Log.Info("removed what was stored of a Kustomization that is gone", "kustomization", key.String())
	}
	return nil
}
