package webhook

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/keys"
	"github.com/syncgate/syncgate/plugin/offswitch"
	"github.com/syncgate/syncgate/plugin/receipt"
)

// broken is a policy file that nobody can read.
const broken = "environment: ["

// mount is the two ConfigMaps of a webhook: two signing keys of one issuer, and
// revocations that another one signs.
type mount struct {
	t     *testing.T
	dir   mounted
	off   mounted
	good  map[string]string
	state *Loader
}

const twoKeys = `apiVersion: syncgate.io/v1alpha1
kind: GatePolicy
environment: prod
issuers:
- {name: release, keys: {file: release.json}, subjects: ["*/*/*/*"]}
- {name: security, keys: {file: security.json}, subjects: ["*/*/*/*"]}
revocations: {file: revoked.jwt, issuers: [security]}
`

func newMount(t *testing.T) *mount {
	t.Helper()
	m := &mount{t: t, dir: mounted{t: t, dir: t.TempDir()}, off: mounted{t: t, dir: t.TempDir()}}
	m.good = map[string]string{
		"policy.yaml": twoKeys, "release.json": set(t, "release", "stolen"), "security.json": set(t, "security", "guard"),
		"revoked.jwt": revocations(t, "security", 3),
	}
	m.off.swap(nil)
	m.dir.swap(m.good)
	l, err := NewLoader(Source{Policy: filepath.Join(m.dir.dir, "policy.yaml"), Off: m.off.dir})
	if err != nil {
		t.Fatal(err)
	}
	m.state = l
	return m
}

