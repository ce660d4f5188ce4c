package annotate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const before = `# the web shop
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web # public
spec:
  template:
    spec:
      containers:
      - name: web
        image: web:1.4 # pinned in the lock
---
# its account
apiVersion: v1
kind: ServiceAccount
metadata:
  name: web
  annotations:
    team: shop
`

func TestWriteKeepsCommentsAndEverythingElse(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "app.yaml", before)
	edits := []Edit{
		{File: "app.yaml", APIVersion: "apps/v1", Kind: "Deployment", Name: "web", Value: "a.b.c"},
		{File: "app.yaml", APIVersion: "v1", Kind: "ServiceAccount", Name: "web", Value: "d.e.f"},
	}
	for range 2 { // the second time changes nothing
		if err := Write(dir, "syncgate.io/receipt", edits); err != nil {
			t.Fatal(err)
		}
		got := read(t, dir, "app.yaml")
		want := strings.NewReplacer(
			"name: web # public\n", "name: web # public\n  annotations:\n    syncgate.io/receipt: 'a.b.c'\n",
			"    team: shop\n", "    team: shop\n    syncgate.io/receipt: 'd.e.f'\n").Replace(before)
		if got != want {
			t.Errorf("got:\n%s\nwant:\n%s", got, want)
		}
	}
}

func TestWriteChangesNothingUnlessAllIsFound(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "app.yaml", before)
	write(t, dir, "twice.yaml", before+"---\n"+before)
	write(t, dir, "app.json", `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"web"}}`)
	good := Edit{File: "app.yaml", APIVersion: "v1", Kind: "ServiceAccount", Name: "web", Value: "x"}
	for name, bad := range map[string]Edit{
		"no such object":       {File: "app.yaml", APIVersion: "v1", Kind: "Service", Name: "web", Value: "x"},
		"another namespace":    {File: "app.yaml", APIVersion: "v1", Kind: "ServiceAccount", Name: "web", Namespace: "shop", Value: "x"},
		"the object twice":     {File: "twice.yaml", APIVersion: "v1", Kind: "ServiceAccount", Name: "web", Value: "x"},
		"JSON has no comments": {File: "app.json", APIVersion: "v1", Kind: "ServiceAccount", Name: "web", Value: "x"},
		"no such file":         {File: "none.yaml", APIVersion: "v1", Kind: "ServiceAccount", Name: "web", Value: "x"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := Write(dir, "syncgate.io/receipt", []Edit{good, bad}); err == nil {
				t.Error("no error")
			}
			if got := read(t, dir, "app.yaml"); got != before {
				t.Errorf("written all the same:\n%s", got)
			}
		})
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
