package main_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

var ciBlock = regexp.MustCompile("(?s)```sh ([a-z-]+)\n(.*?)```\n")

// ciStage is a clone of a repository on loopback's disk with one application,
// and the blocks of docs/ci.md.
type ciStage struct {
	*stage
	blocks map[string]string
	env    []string
}

func newCIStage(t *testing.T) *ciStage {
	t.Helper()
	doc, err := os.ReadFile("../../docs/ci.md")
	if err != nil {
		t.Fatal(err)
	}
	s := &ciStage{stage: testStage(t), blocks: map[string]string{}}
	for _, m := range ciBlock.FindAllStringSubmatch(string(doc), -1) {
		s.blocks[m[1]] = m[2]
	}
	buildInto(t, s.path("bin"))
	s.env = append(os.Environ(), "PATH="+s.path("bin")+":"+os.Getenv("PATH"),
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=ci", "GIT_AUTHOR_EMAIL=ci@example.test",
		"GIT_COMMITTER_NAME=ci", "GIT_COMMITTER_EMAIL=ci@example.test",
		"RELEASE_KEY="+s.path("keys/release.pem"), "SECURITY_KEY="+s.path("keys/security.pem"), "ACTOR=alice", "TAG=1.5")
	for file, text := range map[string]string{
		"work/apps/shop/kustomization.yaml": "namespace: shop\nresources: [web.yaml]\nimages:\n- name: $REGISTRY/acme/web\n  newTag: \"1.4\"\n",
		"work/apps/shop/web.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  template:\n    spec:\n      containers:\n" +
			"      - name: web\n        image: $REGISTRY/acme/web\n",
		"work/policy/prod.yaml": `apiVersion: syncgate.io/v1alpha1
kind: GatePolicy
environment: prod
issuers:
- {name: release, keys: {file: ../../keys/release.jwks.json}, categories: [image, command], subjects: ["*/*/*/*"]}
- {name: security, keys: {file: ../../keys/security.jwks.json}, subjects: ["*/*/*/*"]}
`,
	} {
		if err := s.write(file, text); err != nil {
			t.Fatal(err)
		}
	}
	s.must(t, `git init --quiet --bare -b main ../origin.git
git init --quiet -b main && git remote add origin ../origin.git
syncgate pin apps/shop --namespace shop --policy policy/prod.yaml
syncgate sign apps/shop --namespace shop --policy policy/prod.yaml --key "$RELEASE_KEY" --issuer release --yes
git add . && git commit --quiet --message "The application as it runs" && git push --quiet origin main`)
	return s
}

// sh runs a script in the work tree, as a CI job would.
func (s *ciStage) sh(script string, env ...string) (string, error) {
	c := exec.Command("bash", "-euo", "pipefail", "-c", script)
	c.Dir, c.Env = s.path("work"), append(append([]string{}, s.env...), env...)
	out, err := c.CombinedOutput()
	return string(out), err
}

func (s *ciStage) must(t *testing.T, script string, env ...string) string {
	t.Helper()
	out, err := s.sh(script, env...)
	if err != nil {
		t.Fatalf("%s\n%s\n%v", script, out, err)
	}
	return out
}

func (s *ciStage) block(t *testing.T, name string, env ...string) string {
	t.Helper()
	if s.blocks[name] == "" {
		t.Fatalf("docs/ci.md has no block %q", name)
	}
	return s.must(t, s.blocks[name], env...)
}

func TestCIReleaseStepSignsAndProposes(t *testing.T) {
	s := newCIStage(t)
	s.block(t, "release")
	if out := s.must(t, "git log --format=%s -1 origin/release/web-1.5; git diff --stat origin/main origin/release/web-1.5"); !strings.Contains(out, "Release web 1.5") || strings.Contains(out, "web.yaml") {
		t.Errorf("pushed: %s", out)
	}
	if out := s.block(t, "pull-request"); !strings.Contains(out, "acme/web:1.5") || !strings.Contains(out, "signed |") {
		t.Errorf("the pull request's comment: %s", out)
	}
	s.must(t, "git switch --quiet main && git merge --quiet --no-edit release/web-1.5")
	s.block(t, "required-check")
}

func TestCISecuritySignsTheReviewedCommit(t *testing.T) {
	s := newCIStage(t)
	s.must(t, `git switch --quiet --create feature/host origin/main
sed -i 's/      containers:/      hostPID: true\n      containers:/' apps/shop/web.yaml
git commit --quiet --all --message "Look at the host" && git push --quiet origin feature/host`)
	if out := s.block(t, "pull-request"); !strings.Contains(out, "`hostPID`") || !strings.Contains(out, "| security |") {
		t.Errorf("the pull request's comment does not ask security: %s", out)
	}
	if out, err := s.sh(s.blocks["required-check"]); err == nil || !strings.Contains(out, "DigestMismatch") {
		t.Errorf("unsigned, and the required check says: %v %s", err, out)
	}
	reviewed := strings.TrimSpace(s.must(t, "git rev-parse HEAD"))
	if out, err := s.sh(s.blocks["security"], "BRANCH=feature/host", "REVIEWED="+strings.Repeat("0", 40)); err == nil {
		t.Errorf("signed another commit than the reviewed one: %s", out)
	}
	s.block(t, "security", "BRANCH=feature/host", "REVIEWED="+reviewed)
	// The image's receipt covered everything but privilege: release signs the
	// same branch for what is its own.
	s.block(t, "sign-branch", "TAG=1.4")
	if out := s.must(t, "ls apps/shop/.syncgate/prod"); !strings.Contains(out, "release.jwt") || !strings.Contains(out, "security.jwt") {
		t.Errorf("receipts: %s", out)
	}
}

func TestCIFitsToolsThatChangeImages(t *testing.T) {
	for _, tool := range []string{"renovate", "flux-automation"} {
		t.Run(tool, func(t *testing.T) {
			s := newCIStage(t)
			s.block(t, tool)
			if out, err := s.sh(s.blocks["required-check"]); err == nil || !strings.Contains(out, "ImageNotPinned") {
				t.Errorf("before signing: %v %s", err, out)
			}
			s.block(t, "sign-branch")
			if out := s.must(t, "git show --stat HEAD"); strings.Contains(out, "web.yaml") {
				t.Errorf("signing changed manifests: %s", out)
			}
		})
	}
}

func TestCIRenewalSignsNoChange(t *testing.T) {
	s := newCIStage(t)
	if out := s.block(t, "renew"); !strings.Contains(out, "nothing to sign") {
		t.Errorf("fresh receipts: %s", out)
	}
	s.must(t, strings.Replace(s.blocks["renew"], "720h", "9999h", 1))
	if out := s.must(t, "git status --short"); !strings.Contains(out, "release.jwt") {
		t.Errorf("nothing was renewed: %s", out)
	}
	s.must(t, `git add . && git commit --quiet --message renewed
sed -i 's/      containers:/      hostPID: true\n      containers:/' apps/shop/web.yaml`)
	s.must(t, strings.Replace(s.blocks["renew"], "720h", "9999h", 1))
	if out := s.must(t, "git status --short"); strings.Contains(out, ".jwt") {
		t.Errorf("a schedule signed a change that nobody approved: %s", out)
	}
}
