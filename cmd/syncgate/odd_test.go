package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const pod = "{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: shop}, spec: {containers: [{name: web, image: \"web:1@sha256:" +
	"abababababababababababababababababababababababababababababababab\"}]}}\n"

// annotated is pod with an annotation that begins with text.
func annotated(text string) string {
	return strings.Replace(pod, "namespace: shop", "namespace: shop, annotations: {syncgate.io/receipt: \""+text+"\"}", 1)
}

// odd are applications that nobody means to write. want is the code of their
// refusal, or "" if they are allowed.
var odd = []struct {
	name  string
	files map[string]string
	make  func(t *testing.T, s *stage) // after files
	env   []string
	want  string
}{
	{name: "documents that are empty", files: map[string]string{"app/a.yaml": "---\n---\n# c\n---\n...\n---\n"}, want: "EmptyRender"},
	{name: "a document that is a string", files: map[string]string{"app/a.yaml": "hello\n"}, want: "RenderFailed"},
	{name: "a document that is a list", files: map[string]string{"app/a.yaml": "- a\n- b\n"}, want: "RenderFailed"},
	{name: "a document that is null", files: map[string]string{"app/a.yaml": "null\n"}, want: "EmptyRender"},
	{name: "an object without a kind", files: map[string]string{"app/a.yaml": "apiVersion: v1\nmetadata: {name: a}\n"}, want: "RenderFailed"},
	{name: "an object without a name", files: map[string]string{"app/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {}\n"}, want: "RenderFailed"},
	{name: "a kind that is a number", files: map[string]string{"app/a.yaml": "apiVersion: v1\nkind: 5\nmetadata: {name: a}\n"}, want: "RenderFailed"},
	{name: "metadata that is a list", files: map[string]string{"app/a.yaml": "apiVersion: v1\nkind: Pod\nmetadata: [a]\n"}, want: "RenderFailed"},
	{name: "a key twice", files: map[string]string{"app/a.yaml": pod + "---\napiVersion: v1\nkind: ConfigMap\nkind: Pod\nmetadata: {name: a}\n"}, want: "RenderFailed"},
	{name: "an alias bomb", files: map[string]string{"app/a.yaml": bomb()}, want: "RenderFailed"},
	{name: "a hundred thousand brackets", files: map[string]string{"app/a.yaml": "a: " + strings.Repeat("[", 100000) + "\n"}, want: "RenderFailed"},
	{name: "bytes that are no UTF-8", files: map[string]string{"app/a.yaml": "a: \xff\xfe\n"}, want: "RenderFailed"},
	{name: "a NUL byte", files: map[string]string{"app/a.yaml": "a: \x00\n"}, want: "RenderFailed"},
	{name: "JSON that is cut", files: map[string]string{"app/a.json": `{"apiVersion":"v1","kind":"Pod"`}, want: "RenderFailed"},
	{name: "a tag of another language, which Kubernetes takes for a string", files: map[string]string{"app/a.yaml": "apiVersion: v1\nkind: !!python/object:os.system x\nmetadata: {name: a, namespace: shop}\n"}},
	{name: "CRLF line ends", files: map[string]string{"app/a.yaml": "apiVersion: v1\r\nkind: ConfigMap\r\nmetadata: {name: a, namespace: shop}\r\n"}},
	{name: "a byte order mark", files: map[string]string{"app/a.yaml": "\ufeffapiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: shop}\n"}},
	{name: "a manifest too large", files: map[string]string{"app/a.yaml": "a: " + strings.Repeat("x", 11<<20) + "\n"}, want: "RenderFailed"},

	{name: "a kustomization that is empty", files: map[string]string{"app/kustomization.yaml": ""}, want: "RenderFailed"},
	{name: "a kustomization without resources", files: map[string]string{"app/kustomization.yaml": "kind: Kustomization\nnamePrefix: a-\n"}, want: "EmptyRender"},
	{name: "a kustomization that names itself", files: map[string]string{"app/kustomization.yaml": "resources: [.]\n"}, want: "RenderFailed"},
	{name: "two kustomizations that name each other", files: map[string]string{"app/kustomization.yaml": "resources: [b]\n", "app/b/kustomization.yaml": "resources: [..]\n"}, want: "RenderFailed"},
	{name: "a remote base", files: map[string]string{"app/kustomization.yaml": "resources: ['https://example.com/x']\n"}, want: "RenderFailed"},
	{name: "a base outside of the repository", files: map[string]string{"app/kustomization.yaml": "resources: [../keys]\n"}, want: "RenderFailed"},
	{name: "a chart", files: map[string]string{"app/Chart.yaml": "name: a\n"}, want: "RenderFailed"},

	{name: "a link to itself", make: func(t *testing.T, s *stage) { ok(t, os.Symlink("a.yaml", s.path("app/a.yaml"))) }, want: "RenderFailed"},
	{name: "a link out of the repository", make: func(t *testing.T, s *stage) { ok(t, os.Symlink(s.path("policy.yaml"), s.path("app/a.yaml"))) }, want: "RenderFailed"},
	{name: "a link to a device", make: func(t *testing.T, s *stage) { ok(t, os.Symlink("/dev/zero", s.path("app/a.yaml"))) }, want: "RenderFailed"},
	{name: "a manifest that is a directory", make: func(t *testing.T, s *stage) { ok(t, os.Mkdir(s.path("app/a.yaml"), 0o755)) }, want: "EmptyRender"},
	{name: "a manifest that is a pipe", make: func(t *testing.T, s *stage) { ok(t, syscall.Mkfifo(s.path("app/a.yaml"), 0o600)) }, want: "EmptyRender"},
	{name: "a kustomization that is a pipe", files: map[string]string{"app/a.yaml": pod}, make: func(t *testing.T, s *stage) { ok(t, syscall.Mkfifo(s.path("app/kustomization.yaml"), 0o600)) }, want: "ReceiptMissing"},

	{name: "a lock that is a file", files: map[string]string{"app/a.yaml": pod, "app/.syncgate": "x"}, want: "RenderFailed"},
	{name: "a lock that is a link out of the application", files: map[string]string{"app/a.yaml": pod, "lock/prod/x": "x"}, make: func(t *testing.T, s *stage) { ok(t, os.Symlink("../lock", s.path("app/.syncgate"))) }, want: "RenderFailed"},
	{name: "a lock with another file", files: map[string]string{"app/a.yaml": pod, "app/.syncgate/prod/notes.txt": "x"}, want: "RenderFailed"},
	{name: "a lock with garbage for a receipt", files: map[string]string{"app/a.yaml": pod, "app/.syncgate/prod/core.Pod.shop.web.release.jwt": "garbage"}, want: "RenderFailed"},
	{name: "a lock with garbage for pins", files: map[string]string{"app/a.yaml": pod, "app/.syncgate/images/web.lock": "\x00\n"}, want: "RenderFailed"},
	{name: "a lock with a merge conflict", files: map[string]string{"app/a.yaml": pod, "app/.syncgate/images/web.lock": "<<<<<<< HEAD\n"}, want: "RenderFailed"},
	{name: "a lock that holds a pipe", files: map[string]string{"app/a.yaml": pod, "app/.syncgate/prod/.keep": ""}, make: func(t *testing.T, s *stage) {
		ok(t, syscall.Mkfifo(s.path("app/.syncgate/prod/core.Pod.shop.web.release.jwt"), 0o600))
	}, want: "RenderFailed"},
	{name: "a lock that holds a large file", files: map[string]string{"app/a.yaml": pod, "app/.syncgate/prod/core.Pod.shop.web.release.jwt": strings.Repeat("x", 5<<20)}, want: "RenderFailed"},

	{name: "a policy that is a directory", files: map[string]string{"app/a.yaml": pod}, env: []string{"SYNCGATE_POLICY=keys"}, want: "PolicyInvalid"},
	{name: "a policy that is empty", files: map[string]string{"app/a.yaml": pod, "policy.yaml": ""}, want: "PolicyInvalid"},
	{name: "a policy that is a manifest", files: map[string]string{"app/a.yaml": pod, "policy.yaml": pod}, want: "PolicyInvalid"},
	{name: "a policy that is large", files: map[string]string{"app/a.yaml": pod, "policy.yaml": strings.Repeat("# x\n", 1<<19)}, want: "PolicyInvalid"},
	{name: "a key set that is a directory", files: map[string]string{"app/a.yaml": pod, "policy.yaml": strings.Replace(basePolicy, "release.jwks.json", "", 1)}, want: "KeysUnavailable"},
	{name: "a key set that is a private key", files: map[string]string{"app/a.yaml": pod, "policy.yaml": strings.Replace(basePolicy, "jwks.json", "pem", 1)}, want: "KeysUnavailable"},
	{name: "a key set that is garbage", files: map[string]string{"app/a.yaml": pod, "keys/release.jwks.json": "\x00garbage"}, want: "KeysUnavailable"},
	{name: "a timeout that is none", files: map[string]string{"app/a.yaml": pod}, env: []string{"SYNCGATE_TIMEOUT=soon"}, want: "PolicyInvalid"},
	{name: "a timeout below zero", files: map[string]string{"app/a.yaml": pod}, env: []string{"SYNCGATE_TIMEOUT=-5s"}, want: "PolicyInvalid"},

	{name: "five megabytes of receipts", files: map[string]string{"app/a.yaml": annotated(strings.Repeat("eyJ.a.b ", 5<<17))}, want: "ReceiptMalformed"},
	{name: "one receipt of five megabytes", files: map[string]string{"app/a.yaml": annotated(strings.Repeat("x", 5<<20))}, want: "ReceiptMalformed"},
	{name: "a receipt with control characters", files: map[string]string{"app/a.yaml": annotated(`\x1b[2J\x00\u202e`)}, want: "ReceiptMalformed"},
	{name: "annotations that are a list", files: map[string]string{"app/a.yaml": strings.Replace(pod, "namespace: shop", "namespace: shop, annotations: [a]", 1)}, want: "ObjectMalformed"},
	{name: "an annotation that is a number", files: map[string]string{"app/a.yaml": strings.Replace(pod, "namespace: shop", "namespace: shop, annotations: {syncgate.io/receipt: 5}", 1)}, want: "ObjectMalformed"},
	{name: "labels that are a string", files: map[string]string{"app/a.yaml": strings.Replace(pod, "namespace: shop", "namespace: shop, labels: a", 1)}, want: "ObjectMalformed"},

	{name: "a name that climbs", files: map[string]string{"app/a.yaml": strings.Replace(pod, "name: web, ", "name: ../../../etc/x, ", 1)}, want: "RenderFailed"},
	{name: "a namespace that climbs", files: map[string]string{"app/a.yaml": strings.Replace(pod, "namespace: shop", "namespace: ../kube-system", 1)}, want: "RenderFailed"},
	{name: "a namespace that looks like another", files: map[string]string{"app/a.yaml": strings.Replace(pod, "namespace: shop", `namespace: "kube-system "`, 1)}, want: "RenderFailed"},
	{name: "a group that is empty", files: map[string]string{"app/a.yaml": "apiVersion: /v1\nkind: Pod\nmetadata: {name: a, namespace: shop}\n"}, want: "RenderFailed"},
	{name: "an API version with two slashes", files: map[string]string{"app/a.yaml": "apiVersion: a/b/v1\nkind: Pod\nmetadata: {name: a, namespace: shop}\n"}, want: "RenderFailed"},
	{name: "the same object in two API versions", files: map[string]string{"app/a.yaml": "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: shop}}\n---\n{apiVersion: apps/v1beta1, kind: Deployment, metadata: {name: a, namespace: shop}}\n"}, want: "DuplicateObject"},
	{name: "an object with a name and one with its prefix", files: map[string]string{"app/a.yaml": pod + "---\n" + strings.Replace(pod, "name: web,", "generateName: web,", 1)}, want: "ReceiptMissing"},
	{name: "two objects that are generated", files: map[string]string{"app/a.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {generateName: a-, namespace: shop}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {generateName: a-, namespace: shop}}\n"}},
	{name: "a List of an empty List", files: map[string]string{"app/a.yaml": "{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: List, items: []}]}\n"}, want: "RenderFailed"},
	{name: "a List with a Pod", files: map[string]string{"app/a.yaml": "apiVersion: v1\nkind: List\nitems:\n- " + pod}, want: "ReceiptMissing"},
	{name: "a PodList with a Pod", files: map[string]string{"app/a.yaml": "apiVersion: v1\nkind: PodList\nitems:\n- " + pod}, want: "ReceiptMissing"},
	{name: "a List whose items are a string", files: map[string]string{"app/a.yaml": "{apiVersion: v1, kind: List, items: a}\n"}, want: "RenderFailed"},
	{name: "a thousand Lists in each other", files: map[string]string{"app/a.yaml": nested(1000)}, want: "RenderFailed"},
	{name: "a Namespace that is protected", files: map[string]string{"app/a.yaml": "{apiVersion: v1, kind: Namespace, metadata: {name: kube-system}}\n"}, want: "ProtectedTarget"},
	{name: "a cluster-scoped object that says a namespace", files: map[string]string{"app/a.yaml": "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a, namespace: shop}, rules: [{apiGroups: [''], resources: [secrets], verbs: [get]}]}\n"}, want: "ReceiptMissing"},
	{name: "a custom resource with a Pod in it", files: map[string]string{"app/a.yaml": "apiVersion: x.example.com/v1\nkind: App\nmetadata: {name: a, namespace: shop}\nspec: {template: {spec: {containers: [{name: a, image: a}]}}}\n"}, want: "ImageNotPinned"},
	{name: "a template that is a list", files: map[string]string{"app/a.yaml": "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: shop}, spec: {template: []}}\n"}, want: "ObjectMalformed"},
	{name: "containers with one name", files: map[string]string{"app/a.yaml": strings.Replace(pod, "containers: [", `containers: [{name: web, image: "a@sha256:`+strings.Repeat("ab", 32)+`"}, `, 1)}, want: "ObjectMalformed"},
	{name: "an image with a line break", files: map[string]string{"app/a.yaml": strings.Replace(pod, "web:1@", `web:1\nb@`, 1)}, want: "ImageNotPinned"},
	{name: "an image of a hundred thousand letters", files: map[string]string{"app/a.yaml": strings.Replace(pod, "web:1@", strings.Repeat("a", 100000)+"@", 1)}, want: "ImageNotPinned"},
}

