package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/argoproj/argo-cd/v2/pkg/apis/application/v1alpha1"
	"github.com/argoproj/argo-cd/v2/reposerver/apiclient"
	"github.com/argoproj/argo-cd/v2/reposerver/repository"
	"github.com/argoproj/argo-cd/v2/util/git"
	argoio "github.com/argoproj/argo-cd/v2/util/io"
)

// request is one application to render, as Argo CD's own sources do.
type request struct {
	Root        string                     // a copy of its repository, which kustomize and Helm may write to
	Path        string                     // the source's, relative to Root
	Name        string                     // the Application's
	Namespace   string                     // the destination's
	KubeVersion string                     // the cluster's
	Source      v1alpha1.ApplicationSource // what the Application says
	Timeout     float64                    // in seconds
}

// answer is what came of it: objects in JSON, or an error.
type answer struct {
	Objects []string
	Type    string
	Error   string
}

// newNative renders what stdin asks for, a request a line in JSON, and writes
// an answer a line to stdout. It finds kustomize and helm in PATH.
func newNative() *cobra.Command {
	return &cobra.Command{Use: "native", Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error {
		in, out := bufio.NewReader(os.Stdin), json.NewEncoder(os.Stdout)
		for {
			line, err := in.ReadBytes('\n')
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			var r request
			if err := json.Unmarshal(line, &r); err != nil {
				return err
			}
			if err := out.Encode(render(c.Context(), r)); err != nil {
				return err
			}
		}
	}}
}

func render(ctx context.Context, r request) answer {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(r.Timeout*float64(time.Second)))
	defer cancel()
	q := &apiclient.ManifestRequest{
		Repo:              &v1alpha1.Repository{Repo: "https://git.example.test/repository.git"},
		AppName:           r.Name,
		Namespace:         r.Namespace,
		ApplicationSource: &r.Source,
		KubeVersion:       r.KubeVersion,
		NoCache:           true,
	}
	answered, err := repository.GenerateManifests(ctx, filepath.Join(r.Root, r.Path), r.Root, "0000000000000000000000000000000000000000", q, false,
		git.NoopCredsStore{}, resource.MustParse("100M"), argoio.NewRandomizedTempPaths(os.TempDir()))
	if err != nil {
		return answer{Error: err.Error()}
	}
	return answer{Objects: answered.Manifests, Type: answered.SourceType}
}
