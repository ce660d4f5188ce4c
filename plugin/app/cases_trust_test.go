package app_test

import (
	"strings"
	"testing"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/receipt"
)

func TestCase059TheSecondReceiptReplacesTheFirst(t *testing.T) {
	s := newSite(t, "")
	s.write("all.yaml", webOf(webImage("1.4", "a"), "", ""))
	first := s.signed("release")[0].Claims.ID
	s.allowed()
	s.write("all.yaml", webOf(webImage("1.5", "b"), "", ""))
	s.refused(gate.DigestMismatch, "ghcr.io/acme/web:1.5")
	second := s.signed("release")[0].Claims.ID
	s.allowed()
	on := s.build().Objects[0].Receipts
	if len(on) != 2 || idOf(t, on[0]) != second || idOf(t, on[1]) != first {
		t.Errorf("got %d receipts on the object, want the new one %s, then the one before it %s", len(on), second, first)
	}
}

func idOf(t *testing.T, compact string) string {
	t.Helper()
	u, err := receipt.ParseUnverified(compact)
	if err != nil {
		t.Fatal(err)
	}
	return u.Claims.ID
}

func TestCase061WhatExpiredOnDiskIsReplacedWithoutARestart(t *testing.T) {
	s := newSite(t, siteSecurity+"revocations: {file: revocations.jwt, issuers: [security], maxAge: 1h}\n")
	s.revoke("security", receipt.RevocationList{Serial: 1})
	s.write("all.yaml", web("", ""))
	s.signed("release")
	s.allowed()
	s.now += 7200
	s.refused(gate.RevocationListStale, "stale since 2027-01-15T09:00:00Z", "syncgate revoke --reissue")
	s.revoke("security", receipt.RevocationList{Serial: 2})
	s.allowed()
}

func TestCase063AKeyThatIsAddedOnDiskCountsAtOnce(t *testing.T) {
	s := newSite(t, "")
	s.write("all.yaml", web("", ""))
	s.signed("release", func(g *app.Signing) { g.Signer = siteSigner(t, "release-2") })
	s.refused(gate.KeyUnknown, "release-2")
	s.keySet("release", "release", "release-2")
	s.allowed()
}

func TestCase065ClocksMayDifferByAMinute(t *testing.T) {
	for _, tc := range []struct {
		name   string
		skew   int64 // of the signer's clock against the gate's
		life   int64
		reason gate.Reason
		words  string
	}{
		{"issued 30 s from now", 30, siteDay, "", ""},
		{"issued 10 min from now", 600, siteDay, gate.ReceiptNotYetValid, "is issued at 2027-01-15T08:10:00Z"},
		{"expired 30 s ago", -siteDay - 30, siteDay, "", ""},
		{"expired 10 min ago", -siteDay - 600, siteDay, gate.ReceiptExpired, "expired at 2027-01-15T07:50:00Z"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSite(t, "")
			s.write("all.yaml", web("", ""))
			s.signed("release", func(g *app.Signing) { g.Now, g.Lifetime = s.now+tc.skew, tc.life })
			if tc.reason == "" {
				s.allowed()
				return
			}
			s.refused(tc.reason, tc.words)
		})
	}
	for _, tc := range []struct {
		name      string
		notBefore int64
		reason    gate.Reason
	}{{"valid from in 30 s", 30, ""}, {"valid from in 10 min", 600, gate.ReceiptNotYetValid}} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSite(t, "")
			s.write("all.yaml", web("", ""))
			s.forge("release", func(c *receipt.Claims) { c.NotBefore = s.now + tc.notBefore })
			if tc.reason == "" {
				s.allowed()
				return
			}
			s.refused(tc.reason, "is valid from 2027-01-15T08:10:00Z")
		})
	}
}

// forge commits receipts that differ from what syncgate sign would make.
func (s *site) forge(party string, change func(*receipt.Claims)) {
	s.t.Helper()
	e, b := s.effective(), s.build()
	g := app.Signing{Issuer: party, Environment: e.Rules.Environment, Now: s.now, Lifetime: 30 * siteDay, Signer: siteSigner(s.t, party)}
	drafts, err := b.Drafts(g, e)
	s.check(err)
	for i := range drafts {
		change(&drafts[i].Claims)
	}
	s.check(b.Write(drafts, g))
}

