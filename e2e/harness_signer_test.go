//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// signable has a gated Deployment and CronJob and an object that is not gated.
var signable = fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: %q}]}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: web}
spec:
  schedule: "* * * * *"
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: web, image: %[1]q}]}}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: web}
`, harness.Image("web:1"))

// receipts returns how many receipts each object of a stream carries.
func receipts(manifests string) []int {
	var n []int
	for _, document := range strings.Split(manifests, "\n---\n") {
		n = append(n, strings.Count(document, ".eyJ")) // where the claims begin
	}
	return n
}

func TestSignedManifestsCarryReceiptsThatThePolicyTakes(t *testing.T) {
	e := harness.New(t)
	b := harness.Build(e)
	release, security := harness.NewSigner(e, b, "release"), harness.NewSigner(e, b, "security")
	policy := harness.NewPolicy(e, "policy", harness.BasicPolicy("release"), release)

	signed := release.SignApp(policy, "web", signable, "shop")
	if diff := cmp.Diff([]int{1, 2, 0}, receipts(signed)); diff != "" {
		t.Errorf("receipts of Deployment, CronJob with job template, ConfigMap (-want +got):\n%s", diff)
	}
	// The program under test takes them, wherever they come from.
	check := func(manifests string) harness.Result {
		t.Helper()
		dir := e.Mkdir("check")
		if err := os.WriteFile(filepath.Join(dir, "manifests.yaml"), []byte(manifests), 0o600); err != nil {
			t.Fatal(err)
		}
		return e.Try(dir, nil, b.Syncgate, "check", "--policy", policy.Path(), "--namespace", "shop")
	}
	if r := check(signed); r.Status != 0 {
		t.Errorf("check of what was signed: status %d: %s%s", r.Status, r.Stdout, r.Stderr)
	}
	other := strings.ReplaceAll(signed, harness.Image("web:1"), harness.Image("web:2"))
	if r := check(other); r.Status != 10 {
		t.Errorf("check of another image: got status %d, want 10: %s%s", r.Status, r.Stdout, r.Stderr)
	}

	// Signed again, with the receipt before, and by somebody else.
	again := release.SignApp(policy, "web", strings.ReplaceAll(signable, harness.Image("web:1"), harness.Image("web:2")), "shop")
	if diff := cmp.Diff([]int{2, 4, 0}, receipts(again)); diff != "" {
		t.Errorf("receipts when signed twice (-want +got):\n%s", diff)
	}
	policy.SwapPolicy(harness.BasicPolicy("security"), security)
	if r := check(signed); r.Status != 10 {
		t.Errorf("check after the issuer was taken out: got status %d, want 10: %s%s", r.Status, r.Stdout, r.Stderr)
	}
	if r := check(security.Sign(policy, signable, "shop", "--lifetime=1h")); r.Status != 0 {
		t.Errorf("check of what the other issuer signed: status %d: %s%s", r.Status, r.Stdout, r.Stderr)
	}
}

func TestMountIsSwappedAsAKubeletDoes(t *testing.T) {
	e := harness.New(t)
	mount := harness.NewMount(e, "mount", map[string]string{"a": "1", "b": "1"})
	read := func(name string) string {
		t.Helper()
		data, err := os.ReadFile(mount.File(name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	mount.Swap(map[string]string{"a": "2", "c": "2"})
	if got := read("a") + read("c"); got != "22" {
		t.Errorf("content after a swap: got %q, want 22", got)
	}
	var names []string
	entries, err := os.ReadDir(mount.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	if diff := cmp.Diff([]string{"..data", "..generation_2", "a", "c"}, names); diff != "" {
		t.Errorf("entries after a swap (-want +got):\n%s", diff)
	}
	if target, err := os.Readlink(mount.File("a")); err != nil || target != filepath.Join("..data", "a") {
		t.Errorf("link of a file: got %q, %v", target, err)
	}
}