// bomb is a billion laughs.
func bomb() string {
	var b strings.Builder
	b.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 12; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [%s*a%d]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 8), i-1)
	}
	return b.String()
}

func nested(n int) string {
	return strings.Repeat("{apiVersion: v1, kind: List, items: [", n) + strings.Repeat("]}", n) + "\n"
}

// TestOddInputIsRefusedInOneLine also runs the other commands that read an
// application: they may refuse or show it, but never fall over.
func TestOddInputIsRefusedInOneLine(t *testing.T) {
	for _, tt := range odd {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := testStage(t)
			ok(t, os.MkdirAll(s.path("app"), 0o755))
			for file, text := range tt.files {
				ok(t, os.MkdirAll(filepath.Dir(s.path(file)), 0o755))
				ok(t, os.WriteFile(s.path(file), []byte(text), 0o600))
			}
			if tt.make != nil {
				tt.make(t, s)
			}
			r := s.run(t, tt.env, "generate", "app")
			checkOdd(t, "generate", r)
			if got := code(r); got != tt.want {
				t.Errorf("got %q, want %q\n%.300s", got, tt.want, r.stderr)
			}
			if exit, _ := class(tt.want); tt.want != "" && r.exit != exit {
				t.Errorf("ended with status %d, want %d", r.exit, exit)
			}
			if r.exit != 0 && (r.stdout != "" || strings.Count(r.stderr, "\n") != 1 || len(r.stderr) > 2001) {
				t.Errorf("want one line on stderr alone, got %d bytes on stdout and %.3000q", len(r.stdout), r.stderr)
			}
			for _, args := range [][]string{
				{"check", "app"}, {"fields", "app"},
				{"sign", "app", "--key", "keys/release.pem", "--issuer", "release", "--yes"},
			} {
				checkOdd(t, args[0], s.run(t, tt.env, args...))
			}
		})
	}
}

