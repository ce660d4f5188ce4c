package app_test

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/receipt"
)

const (
	siteBreakGlass  = "- {name: break-glass, keys: {file: keys/break-glass.jwks.json}, breakGlass: true, maxLifetime: 4h}\n"
	siteRevocations = "revocations: {file: revocations.jwt, issuers: [security], minSerial: 5}\n"
)

func TestRedTeamF09BreakGlassEndsWhenItSays(t *testing.T) {
	s := newSite(t, siteBreakGlass+"receipts: {grace: 168h}\n")
	s.write("all.yaml", object("batch/v1", "Job", "name: j, namespace: shop", `spec: {template: {spec: {containers: [{name: j, image: "`+webImage("1", "a")+`"}]}}}`))
	s.signed("break-glass", func(g *app.Signing) { g.Lifetime = 4 * 3600 })
	s.allowed()
	s.now += 4*3600 + 61
	s.refused(gate.ReceiptExpired, "expired at 2027-01-15T12:00:00Z")
	s.remove(".syncgate")
	s.signed("break-glass", func(g *app.Signing) { g.Lifetime = 5 * 3600 })
	s.refused(gate.IssuerNotAllowed, "break-glass may sign for at most")
}

func TestRedTeamF10ALifetimeCannotBeMovedIntoTheFuture(t *testing.T) {
	s := newSite(t, "")
	s.write("all.yaml", web("", ""))
	s.forge("release", func(c *receipt.Claims) {
		c.IssuedAt, c.Expires = s.now+300*siteDay, s.now+390*siteDay
	})
	s.refused(gate.ReceiptNotYetValid)
	s.forge("release", func(c *receipt.Claims) { c.Expires = c.IssuedAt + 91*siteDay })
	s.refused(gate.IssuerNotAllowed, "at most 90 days")
}

