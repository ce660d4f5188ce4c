//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// warned: while the render only warns and the webhook enforces, a refusal stops
// the one object that it is about. And the owner sees what would be refused.
func (w *world) warned(t *testing.T, images pushed) {
	const name = "warned" // argoPolicy has it
	s := w.newShop(t, "apps/"+name, name)
	write := func(tag, greeting string) {
		s.repo.Write(map[string]string{
			s.path + "/config.yaml": strings.Replace(base["apps/shop/base/config.yaml"], "hello", greeting, 1),
			s.path + "/web.yaml":    workload("web")["apps/web/web.yaml"],
			s.path + "/kustomization.yaml": fmt.Sprintf("resources: [config.yaml, web.yaml]\nimages: [{name: registry.example.test/web, newName: %q, newTag: %q, digest: ''}]\n",
				images.repository, tag),
		})
	}
	write("1", "hello")
	s.pin()
	s.sign()
	// With the retries that Argo CD makes by default the next commit would have
	// to wait for their end.
	app := w.Create(harness.ApplicationOptions{Name: name, RepoURL: s.repo.URL, Path: s.path, Namespace: name, NoRetry: true})
	app.WaitSynced(s.repo.Commit("Release it"))
	status := func() string {
		return w.Get(harness.Applications, "argocd", name).GetAnnotations()["syncgate.io/status"]
	}
	none := func() (string, bool) {
		text := status()
		return text, strings.HasSuffix(text, "; of 1 gated objects that run none would be")
	}
	w.Eventually("that nothing would be refused", none)
	live := func() []string { return harness.Images(w.Get(harness.Deployments, name, "web")) }

	write("2", "welcome")
	s.pin()
	s.repo.Commit("Greet otherwise, with an image that nobody signed")
	want := []string{"SYNC REFUSED [DigestMismatch]", "Deployment warned/web", "containers[web].image"}
	message := app.WaitFailed(want...)
	report(t, "operation with one refused object", message)
	if sentence := ours(t, message); !harness.ContainsAll(sentence, want) {
		t.Errorf("the beginning of the webhook's sentence lacks one of %q: %s", want, sentence)
	}
	if got := harness.Field(w.Get(harness.ConfigMaps, name, "web"), "data", "greeting"); got != "welcome" {
		t.Errorf("greeting: got %q, want welcome: the ConfigMap needs no receipt", got)
	}
	if got := live(); !cmp.Equal(got, images.pinned[1:2]) {
		t.Errorf("images: got %q, want %q", got, images.pinned[1:2])
	}

	// The controller says it, too: the object, the field, the next step.
	want = []string{"SYNC WOULD BE REFUSED [DigestMismatch] ", "Deployment warned/web: containers[web].image is ", "(refused by the webhook in the last sync); Fix: syncgate sign "}
	w.Eventually("the status of the Application", func() (string, bool) {
		text := status()
		return text, strings.Contains(text, "; of 1 gated objects that run 1 would be; [WouldBeRefused] ") && harness.ContainsAll(text, want)
	})
	w.Eventually("the events of the Application", func() (string, bool) {
		text := strings.Join(app.Events(), "\n")
		return text, strings.Contains(text, "Warning OnlyWarned: ") && strings.Contains(text, "Warning WouldBeRefused: ") && harness.ContainsAll(text, want)
	})
	report(t, "status of an Application whose render only warns", status())

	s.sign()
	app.WaitSynced(s.repo.Commit("Sign it"))
	if got := live(); !cmp.Equal(got, images.pinned[2:3]) {
		t.Errorf("images: got %q, want %q", got, images.pinned[2:3])
	}
	w.Eventually("that nothing would be refused any more", none)
}