// code is what stands in the brackets of a refusal.
func code(r result) string {
	_, rest, found := strings.Cut(r.stderr, " [")
	name, _, closed := strings.Cut(rest, "] ")
	if r.exit == 0 || !found || !closed {
		return ""
	}
	return name
}

func checkOdd(t *testing.T, command string, r result) {
	t.Helper()
	switch r.exit {
	case 0, 1, 10, 20, 30:
	default:
		t.Errorf("%s ended with status %d\n%.2000s", command, r.exit, r.stderr)
	}
	for _, trace := range []string{"goroutine ", "panic:", "runtime error", "please report"} {
		if strings.Contains(r.stderr, trace) {
			t.Errorf("%s fell over:\n%.2000s", command, r.stderr)
		}
	}
	for _, b := range []byte(r.stderr) {
		if b != '\n' && (b < ' ' || b > '~') {
			t.Fatalf("%s wrote byte %#x to stderr: %.300q", command, b, r.stderr)
		}
	}
	if r.exit >= 10 && r.stdout != "" {
		t.Errorf("%s was refused and wrote to stdout: %.200q", command, r.stdout)
	}
}

// TestReadersDoNotWait gives a pipe that nobody writes to wherever a command
// reads a file of its caller's.
func TestReadersDoNotWait(t *testing.T) {
	s := testStage(t)
	ok(t, syscall.Mkfifo(s.path("pipe"), 0o600))
	done := make(chan result, 1)
	go func() { done <- s.run(t, nil, "explain", "pipe") }()
	select {
	case r := <-done:
		if r.exit != 2 {
			t.Errorf("explain of a pipe: status %d\n%s", r.exit, r.stderr)
		}
	case <-time.After(time.Minute):
		f, err := os.OpenFile(s.path("pipe"), os.O_RDWR, 0) // let it go
		if err == nil {
			defer f.Close()
		}
		t.Fatal("explain waits for a pipe's writer")
	}
}
