// Command native builds directories as Flux's kustomize-controller does, for
// comparing: it reads a request a line and answers a line, until its input ends.
//
// The controller's own build is in a package that nobody may import. What it
// does between an unpacked artifact and the API server is calls of the libraries
// below, of the versions that this module has from the controller; these are the
// same calls in the same order (internal/controller/kustomization_controller.go,
// generate, build and apply), without decryption.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	securejoin "github.com/cyphar/filepath-securejoin"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/kustomize"
	"github.com/fluxcd/pkg/sourceignore"
	"github.com/fluxcd/pkg/ssa"
	"github.com/fluxcd/pkg/ssa/normalize"
	"github.com/fluxcd/pkg/ssa/utils"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// request is a line of the input.
type request struct {
	Root          string // a copy of the repository, which is made an artifact
	Kustomization json.RawMessage
	Variables     map[string]map[string]string // data of ConfigMaps and Secrets, by "Kind/name"
}

// answer is a line of the output.
type answer struct {
	Objects []json.RawMessage // with the common metadata
	Applied []json.RawMessage // the same ones as the API server gets them
	Error   string
}

func main() {
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "native:", err)
		os.Exit(1)
	}
}

func serve(in io.Reader, out io.Writer) error {
	packed := map[string]bool{}
	r := bufio.NewReaderSize(in, 1<<20)
	for {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var q request
		if err := json.Unmarshal(line, &q); err != nil {
			return err
		}
		if !packed[q.Root] {
			if err := pack(q.Root); err != nil {
				return err
			}
			packed[q.Root] = true
		}
		var a answer
		if a.Objects, a.Applied, err = build(q); err != nil {
			a = answer{Error: err.Error()}
		}
		data, err := json.Marshal(a)
		if err != nil {
			return err
		}
		if _, err := out.Write(append(data, '\n')); err != nil {
			return err
		}
	}
}

// pack removes what source-controller leaves out of an artifact.
func pack(root string) error {
	domain := strings.Split(root, string(filepath.Separator))
	patterns, err := sourceignore.LoadIgnorePatterns(root, domain)
	if err != nil {
		return err
	}
	matcher := sourceignore.NewDefaultMatcher(patterns, domain)
	return filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == root || d.IsDir() {
			return err
		}
		if !d.Type().IsRegular() || matcher.Match(strings.Split(p, string(filepath.Separator)), false) {
			return os.Remove(p)
		}
		return nil
	})
}

func build(q request) (objects, applied []json.RawMessage, err error) {
	var obj kustomizev1.Kustomization
	if err := json.Unmarshal(q.Kustomization, &obj); err != nil {
		return nil, nil, err
	}
	dir, err := securejoin.SecureJoin(q.Root, obj.Spec.Path)
	if err != nil {
		return nil, nil, err
	}
	if _, err := os.Stat(dir); err != nil {
		return nil, nil, fmt.Errorf("kustomization path not found: %w", err)
	}
	u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&obj)
	if err != nil {
		return nil, nil, err
	}
	k := unstructured.Unstructured{Object: u}
	// The controller's folder is gone afterwards; this one serves the next request.
	action, err := kustomize.NewGenerator(q.Root, k).WriteFile(dir, kustomize.WithSaveOriginalKustomization())
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, kustomize.CleanDirectory(dir, action)) }()
	m, err := kustomize.SecureBuild(q.Root, dir, false)
	if err != nil {
		return nil, nil, fmt.Errorf("kustomize build failed: %w", err)
	}
	for _, res := range m.Resources() {
		if res.GetName() == "" || res.GetKind() == "" || res.GetApiVersion() == "" {
			return nil, nil, fmt.Errorf("failed to decode Kubernetes apiVersion, kind and name from: %v", res.String())
		}
		if obj.Spec.PostBuild == nil {
			continue
		}
		out, err := kustomize.SubstituteVariables(context.Background(), variables{all: q.Variables}, k, res,
			kustomize.SubstituteWithStrict(true), kustomize.SubstituteWithAlways(obj.GetSubstituteStrategy() == kustomizev1.SubstituteStrategyAlways))
		if err != nil {
			return nil, nil, fmt.Errorf("post build failed for '%s/%s': %w", res.GetGvk(), res.GetName(), err)
		}
		if out != nil {
			if _, err := m.Replace(res); err != nil {
				return nil, nil, err
			}
		}
	}
	resources, err := m.AsYaml()
	if err != nil {
		return nil, nil, fmt.Errorf("kustomize build failed: %w", err)
	}
	if objects, err = read(resources, &obj, false); err != nil {
		return nil, nil, err
	}
	applied, err = read(resources, &obj, true)
	return objects, applied, err
}

// read makes objects of what was built, as they are or as they are applied.
func read(resources []byte, obj *kustomizev1.Kustomization, applied bool) ([]json.RawMessage, error) {
	list, err := utils.ReadObjects(bytes.NewReader(resources))
	if err != nil {
		return nil, err
	}
	if applied {
		m := ssa.NewResourceManager(nil, nil, ssa.Owner{Field: "kustomize-controller", Group: kustomizev1.GroupVersion.Group})
		m.SetOwnerLabels(list, obj.GetName(), obj.GetNamespace())
		if err := normalize.UnstructuredList(list); err != nil {
			return nil, err
		}
	}
	if c := obj.Spec.CommonMetadata; c != nil {
		utils.SetCommonMetadata(list, c.Labels, c.Annotations)
	}
	out := make([]json.RawMessage, 0, len(list))
	for _, o := range list {
		data, err := json.Marshal(o.Object)
		if err != nil {
			return nil, err
		}
		out = append(out, data)
	}
	return out, nil
}

// variables is a client that knows some ConfigMaps and Secrets.
type variables struct {
	client.Client
	all map[string]map[string]string
}

// Get reads one of them.
func (v variables) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	kind := "ConfigMap"
	if _, ok := o.(*corev1.Secret); ok {
		kind = "Secret"
	}
	data, ok := v.all[kind+"/"+key.Name]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{Resource: kind}, key.Name)
	}
	switch o := o.(type) {
	case *corev1.ConfigMap:
		o.Data = data
	case *corev1.Secret:
		o.Data = map[string][]byte{}
		for k, s := range data {
			o.Data[k] = []byte(s)
		}
	}
	return nil
}