// set is a key set of signers, whose key IDs are their names; "ID=NAME" is the
// key of another one under an ID.
func set(t *testing.T, names ...string) string {
	t.Helper()
	var list []receipt.Key
	for _, name := range names {
		id, seed, other := strings.Cut(name, "=")
		if !other {
			seed = id
		}
		k := signer(t, seed).Key()
		k.ID = id
		list = append(list, k)
	}
	data, err := keys.PublicJWKS(list)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func revocations(t *testing.T, key string, serial int64, entries ...receipt.Revocation) string {
	t.Helper()
	if entries == nil {
		entries = []receipt.Revocation{{ID: "01J9nobodysxxxxxxxxxxxxxxxx"}}
	}
	text, err := receipt.SignRevocations(receipt.RevocationList{Issuer: "security", Issued: now - day, Serial: serial, Entries: entries}, "security", signer(t, key))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// reload puts changed files beside the good ones, without those that are gone,
// and returns the names of those that do not load.
func (m *mount) reload(changes map[string]string, gone ...string) []string {
	m.t.Helper()
	files := maps.Clone(m.good)
	maps.Copy(files, changes)
	for _, name := range gone {
		delete(files, name)
	}
	m.dir.swap(files)
	_, err := m.state.Reload(time.Unix(now, 0))
	if failed := m.state.FailedFiles(); (err != nil) != (len(failed) > 0) || (m.state.Failed() != nil) != (err != nil) {
		m.t.Errorf("error %v, files that failed %q", err, failed)
	}
	return m.state.FailedFiles()
}

// by says how a Deployment is answered that a key of issuer release has signed.
func (m *mount) by(key string) string {
	m.t.Helper()
	obj := tree(m.t, deployment(pinned, ""))
	compact := receiptBy(m.t, obj, key)
	v := m.state.State().decide(ask("CREATE", person, carry(obj, compact), nil), now)
	if v.Allowed {
		return string(v.How)
	}
	return string(v.Reason)
}

func receiptBy(t *testing.T, obj map[string]any, key string) string {
	t.Helper()
	u, err := receipt.ParseUnverified(receiptFor(t, obj, "release", nil))
	if err != nil {
		t.Fatal(err)
	}
	c := u.Claims
	c.ID = "01J9" + key + "xxxxxxxxxxxxxxxxxxxxxx"
	compact, err := receipt.Sign(c, signer(t, key))
	if err != nil {
		t.Fatal(err)
	}
	return compact
}

func TestABadPolicyKeepsNothingBackThatTakesTrustAway(t *testing.T) {
	ofRelease := receipt.Revocation{ID: "01J9releasexxxxxxxxxxxxxxxxxxxxxx"}
	const counts, unknown, revoked = string(ByReceipt), string(gate.KeyUnknown), string(gate.ReceiptRevoked)
	for _, tt := range []struct {
		name    string
		files   func(*testing.T) map[string]string
		gone    []string
		release string // how what this key signed is answered
		stolen  string
		added   string // by a key that is new
		failed  []string
	}{
		{"alone", func(t *testing.T) map[string]string { return map[string]string{"policy.yaml": broken} }, nil,
			counts, counts, unknown, []string{"policy.yaml"}},
		{"a stolen key is taken out", func(t *testing.T) map[string]string {
			return map[string]string{"policy.yaml": broken, "release.json": set(t, "release")}
		}, nil, counts, unknown, unknown, []string{"policy.yaml"}},
		{"every key is another one", func(t *testing.T) map[string]string {
			return map[string]string{"policy.yaml": broken, "release.json": set(t, "added")}
		}, nil, unknown, unknown, unknown, []string{"policy.yaml"}},
		{"a new key may be trusted with less by the policy that cannot be read", func(t *testing.T) map[string]string {
			return map[string]string{"policy.yaml": broken, "release.json": set(t, "release", "stolen", "added")}
		}, nil, counts, counts, unknown, []string{"policy.yaml"}},
		{"another key under the ID of one that counts", func(t *testing.T) map[string]string {
			return map[string]string{"policy.yaml": broken, "release.json": set(t, "release", "stolen=added")}
		}, nil, counts, unknown, unknown, []string{"policy.yaml"}},
		{"a key set that is gone is none", func(t *testing.T) map[string]string { return map[string]string{"policy.yaml": broken} }, []string{"release.json"},
			counts, counts, unknown, []string{"policy.yaml", "release.json"}},
		{"a revocation", func(t *testing.T) map[string]string {
			return map[string]string{"policy.yaml": broken, "revoked.jwt": revocations(t, "security", 4, ofRelease)}
		}, nil, revoked, counts, unknown, []string{"policy.yaml"}},
		{"and a key, of other files", func(t *testing.T) map[string]string {
			return map[string]string{"policy.yaml": broken, "release.json": set(t, "release"), "revoked.jwt": revocations(t, "security", 4, ofRelease)}
		}, nil, revoked, unknown, unknown, []string{"policy.yaml"}},
		{"an older list", func(t *testing.T) map[string]string {
			return map[string]string{"policy.yaml": broken, "revoked.jwt": revocations(t, "security", 2, ofRelease)}
		}, nil, counts, counts, unknown, []string{"policy.yaml", "revoked.jwt"}},
		{"a list by somebody else", func(t *testing.T) map[string]string {
			return map[string]string{"policy.yaml": broken, "revoked.jwt": revocations(t, "release", 4, ofRelease)}
		}, nil, counts, counts, unknown, []string{"policy.yaml", "revoked.jwt"}},
		{"a list by a key that is gone", func(t *testing.T) map[string]string {
			return map[string]string{"policy.yaml": broken, "security.json": set(t, "guard"), "revoked.jwt": revocations(t, "security", 4, ofRelease)}
		}, nil, counts, counts, unknown, []string{"policy.yaml", "revoked.jwt"}},

		{"a bad key set, and a stolen key of another", func(t *testing.T) map[string]string {
			return map[string]string{"security.json": "{}", "release.json": set(t, "release")}
		}, nil, counts, unknown, unknown, []string{"security.json"}},
		{"a bad key set, and a revocation", func(t *testing.T) map[string]string {
			return map[string]string{"release.json": "{}", "revoked.jwt": revocations(t, "security", 4, ofRelease)}
		}, nil, revoked, counts, unknown, []string{"release.json"}},
		{"a bad list, and a policy that trusts on what it would revoke", func(t *testing.T) map[string]string {
			return map[string]string{"revoked.jwt": "none", "release.json": set(t, "release", "stolen", "added")}
		}, nil, counts, counts, unknown, []string{"revoked.jwt"}},
		{"a bad list, and a stolen key", func(t *testing.T) map[string]string {
			return map[string]string{"revoked.jwt": "none", "release.json": set(t, "release")}
		}, nil, counts, unknown, unknown, []string{"revoked.jwt"}},
		{"an older list beside a good policy, and a stolen key", func(t *testing.T) map[string]string {
			return map[string]string{"revoked.jwt": revocations(t, "security", 2), "release.json": set(t, "release")}
		}, nil, counts, unknown, unknown, []string{"revoked.jwt"}},
		{"a policy without a list, and a stolen key", func(t *testing.T) map[string]string {
			return map[string]string{"policy.yaml": twoKeys[:strings.Index(twoKeys, "revocations:")], "release.json": set(t, "release", "added")}
		}, nil, counts, unknown, unknown, []string{"policy.yaml"}},
		{"all that is new, if all of it loads", func(t *testing.T) map[string]string {
			return map[string]string{"release.json": set(t, "stolen", "added"), "revoked.jwt": revocations(t, "security", 4, ofRelease)}
		}, nil, unknown, counts, counts, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newMount(t)
			before := m.state.State().policy.Hash()
			failed := m.reload(tt.files(t), tt.gone...)
			got := []string{m.by("release"), m.by("stolen"), m.by("added")}
			if diff := cmp.Diff([]string{tt.release, tt.stolen, tt.added}, got); diff != "" {
				t.Errorf("answers for release, stolen, added (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.failed, failed); diff != "" {
				t.Errorf("files that failed (-want +got):\n%s", diff)
			}
			// A hash is the name of what is in force.
			same := tt.release == counts && tt.stolen == counts && tt.added == unknown && tt.name != "a list by a key that is gone"
			if hash := m.state.State().policy.Hash(); (hash == before) != same {
				t.Errorf("hash %s, before %s: want the same: %t", hash, before, same)
			}
			changed, err := m.state.Reload(time.Unix(now, 0))
			if changed || (err == nil) != (tt.failed == nil) {
				t.Errorf("the same files again: changed %t, error %v", changed, err)
			}
			if tt.failed == nil {
				return
			}
			// What was taken away comes back with files that load whole, unless an
			// older list would.
			serial := revocations(t, "security", 5)
			if failed := m.reload(map[string]string{"revoked.jwt": serial, "release.json": set(t, "release", "stolen", "added")}); failed != nil || m.by("release") != counts || m.by("added") != counts {
				t.Errorf("mended: failed %q, release %s, added %s", failed, m.by("release"), m.by("added"))
			}
		})
	}
}

// What was revoked while the policy was broken stays revoked when older files
// come back, and a key that is taken out then still goes.
func TestAnOlderListBringsNothingBack(t *testing.T) {
	m := newMount(t)
	m.reload(map[string]string{"policy.yaml": broken, "revoked.jwt": revocations(t, "security", 4, receipt.Revocation{ID: "01J9releasexxxxxxxxxxxxxxxxxxxxxx"})})
	if failed := m.reload(nil); !cmp.Equal(failed, []string{"revoked.jwt"}) || m.by("release") != string(gate.ReceiptRevoked) {
		t.Errorf("the files of before: failed %q, what was revoked: %s", failed, m.by("release"))
	}
	m.reload(map[string]string{"policy.yaml": broken, "release.json": set(t, "release")})
	if m.by("stolen") != string(gate.KeyUnknown) || m.by("release") != string(gate.ReceiptRevoked) {
		t.Errorf("a stolen key: %s, what was revoked: %s", m.by("stolen"), m.by("release"))
	}
}

func TestOffSwitchesStandByThemselves(t *testing.T) {
	m := newMount(t)
	encode := func(namespace string) string {
		value, err := offswitch.Switch{Namespace: namespace, Until: time.Unix(now+3600, 0).UTC().Format(time.RFC3339), Reason: "incident 7", By: "alice"}.Encode(time.Unix(now, 0))
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	off := func() bool {
		return m.state.State().decide(ask("CREATE", person, tree(t, deployment(pinned, "")), nil), now).How == SwitchedOff
	}
	for _, tt := range []struct {
		name     string
		policy   map[string]string
		switches map[string]string
		want     bool
		failed   []string
	}{
		{"off, beside a bad policy", map[string]string{"policy.yaml": broken}, map[string]string{"namespace.shop": encode("shop")}, true, []string{"policy.yaml"}},
		{"on again, beside a bad policy", map[string]string{"policy.yaml": broken}, nil, false, []string{"policy.yaml"}},
		{"off, beside a bad switch and an older list", map[string]string{"revoked.jwt": revocations(t, "security", 1)}, map[string]string{"namespace.shop": encode("shop"), "namespace.bank": "{}"}, true, []string{"namespace.bank", "revoked.jwt"}},
		{"on again, beside a bad switch", nil, map[string]string{"namespace.bank": "{}"}, false, []string{"namespace.bank"}},
		{"a switch that became a bad one opens nothing", nil, map[string]string{"namespace.shop": encode("shop") + "x"}, false, []string{"namespace.shop"}},
	} {
		clearLinks(t, m.off.dir)
		m.off.swap(tt.switches)
		failed := m.reload(tt.policy)
		if got := off(); got != tt.want {
			t.Errorf("%s: off %t, want %t", tt.name, got, tt.want)
		}
		if diff := cmp.Diff(tt.failed, failed); diff != "" {
			t.Errorf("%s: files that failed (-want +got):\n%s", tt.name, diff)
		}
	}
}

// clearLinks takes the links of keys away that a ConfigMap does not have any
// more, as a kubelet does.
func clearLinks(t *testing.T, dir string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		if !strings.HasPrefix(f.Name(), "..") {
			if err := os.Remove(filepath.Join(dir, f.Name())); err != nil {
				t.Fatal(err)
			}
		}
	}
}
