package main_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const twoOfEach = `apiVersion: syncgate.io/v1alpha1
kind: GatePolicy
environments: [{name: prod}, {name: stage}]
issuers:
- name: release
  keys: {file: keys/release.jwks.json}
  subjects: ["*/*/*/*"]
- name: security
  keys: {file: keys/security.jwks.json}
  subjects: ["*/*/*/*"]
requirements:
- {categories: [privilege], issuers: [security]}
`

// team is a Git repository with a kustomize application of several
// Deployments, each in a file of its own, signed for prod and stage.
type team struct {
	*testing.T
	*stage
}

var members = []string{"api", "billing", "cart", "db"}

func newTeam(t *testing.T) team {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Fatal("git is missing")
	}
	r := team{t, testStage(t)}
	ok(t, r.write("policy.yaml", twoOfEach))
	ok(t, r.write("app/kustomization.yaml", "namespace: shop\nresources:\n- api.yaml\n- billing.yaml\n- cart.yaml\n- db.yaml\n"))
	for _, m := range members {
		r.add(m, "")
	}
	r.release("prod")
	r.release("stage")
	r.git("init", "-q", "-b", "main")
	r.git("add", "-A")
	r.git("commit", "-q", "-m", "start")
	return r
}

// add writes a Deployment with an image of its own and one that all share.
func (r team) add(name, extra string) {
	r.Helper()
	for _, tag := range []string{"1.0", "1.1"} {
		ok(r.T, r.push("acme/"+name+":"+tag, name+tag))
	}
	ok(r.T, r.write("app/"+name+".yaml", `apiVersion: apps/v1
kind: Deployment
metadata: {name: `+name+`}
spec:
  replicas: 2
  template:
    spec:
      `+extra+`
      containers:
      - name: main
        image: $REGISTRY/acme/`+name+`:1.0
      - name: metrics
        image: $REGISTRY/acme/metrics:2.0
`))
}

func (r team) bump(name string) {
	r.Helper()
	ok(r.T, r.replace("app/"+name+".yaml", name+":1.0", name+":1.1"))
}

// release pins, and signs as release for an environment.
func (r team) release(environment string) {
	r.Helper()
	r.must(r.T, "pin", "app", "--environment", environment)
	r.sign(environment, "release")
}

func (r team) sign(environment, issuer string) {
	r.Helper()
	r.must(r.T, "sign", "app", "--environment", environment, "--key", "keys/"+issuer+".pem", "--issuer", issuer, "--yes")
}

func (r team) allowed(environment string) {
	r.Helper()
	if got := r.run(r.T, nil, "check", "app", "--environment", environment); got.exit != 0 {
		r.Errorf("check for %s ended with %d\n%s", environment, got.exit, got.stderr)
	}
}

func (r team) try(args ...string) (string, error) {
	c := exec.Command("git", args...)
	c.Dir = r.dir
	c.Env = append(os.Environ(), "HOME="+r.dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull,
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	out, err := c.CombinedOutput()
	return string(out), err
}

func (r team) git(args ...string) {
	r.Helper()
	if out, err := r.try(args...); err != nil {
		r.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// commit makes a change on a branch that starts at main.
func (r team) commit(branch string, change func(team)) {
	r.Helper()
	if branch == "main" {
		r.git("checkout", "-q", "main")
	} else {
		r.git("checkout", "-q", "-b", branch, "main")
	}
	change(r)
	r.git("add", "-A")
	r.git("commit", "-q", "-m", "change "+branch)
}

// lockFiles are the files of the lock, by path, with their content.
func (r team) lockFiles() map[string]string {
	r.Helper()
	files := map[string]string{}
	root := r.path("app/.syncgate")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		rel, _ := filepath.Rel(root, path)
		files[filepath.ToSlash(rel)] = string(data)
		return err
	})
	ok(r.T, err)
	return files
}

func TestSigningTwiceChangesNoByte(t *testing.T) {
	t.Parallel()
	r := newTeam(t)
	before := r.lockFiles()
	r.release("prod")
	r.must(t, "sign", "app", "--environment", "stage", "--key", "keys/release.pem", "--issuer", "release", "--yes", "--approver", "bob", "--release", "v9")
	if diff := cmp.Diff(before, r.lockFiles()); diff != "" {
		t.Errorf("the lock changed (-before +after):\n%s", diff)
	}
	if out, err := r.try("status", "--porcelain"); err != nil || out != "" {
		t.Errorf("git status: %v\n%s", err, out)
	}
}

func TestABumpChangesOnlyItsOwnReceipts(t *testing.T) {
	t.Parallel()
	r := newTeam(t)
	before := r.lockFiles()
	changed := func() []string {
		var out []string
		after := r.lockFiles()
		for path, text := range after {
			if before[path] != text {
				out = append(out, path)
			}
		}
		for path := range before {
			if _, there := after[path]; !there {
				out = append(out, "removed "+path)
			}
		}
		return out
	}
	image := func(name string) string {
		return "images/" + strings.NewReplacer(":", "~", "/", "+").Replace(r.host) + "+acme+" + name + ".lock"
	}
	r.bump("billing")
	r.release("prod")
	want := []string{image("billing"), "prod/apps.Deployment.shop.billing.release.jwt", "prod/apps.Deployment.shop.billing.release.prev.jwt"}
	if diff := cmp.Diff(want, changed(), sortStrings); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}

	// An image that all share changes the receipts of all.
	ok(t, r.push("acme/metrics:2.0", "pushed again"))
	before = r.lockFiles()
	r.must(t, "pin", "app", "--environment", "prod", "--update")
	r.sign("prod", "release")
	want = []string{image("metrics")}
	for _, m := range members {
		want = append(want, "prod/apps.Deployment.shop."+m+".release.jwt", "prod/apps.Deployment.shop."+m+".release.prev.jwt")
	}
	if diff := cmp.Diff(want, changed(), sortStrings); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	r.allowed("prod")
}