func TestCase067TrustIsTakenBackFromOneThingAlone(t *testing.T) {
	const policy = siteSecurity + "revocations: {file: revocations.jwt, issuers: [security]}\n"
	two := web("", "") + strings.Replace(webOf(webImage("2.0", "b"), "", ""), "name: web, namespace", "name: api, namespace", 1)
	tests := []struct {
		name   string
		revoke func(s *site, drafts []app.Draft)
		reason gate.Reason
		words  []string
	}{
		{"one receipt", func(s *site, drafts []app.Draft) {
			s.revoke("security", receipt.RevocationList{Serial: 2, Entries: []receipt.Revocation{{ID: drafts[0].Claims.ID}}})
		}, gate.ReceiptRevoked, []string{"1 of 2", "Deployment shop/web", "by nonce"}},
		{"one image", func(s *site, drafts []app.Draft) {
			s.revoke("security", receipt.RevocationList{Serial: 2, Entries: []receipt.Revocation{{Image: sha("b")}}})
		}, gate.ReceiptRevoked, []string{"1 of 2", "Deployment shop/api", "image sha256:bbbb"}},
		{"one key", func(s *site, drafts []app.Draft) {
			s.revoke("security", receipt.RevocationList{Serial: 2, Entries: []receipt.Revocation{{KeyID: "release-2"}}})
		}, gate.ReceiptRevoked, []string{"1 of 2", "Deployment shop/api", "key release-2"}},
		{"a key that is taken out", func(s *site, drafts []app.Draft) { s.keySet("release", "release") },
			gate.KeyUnknown, []string{"1 of 2", "Deployment shop/api", "release-2"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			s := newSite(t, policy)
			s.keySet("release", "release", "release-2")
			s.revoke("security", receipt.RevocationList{Serial: 1})
			s.write("all.yaml", web("", ""))
			drafts := s.signed("release")
			s.write("all.yaml", two)
			s.signed("release", func(g *app.Signing) { g.Signer = siteSigner(t, "release-2"); g.Covers = nil })
			// The first receipt stays that of the first key.
			s.check(resign(s, drafts))
			s.allowed()
			tc.revoke(s, drafts)
			s.refused(tc.reason, tc.words...)
		})
	}
}

// resign puts receipts of the first key back.
func resign(s *site, drafts []app.Draft) error {
	g := app.Signing{Issuer: "release", Environment: "prod", Now: s.now, Lifetime: 30 * siteDay, Signer: siteSigner(s.t, "release")}
	return s.build().Write(drafts, g)
}

func TestCase069AnOwnerReferenceDoesNotSpeakForAPod(t *testing.T) {
	s := newSite(t, "")
	set := object("apps/v1", "ReplicaSet", "name: web-1, namespace: shop, uid: 7d6c", `spec: {template: {spec: {containers: [{name: web, image: "`+webImage("1.5", "a")+`"}]}}}`)
	s.write("all.yaml", set)
	s.signed("release")
	s.allowed()
	owner := "name: web-1-x, namespace: shop, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web-1, uid: 7d6c, controller: true}]"
	pod := func(digest string) string {
		return object("v1", "Pod", owner, `spec: {containers: [{name: web, image: "`+webImage("1.5", digest)+`"}]}`)
	}
	s.write("all.yaml", set+pod("e"))
	s.refused(gate.ReceiptMissing, "1 of 2", "Pod shop/web-1-x")
	// Not even with the owner's own receipt.
	annotated := strings.Replace(pod("a"), "controller: true}]", "controller: true}], annotations: {syncgate.io/receipt: '"+s.build().Objects[0].Receipts[0]+"'}", 1)
	s.write("all.yaml", set+annotated)
	s.refused(gate.SubjectMismatch, "is for apps/ReplicaSet/shop/web-1")
}