func TestRedTeamF10OnlyWhoPolicyNamesSignsRevocations(t *testing.T) {
	for _, tc := range []struct {
		name, party string
		serial      int64
		want        string
	}{
		{"the issuer named for it", "security", 5, ""},
		{"the CI key of a receipt issuer", "release", 9, `verifying "revocations.jwt"`},
		{"an old list", "security", 4, "has serial 4, want at least 5"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSite(t, siteSecurity+siteRevocations)
			s.revoke(tc.party, receipt.RevocationList{Serial: tc.serial})
			if got := s.policyError(); tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestRedTeamF14AnExpiredQuarterlyReceiptDoesNotStopTheHotfix(t *testing.T) {
	const split = siteSecurity + "requirements: [{categories: [privilege], issuers: [security]}]\n"
	for mode, reason := range map[string]gate.Reason{
		"receipts: {backstop: true, expired: LeaveToAdmission}\n": "",
		"receipts: {expired: Refuse}\n":                           gate.ReceiptExpired,
	} {
		s := newSite(t, split+mode)
		s.write("all.yaml", web("hostPID: true", ""))
		s.signed("security", func(g *app.Signing) { g.Covers = covering("privilege", "identity", "secret", "network") })
		s.signed("release", func(g *app.Signing) { g.Covers = covering("image", "command") })
		s.allowed()
		s.now += 31 * siteDay
		s.write("all.yaml", webOf(webImage("1.5.1", "b"), "hostPID: true", ""))
		s.signed("release", func(g *app.Signing) { g.Covers = covering("image", "command") })
		if reason == "" {
			s.allowed()
			// But not a new privilege with it.
			s.write("all.yaml", webOf(webImage("1.5.1", "b"), "hostPID: true, hostIPC: true", ""))
			s.refused(gate.DigestMismatch, "hostIPC")
			continue
		}
		s.refused(reason, "issuer security")
	}
	// At admission, which sees what is replaced, the category is unchanged.
	s := newSite(t, split)
	d := s.judge(web("hostPID: true", ""), webOf(webImage("1.5.1", "b"), "hostPID: true", ""))
	var missing []string
	for _, f := range d.Findings {
		for _, c := range f.Categories {
			missing = append(missing, string(c))
		}
	}
	if diff := cmp.Diff([]string{"image"}, missing); diff != "" {
		t.Errorf("categories that need a receipt (-want +got):\n%s", diff)
	}
}

func TestRedTeamF15LooseningByRemovalNeedsAReceipt(t *testing.T) {
	s := newSite(t, siteSecurity+"requirements: [{categories: [privilege], issuers: [security]}]\n")
	const tight = "securityContext: {runAsUser: 1000, capabilities: {drop: [ALL]}}"
	s.write("all.yaml", web("", tight))
	s.signed("security")
	s.signed("release")
	s.allowed()
	s.write("all.yaml", web("", ""))
	s.refused(gate.DigestMismatch, "is gone")
	s.remove(".syncgate") // with a receipt for the image alone
	s.signed("release", func(g *app.Signing) { g.Covers = covering("image") })
	s.refused(gate.CategoryNotCovered)
	s.remove(".syncgate") // an empty category: any allowed issuer
	s.signed("release")
	s.allowed()
}

func TestRedTeamF15TheEmptyProjectionIsSignedAndStamped(t *testing.T) {
	account := func(annotations string) string {
		return object("v1", "ServiceAccount", "name: web, namespace: shop"+annotations, "")
	}
	s := newSite(t, "")
	s.write("all.yaml", account(", annotations: {eks.amazonaws.com/role-arn: 'arn:aws:iam::1:role/x'}"))
	s.signed("release")
	s.allowed()
	s.write("all.yaml", account(""))
	drafts := s.signed("release") // although nothing is gated any more
	s.allowed()
	on := s.build().Objects[0].Receipts
	if len(on) == 0 || idOf(t, on[0]) != drafts[0].Claims.ID {
		t.Errorf("got %d receipts on the object, want that of the empty projection", len(on))
	}
}

// TestACustomResourceThatLosesItsContainersIsStillWhatItWas: it was gated for
// what was found in it, and a grant or a sidecar that is gone is a change.
func TestACustomResourceThatLosesItsContainersIsStillWhatItWas(t *testing.T) {
	s := newSite(t, "")
	fleet := func(spec string) string {
		return object("acme.example/v1", "Fleet", "name: web, namespace: shop", "spec: {"+spec+"}")
	}
	s.write("all.yaml", fleet(`template: {spec: {containers: [{name: web, image: "`+webImage("1", "a")+`"}]}}`))
	s.signed("release")
	s.allowed()
	s.write("all.yaml", fleet("paused: true"))
	s.refused(gate.DigestMismatch, "is gone")
	s.signed("release")
	s.allowed()
}

func TestRedTeamF16ThePreviousReceiptIsKeptSoThatUndoWorks(t *testing.T) {
	s := newSite(t, "")
	set := func(kind, tag, digest string) string {
		return object("apps/v1", kind, "name: db, namespace: shop", `spec: {template: {spec: {containers: [{name: db, image: "`+webImage(tag, digest)+`"}]}}}`)
	}
	for _, kind := range []string{"StatefulSet", "DaemonSet"} {
		var stamped []string
		for i, tag := range []string{"1", "2", "3"} {
			s.write("all.yaml", set(kind, tag, string('a'+rune(i))))
			s.signed("release")
			stamped = s.build().Objects[0].Receipts
		}
		if len(stamped) != 2 {
			t.Fatalf("%s: got %d receipts, want the last two", kind, len(stamped))
		}
		// kubectl rollout undo: the template of before, the annotations of now.
		undone := func(tag, digest string) string {
			return strings.Replace(set(kind, tag, digest), "namespace: shop", "namespace: shop, annotations: {syncgate.io/receipt: '"+strings.Join(stamped, " ")+"'}", 1)
		}
		if got := s.stream(undone("2", "b")); got != "" {
			t.Errorf("%s, one step: got %q, want it allowed", kind, got)
		}
		saysNo(t, s.stream(undone("1", "a")), gate.DigestMismatch)
	}
}

func TestRedTeamF18AFloorTakesBackOldReceiptsOfOneCategory(t *testing.T) {
	s := newSite(t, siteSecurity+"revocations: {file: revocations.jwt, issuers: [security]}\n")
	s.revoke("security", receipt.RevocationList{Serial: 1})
	s.write("all.yaml", web("", ""))
	old := s.signed("release")
	s.now += siteDay
	s.revoke("security", receipt.RevocationList{Serial: 2, Entries: []receipt.Revocation{{Floor: &receipt.Floor{Subject: "apps/*/shop/*", Category: "image", IssuedBefore: s.now}}}})
	s.refused(gate.ReceiptRevoked, "issued before 2027-01-16")
	renewed := s.signed("release") // revoked: made anew though nothing changed
	s.allowed()
	if old[0].Claims.ID == renewed[0].Claims.ID {
		t.Error("got the same receipt, want another")
	}
	// Taking the annotation off, or putting the old one on, gains nothing.
	compact, err := receipt.Sign(old[0].Claims, siteSigner(t, "release"))
	s.check(err)
	s.write("all.yaml", strings.Replace(web("", ""), "namespace: shop", "namespace: shop, annotations: {syncgate.io/receipt: '"+compact+"'}", 1))
	s.remove(".syncgate")
	s.refused(gate.ReceiptRevoked)
}

func TestRedTeamF20TighteningHasADayAndKeysAreRetired(t *testing.T) {
	allButCommand := func(g *app.Signing) { g.Covers = covering("identity", "image", "network", "privilege", "secret") }
	s := newSite(t, "categories: [{name: command, since: 2027-01-20}]\n")
	s.write("all.yaml", web("", "args: [a]"))
	s.signed("release", allButCommand)
	s.allowed()
	s.now += 10 * siteDay // required by now, but the receipt is older than that
	s.allowed()
	s.write("all.yaml", webOf(webImage("1.6", "b"), "", "args: [a]"))
	s.signed("release", allButCommand)
	s.refused(gate.CategoryNotCovered, "command")

	retired := "issuers:\n- {name: release, keys: {file: keys/release.jwks.json}, subjects: ['*/*/*/*'], retired: [release]}\n"
	s = newSite(t, "")
	s.write("all.yaml", web("", ""))
	s.signed("release")
	s.keySet("release", "release", "release-2")
	s.policy(siteHeader + retired)
	s.refused(gate.KeyRetired, "key release")
	s.policy(siteHeader + retired + "receipts: {backstop: true, expired: LeaveToAdmission}\n")
	s.allowed()
	s.write("all.yaml", webOf(webImage("1.6", "b"), "", ""))
	s.signed("release")
	s.policy(siteHeader + retired)
	s.refused(gate.KeyRetired)
}

func TestRedTeamF24ATrustedWriterIsNarrow(t *testing.T) {
	const writer = "user: 'system:serviceaccount:cert-manager:cert-manager', kinds: [Pod]"
	for name, tc := range map[string]struct{ rule, want string }{
		"without namespaces":           {writer + ", categories: [image], acceptImpersonation: true", "namespaces"},
		"without categories":           {writer + ", namespaces: [shop], acceptImpersonation: true", "categories"},
		"whose own namespace is gated": {writer + ", namespaces: [shop], categories: [image]", "acceptImpersonation"},
		"complete":                     {writer + ", namespaces: [shop], categories: [image], acceptImpersonation: true", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, "trustedWriters:\n- {"+tc.rule+"}\n")
			if got := s.policyError(); tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// Flux's real generator reads such a lock in e2e/fluxgen.
func TestRedTeamF25NoFileOfTheLockLooksLikeAManifest(t *testing.T) {
	s := newSite(t, "")
	s.write("kustomization.yaml", "resources: [web.yaml]\n")
	s.write("web.yaml", webOf("ghcr.io/acme/web.yaml:1.json", "", ""))
	s.pin("ghcr.io/acme/web.yaml", "1.json", sha("a"))
	s.signed("release")
	s.write("web.yaml", strings.Replace(webOf("ghcr.io/acme/web.yaml:1.json", "hostPID: true", ""), "name: web, namespace", "name: web.yaml, namespace", 1))
	s.signed("release")
	var files []string
	s.check(filepath.WalkDir(filepath.Join(s.appDir(), ".syncgate"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, path)
		}
		return err
	}))
	if len(files) != 4 {
		t.Errorf("got %q, want two receipts, a file of pins and one of what was rendered with", files)
	}
	for _, f := range files {
		if ext := filepath.Ext(f); slices.Contains([]string{".yaml", ".yml", ".json", ".jsonnet"}, ext) {
			t.Errorf("%s: Argo CD's directory source and Flux's generator would read it", f)
		}
	}
	s.allowed()
}

func TestRedTeamF38ASignedTagIsNotPinned(t *testing.T) {
	s := newSite(t, "images: {allowUnpinned: ['ghcr.io/acme/*']}\n")
	s.write("all.yaml", webOf("ghcr.io/acme/web:latest", "", ""))
	s.signed("release")
	s.allowed()
	receipts := s.build().Objects[0].Receipts
	s.policy(siteHeader + siteRelease)
	// Signed where placeholders are allowed, and judged as the webhook would.
	b := s.unpinned()
	e := s.effective()
	d := gate.Evaluate(gate.Request{Rules: &e.Rules, Subject: b.Subject, Object: b.Projection, Receipts: receipts, Now: s.now})
	if d.Allowed() || len(d.Findings) != 1 || d.Findings[0].Reason != gate.ImageNotPinned {
		t.Errorf("got %+v, want ImageNotPinned alone", d.Findings)
	}
	s.refused(gate.ImageNotPinned, "ghcr.io/acme/web:latest")
}

// unpinned is the application's only object, its images as they are.
func (s *site) unpinned() *app.Object {
	s.t.Helper()
	settings := s.settings(s.effective())
	settings.LeaveUnpinned = true
	b, err := app.New(s.t.Context(), settings)
	s.check(err)
	return b.Objects[0]
}

func TestRedTeamF40AnImageIsRevokedWhereverItRuns(t *testing.T) {
	s := newSite(t, siteSecurity+"revocations: {file: revocations.jwt, issuers: [security]}\n")
	s.revoke("security", receipt.RevocationList{Serial: 1, Entries: []receipt.Revocation{{Image: sha("e")}}})
	bad := "x.example/tool:1@" + sha("e")
	for name, manifest := range map[string]string{
		"container":    webOf(bad, "", ""),
		"init":         web(`initContainers: [{name: i, image: "`+bad+`"}]`, ""),
		"image volume": web(`volumes: [{name: v, image: {reference: "`+bad+`"}}]`, ""),
	} {
		s.write("all.yaml", manifest)
		s.signed("release")
		if got := s.sentence(); !strings.Contains(got, "[ReceiptRevoked]") || !strings.Contains(got, "image "+sha("e")) {
			t.Errorf("%s: got %q, want it refused as revoked", name, got)
		}
	}
	s.write("all.yaml", web("", ""))
	s.signed("release")
	s.allowed()
}

func TestRedTeamF42NamesAreNeverPatterns(t *testing.T) {
	role := func(name string) string {
		return object("rbac.authorization.k8s.io/v1", "Role", "name: '"+name+"', namespace: shop", "rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]")
	}
	s := newSite(t, "")
	s.write("all.yaml", role("admin*"))
	s.signed("release")
	s.allowed()
	receipts := s.build().Objects[0].Receipts[0]
	s.write("all.yaml", strings.Replace(role("admin-evil"), "namespace: shop", "namespace: shop, annotations: {syncgate.io/receipt: '"+receipts+"'}", 1))
	s.refused(gate.SubjectMismatch, "Role/shop/admin*")

	job := func(metadata string) string {
		return object("batch/v1", "Job", metadata+", namespace: shop", `spec: {template: {spec: {containers: [{name: j, image: "`+webImage("1", "a")+`"}]}}}`)
	}
	s.write("all.yaml", job("generateName: migrate-"))
	s.signed("release")
	s.allowed()
	receipts = s.build().Objects[0].Receipts[0]
	annotated := func(metadata string) string {
		return s.stream(job(metadata + ", annotations: {syncgate.io/receipt: '" + receipts + "'}"))
	}
	if got := annotated("generateName: migrate-, name: migrate-x7k2p"); got != "" {
		t.Errorf("the name that was made of it: got %q, want it allowed", got)
	}
	saysNo(t, annotated("name: migrate-x7k2p"), gate.SubjectMismatch)
	saysNo(t, annotated("generateName: migrate-, name: other"), gate.SubjectMismatch)
	saysNo(t, annotated("generateName: mig"), gate.SubjectMismatch)
}

func TestRedTeamF43LockFilesTellSubjectsApart(t *testing.T) {
	s := newSite(t, "")
	role := func(name string) string {
		return object("rbac.authorization.k8s.io/v1", "ClusterRole", "name: '"+name+"'", "rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]")
	}
	names := []string{"system:a", "system_a", "System:A", "a.release", "a", strings.Repeat("long-", 48) + "x", strings.Repeat("long-", 48) + "y", "con"}
	var all string
	for _, n := range names {
		all += role(n)
	}
	s.write("all.yaml", all)
	s.signed("release")
	s.allowed()
	files, err := filepath.Glob(filepath.Join(s.appDir(), ".syncgate/prod/*.jwt"))
	s.check(err)
	if len(files) != len(names) {
		t.Errorf("got %d files for %d subjects", len(files), len(names))
	}
	folded := map[string]bool{}
	for _, f := range files {
		base := strings.ToLower(filepath.Base(f))
		if folded[base] || len(base) > 220 || strings.Contains(base, ":") {
			t.Errorf("file name %q is taken, too long, or of bad characters", base)
		}
		folded[base] = true
	}
}

func TestRedTeamF49JunkReceiptsAreBoundedAndNeverDecide(t *testing.T) {
	s := newSite(t, "")
	s.write("all.yaml", web("", ""))
	s.signed("release")
	junk := func(n int) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf("eyJhbGciOiJub25lIn0.e%d.x", i))
		}
		return strings.Replace(web("", ""), "namespace: shop", "namespace: shop, annotations: {syncgate.io/receipt: '"+strings.Join(list, " ")+"'}", 1)
	}
	s.write("all.yaml", junk(3)) // beside the good one of the lock
	s.allowed()
	s.write("all.yaml", junk(16)) // the good one is the seventeenth
	s.refused(gate.ReceiptMalformed)
}