var sortStrings = cmp.Transformer("set", func(list []string) map[string]bool {
	set := map[string]bool{}
	for _, s := range list {
		set[s] = true
	}
	return set
})

func TestBranchesMergeAndAreAllowed(t *testing.T) {
	bumpAndSign := func(name string) func(team) {
		return func(r team) { r.bump(name); r.release("prod") }
	}
	newSubject := func(name, after string) func(team) {
		return func(r team) {
			r.add(name, "")
			ok(r.T, r.replace("app/kustomization.yaml", "- "+after+".yaml\n", "- "+after+".yaml\n- "+name+".yaml\n"))
			r.release("prod")
		}
	}
	tests := []struct {
		name        string
		base        func(team) // before the branches part
		left, right func(team)
		environment []string
	}{
		{"two neighbouring bumps", nil, bumpAndSign("billing"), bumpAndSign("cart"), []string{"prod"}},
		{"two new subjects beside each other", nil, newSubject("bb", "api"), newSubject("bc", "cart"), []string{"prod"}},
		{
			"two issuers sign one subject",
			func(r team) {
				r.add("agent", "hostPID: true")
				ok(r.T, r.replace("app/kustomization.yaml", "- api.yaml\n", "- agent.yaml\n- api.yaml\n"))
				r.must(r.T, "pin", "app", "--environment", "prod")
			},
			func(r team) { r.sign("prod", "release") },
			func(r team) {
				r.must(r.T, "sign", "app", "--environment", "prod", "--key", "keys/security.pem", "--issuer", "security", "--covers", "privilege", "--yes")
			},
			[]string{"prod"},
		},
		{
			"two environments get one bump",
			func(r team) { r.bump("cart"); r.must(r.T, "pin", "app", "--environment", "prod") },
			func(r team) { r.sign("prod", "release") },
			func(r team) { r.sign("stage", "release") },
			[]string{"prod", "stage"},
		},
		{
			"one drops a subject, one bumps its neighbour", nil,
			func(r team) {
				ok(r.T, os.Remove(r.path("app/billing.yaml")))
				ok(r.T, r.replace("app/kustomization.yaml", "- billing.yaml\n", ""))
				r.release("prod")
			},
			bumpAndSign("cart"), []string{"prod"},
		},
		{"one bumps, one scales", nil, bumpAndSign("billing"), func(r team) { ok(r.T, r.replace("app/cart.yaml", "replicas: 2", "replicas: 9")) }, []string{"prod", "!stage"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newTeam(t)
			if tt.base != nil {
				r.commit("main", tt.base)
			}
			r.commit("left", tt.left)
			r.commit("right", tt.right)
			out, err := r.try("merge", "-q", "--no-edit", "left")
			if err != nil {
				t.Fatalf("merging: %v\n%s", err, out)
			}
			for _, e := range tt.environment {
				if e, refused := strings.CutPrefix(e, "!"); refused {
					if got := r.run(t, nil, "generate", "app", "--environment", e); got.exit != 10 {
						t.Errorf("generate for %s, which nobody signed for, ended with %d", e, got.exit)
					}
					continue
				}
				r.allowed(e)
			}
			before := r.lockFiles()
			r.release(strings.TrimPrefix(tt.environment[0], "!"))
			if diff := cmp.Diff(before, r.lockFiles()); diff != "" {
				t.Errorf("pin and sign found something to do after the merge (-before +after):\n%s", diff)
			}
		})
	}
}

func TestTheRevertOfAnOlderBumpIsAllowed(t *testing.T) {
	t.Parallel()
	r := newTeam(t)
	start := r.lockFiles()
	for _, m := range []string{"billing", "api", "cart"} {
		r.commit("main", func(r team) { r.bump(m); r.release("prod") })
	}
	r.git("revert", "--no-edit", "HEAD~2")
	r.allowed("prod")
	got := r.must(t, "generate", "app", "--environment", "prod")
	for _, want := range []string{"acme/billing:1.0@sha256:", "acme/api:1.1@sha256:", "acme/cart:1.1@sha256:"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in the render", want)
		}
	}
	if now := r.lockFiles()["prod/apps.Deployment.shop.billing.release.jwt"]; now != start["prod/apps.Deployment.shop.billing.release.jwt"] {
		t.Errorf("the receipt of the older image is another one:\n%s", now)
	}
}

// TestBranchesThatDisagreeConflict keeps the tests above from passing because
// Git merges anything.
func TestBranchesThatDisagreeConflict(t *testing.T) {
	t.Parallel()
	r := newTeam(t)
	r.commit("left", func(r team) {
		r.must(t, "sign", "app", "--environment", "prod", "--key", "keys/release.pem", "--issuer", "release", "--yes", "--renew-within", "2400h", "--approver", "alice")
	})
	r.commit("right", func(r team) { r.bump("billing"); r.release("prod") })
	out, err := r.try("merge", "-q", "--no-edit", "left")
	if err == nil || !strings.Contains(out, "CONFLICT") {
		t.Fatalf("got %v and %q, want a conflict", err, out)
	}
	got := r.run(t, nil, "generate", "app", "--environment", "prod")
	if err := got.refusal("RenderFailed"); err != nil || !strings.Contains(got.stderr, "merge conflict") {
		t.Errorf("a lock with a conflict in it: %v\n%s", err, got.stderr)
	}
}
