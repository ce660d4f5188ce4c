package webhook

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/offswitch"
)

// mounted is a directory as a kubelet mounts a ConfigMap: the files are links
// through ..data, which is swapped as a whole.
type mounted struct {
	t    *testing.T
	dir  string
	next int
}

func (m *mounted) swap(files map[string]string) {
	m.t.Helper()
	m.next++
	name := "..2027_" + string(rune('a'+m.next))
	if err := os.Mkdir(filepath.Join(m.dir, name), 0o700); err != nil {
		m.t.Fatal(err)
	}
	for file, content := range files {
		write(m.t, filepath.Join(m.dir, name, file), []byte(content))
		link := filepath.Join(m.dir, file)
		if _, err := os.Lstat(link); err != nil {
			if err := os.Symlink(filepath.Join("..data", file), link); err != nil {
				m.t.Fatal(err)
			}
		}
	}
	tmp := filepath.Join(m.dir, "..data_tmp")
	if err := os.Symlink(name, tmp); err != nil {
		m.t.Fatal(err)
	}
	if err := os.Rename(tmp, filepath.Join(m.dir, "..data")); err != nil {
		m.t.Fatal(err)
	}
}

// files are those of the minimal policy.
func files(t *testing.T, policy string) map[string]string {
	t.Helper()
	dir := filepath.Dir(policyDir(t, policy))
	out := map[string]string{}
	for _, name := range []string{"policy.yaml", "release.json", "glass.json"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		out[name] = string(data)
	}
	return out
}

func TestABadNewFileKeepsTheLastGoodOne(t *testing.T) {
	m := &mounted{t: t, dir: t.TempDir()}
	good := files(t, minimal)
	m.swap(good)
	l, err := NewLoader(Source{Policy: filepath.Join(m.dir, "policy.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	first := l.State()
	for _, bad := range []map[string]string{
		{"policy.yaml": "environment: [", "release.json": good["release.json"], "glass.json": good["glass.json"]},
		{"policy.yaml": good["policy.yaml"], "release.json": "{}", "glass.json": good["glass.json"]},
		{"policy.yaml": good["policy.yaml"], "glass.json": good["glass.json"]}, // a key set deleted
		{},
	} {
		m.swap(bad)
		if changed, err := l.Reload(time.Unix(now, 0)); err == nil || changed {
			t.Fatalf("reload of %d files: got changed %t, error %v, want an error", len(bad), changed, err)
		}
		if l.State() != first {
			t.Error("the last good policy is gone")
		}
		if l.Failed() == nil {
			t.Error("nobody is told")
		}
	}
	m.swap(files(t, minimal+"help: ask us\n"))
	if changed, err := l.Reload(time.Unix(now, 0)); err != nil || !changed {
		t.Fatalf("reload of a good file: got %t, %v", changed, err)
	}
	if l.Failed() != nil || l.State() == first {
		t.Error("the mended policy is not in force")
	}
	if changed, err := l.Reload(time.Unix(now, 0)); err != nil || changed {
		t.Errorf("reload of the same files: got %t, %v", changed, err)
	}
}

func TestABadFileAtStartRefusesToStart(t *testing.T) {
	file := policyDir(t, minimal)
	write(t, file, []byte("environment: prod\n"))
	if _, err := NewLoader(Source{Policy: file}); err == nil {
		t.Error("started without a policy")
	}
	if _, err := NewLoader(Source{Policy: policyDir(t, minimal), Environment: "staging"}); err == nil {
		t.Error("started for an environment that the policy does not know")
	}
}

func TestAnOffSwitchLetsPassAndEndsByItself(t *testing.T) {
	dir := t.TempDir()
	put := func(s offswitch.Switch) {
		t.Helper()
		value, err := s.Encode(time.Unix(now, 0))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, s.Key()), []byte(value))
	}
	put(offswitch.Switch{Namespace: "shop", Until: time.Unix(now+3600, 0).UTC().Format(time.RFC3339), Reason: "incident 7", By: "alice"})
	l, err := NewLoader(Source{Policy: policyDir(t, minimal), Off: dir})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Reload(time.Unix(now, 0)); err != nil {
		t.Fatal(err)
	}
	q := ask("CREATE", person, tree(t, deployment(pinned, "")), nil)
	v := l.State().decide(q, now)
	if !v.Allowed || v.How != SwitchedOff || v.Reason != gate.ReceiptMissing || !strings.Contains(v.Note, "incident 7") {
		t.Fatalf("while off: got %+v", v)
	}
	if v := l.State().decide(q, now+3600); v.Allowed {
		t.Error("the switch did not end by itself")
	}
	elsewhere := tree(t, strings.Replace(deployment(pinned, ""), "namespace: shop", "namespace: bank", 1))
	if v := l.State().decide(ask("CREATE", person, elsewhere, nil), now); v.Allowed {
		t.Error("the switch is for another namespace too")
	}

	write(t, filepath.Join(dir, "namespace.bank"), []byte(`{"namespace":"bank","until":"2099-01-01T00:00:00Z","reason":"for ever","by":"mallory"}`))
	write(t, l.source.Policy, []byte(minimal+"help: ask us\n"))
	if changed, err := l.Reload(time.Unix(now, 0)); err == nil || !changed {
		t.Errorf("a switch without end: got changed %t, error %v, want the policy and an error", changed, err)
	}
	if v := l.State().decide(ask("CREATE", person, elsewhere, nil), now); v.Allowed || !strings.Contains(v.Message, "ask us") {
		t.Errorf("a switch without end: got %+v, want a refusal by the new policy", v)
	}
	if v := l.State().decide(q, now); !v.Allowed {
		t.Error("the good switch of before is gone")
	}
}
