package cli

import (
	"bytes"
	"fmt"
	"os/exec"
	"sort"
	"strings"

	"github.com/spf13/cobra"

	"github.com/syncgate/syncgate/plugin/annotate"
	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/policy"
	"github.com/syncgate/syncgate/plugin/projection"
	"github.com/syncgate/syncgate/plugin/render"
)

// checkImages runs a command once for each image that is about to be signed,
// the reference as its last argument. Its failure is why nothing is signed.
func checkImages(c *cobra.Command, command string, drafts []app.Draft) error {
	if command == "" {
		return nil
	}
	seen := map[string]bool{}
	var images []string
	for _, d := range drafts {
		for _, l := range d.Object.Projection.In(projection.Image) {
			if ref, ok := l.Value.(string); ok && strings.Contains(ref, "@sha256:") && !seen[ref] {
				seen[ref] = true
				images = append(images, ref)
			}
		}
	}
	sort.Strings(images)
	for _, image := range images {
		var said bytes.Buffer
		x := exec.CommandContext(c.Context(), "sh", "-c", command+` "$@"`, "image-check", image)
		x.Stdout, x.Stderr = &said, &said
		if err := x.Run(); err != nil {
			text := gate.ASCII(oneLine(said.String()))
			if len(text) > 300 {
				text = text[:300] + "..."
			}
			return fmt.Errorf("image check of %s: %w: %s; nothing is signed", image, err, text)
		}
		fmt.Fprintf(c.ErrOrStderr(), "checked  %s\n", image)
	}
	return nil
}

// annotateDrafts writes the receipts into the manifests. Only files that are
// applied as they are written have an object to annotate: what kustomize or a
// chart makes has its receipts in the lock.
func annotateDrafts(dir string, e policy.Effective, b *app.Build, drafts []app.Draft, s app.Signing) error {
	if b.Renderer != render.Directory {
		return fmt.Errorf("--annotate needs plain manifest files; this application is rendered by %s: its receipts belong in the lock", b.Renderer)
	}
	receipts, err := app.Sign(drafts, s)
	if err != nil {
		return err
	}
	if err := app.Refused(drafts, receipts, s); err != nil {
		return err
	}
	edits := make([]annotate.Edit, len(drafts))
	for i, d := range drafts {
		o := d.Object
		apiVersion, _ := o.Tree["apiVersion"].(string)
		edits[i] = annotate.Edit{File: o.File, APIVersion: apiVersion, Kind: o.Kind(), Namespace: o.Namespace(), Name: o.Name(),
			Value: strings.Join(app.Replace(o.Receipts, s, receipts[i]), " ")}
	}
	return annotate.Write(dir, e.Annotation, edits)
}
