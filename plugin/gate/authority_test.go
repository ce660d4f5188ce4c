package gate_test

import (
	"testing"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/projection"
	"github.com/syncgate/syncgate/plugin/receipt"
)

// split gives image and command to release, and privilege to security alone.
func split(t *testing.T) *gate.Rules {
	r := rules(t)
	rel := r.Issuers["release"]
	rel.Categories = []projection.Category{"image", "command"}
	r.Issuers["release"] = rel
	r.Requirements = []gate.Requirement{{Categories: []projection.Category{"privilege"}, Issuers: []string{"security"}, Threshold: 1}}
	return r
}

func TestSplitAuthority(t *testing.T) {
	trivial := deployment(t, image, "", "")
	hardened := deployment(t, image, "", `"securityContext":{"runAsNonRoot":true,"capabilities":{"drop":["ALL"]}},`)
	host := deployment(t, image, `"hostPID":true,`, "")
	hostBumped := deployment(t, other, `"hostPID":true,`, "")
	all := sign(t, "release", trivial, nil)
	tests := []struct {
		name     string
		object   *projection.Projection
		receipts []string
		want     gate.Reason // "": allowed
	}{
		{"a trivial Deployment needs no second signature", trivial, []string{all}, ""},
		{"nor does a hardened one", hardened, []string{sign(t, "release", hardened, nil)}, ""},
		{"host access needs security", host, []string{sign(t, "release", host, nil)}, gate.IssuerNotAllowed},
		{"host access signed by both", host, []string{sign(t, "release", host, covers("command", "identity", "image", "network", "secret")), sign(t, "security", host, covers("privilege"))}, ""},
		{"security alone may not sign what is release's, but does not have to be asked twice", host, []string{sign(t, "security", host, nil)}, ""},
		{"yesterday's privilege receipt with today's image", hostBumped, []string{sign(t, "release", hostBumped, covers("command", "identity", "image", "network", "secret")), sign(t, "security", host, covers("privilege"))}, ""},
		{"yesterday's privilege receipt covering the old image too", hostBumped, []string{sign(t, "release", hostBumped, covers("command", "identity", "image", "network", "secret")), sign(t, "security", host, nil)}, gate.DigestMismatch},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := evaluate(split(t), nil, tt.object, tt.receipts...)
			switch {
			case tt.want == "" && !d.Allowed():
				t.Errorf("refused: %+v", d.Findings)
			case tt.want != "" && (d.Allowed() || d.Findings[0].Reason != tt.want):
				t.Errorf("got %+v, want %s", d.Findings, tt.want)
			}
		})
	}
}

func TestThresholdCountsDistinctParties(t *testing.T) {
	p := deployment(t, image, `"hostPID":true,`, "")
	two := func() *gate.Rules {
		r := rules(t)
		r.Requirements = []gate.Requirement{{Categories: []projection.Category{"privilege"}, Issuers: []string{"release", "security", "third"}, Threshold: 2}}
		third := r.Issuers["release"] // the same key under another name
		third.Name = "third"
		r.Issuers["third"] = third
		r.Issuers["glass"] = gate.Issuer{Issuer: receipt.Issuer{Name: "glass", Keys: []receipt.Key{signer(t, "glass").Key()}}, AllSubjects: true, BreakGlass: true, MaxLifetime: 90 * day}
		return r
	}
	approver := func(issuer, who, id string) string {
		return sign(t, issuer, p, func(c *receipt.Claims) { c.Approver, c.ID = who, c.ID+id })
	}
	third := func() string {
		c := receipt.Claims{Issuer: "third", Subject: web.String(), Environment: "prod", Profile: "v1", IssuedAt: now - day, Expires: now + day, ID: "01J9thirdxxxxxxxxxxxxxxxxxxxxxx"}
		for _, a := range p.Applies() {
			c.Covers = append(c.Covers, string(a))
		}
		c.Digest, _ = p.Digest(p.Applies())
		s, err := receipt.Sign(c, signer(t, "release"))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}()
	tests := []struct {
		name     string
		receipts []string
		allowed  bool
	}{
		{"two issuers", []string{approver("release", "alice", "1"), approver("security", "bob", "2")}, true},
		{"one issuer", []string{approver("release", "alice", "1")}, false},
		{"one issuer twice", []string{approver("release", "alice", "1"), approver("release", "bob", "2")}, false},
		{"one receipt twice", []string{approver("release", "alice", "1"), approver("release", "alice", "1")}, false},
		{"two issuers with one approver", []string{approver("release", "alice", "1"), approver("security", "alice", "2")}, false},
		{"two issuers with one key", []string{approver("release", "alice", "1"), third}, false},
		{"break-glass alone", []string{sign(t, "glass", p, nil)}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if d := evaluate(two(), nil, p, tt.receipts...); d.Allowed() != tt.allowed {
				t.Errorf("allowed=%v, want %v: %+v", d.Allowed(), tt.allowed, d.Findings)
			}
		})
	}
	d := evaluate(two(), nil, p, sign(t, "glass", p, nil))
	if len(d.Used) != 1 || !d.Used[0].BreakGlass {
		t.Errorf("break-glass is not reported: %+v", d.Used)
	}
}

// A break-glass receipt lives for hours, less than any minRemaining.
func TestMinRemainingDoesNotEndBreakGlass(t *testing.T) {
	p := deployment(t, image, "", "")
	r := rules(t)
	r.MinRemaining = 30 * day
	is := r.Issuers["release"]
	if d := evaluate(r, nil, p, sign(t, "release", p, nil)); d.Allowed() {
		t.Error("an ordinary receipt with a day left counts")
	}
	is.BreakGlass = true
	r.Issuers["release"] = is
	if d := evaluate(r, nil, p, sign(t, "release", p, nil)); !d.Allowed() {
		t.Errorf("break-glass: %+v", d.Findings)
	}
}

func TestSinceLeavesOlderReceiptsAlone(t *testing.T) {
	p := deployment(t, image, "", `"command":["serve"],`)
	r := rules(t)
	r.Required = []gate.Required{{Category: "image"}, {Category: "command", Since: now - day/2}}
	old := sign(t, "release", p, covers("image"))
	if d := evaluate(r, nil, p, old); !d.Allowed() {
		t.Errorf("a receipt from before the day: %+v", d.Findings)
	}
	young := sign(t, "release", p, func(c *receipt.Claims) { c.Covers, c.IssuedAt = []string{"image"}, now })
	if d := evaluate(r, nil, p, young); d.Allowed() {
		t.Error("a receipt from after the day need not cover the category")
	}
}

func TestExpiredIsLeftToAdmissionOnlyWhenAllElseIsRight(t *testing.T) {
	p := deployment(t, image, "", "")
	expired := sign(t, "release", p, func(c *receipt.Claims) { c.Expires = now - day/2 })
	r := rules(t)
	r.Expired = gate.LeaveToAdmission
	d := evaluate(r, nil, p, expired)
	if !d.Allowed() || len(d.Deferred) == 0 || d.Deferred[0].Reason != gate.ReceiptExpired {
		t.Errorf("expired: allowed=%v deferred=%+v", d.Allowed(), d.Deferred)
	}
	moved := deployment(t, other, "", "")
	if d := evaluate(r, nil, moved, expired); d.Allowed() {
		t.Error("an expired receipt for another image was left to admission")
	}
	future := sign(t, "release", p, func(c *receipt.Claims) { c.IssuedAt, c.Expires = now+day, now+2*day })
	if d := evaluate(r, nil, p, future); d.Allowed() {
		t.Error("a receipt that is not valid yet was left to admission")
	}
}

func TestRevocations(t *testing.T) {
	p := deployment(t, image, "", "")
	compact := sign(t, "release", p, func(c *receipt.Claims) { c.Release = "v1.4" })
	u, err := receipt.ParseUnverified(compact)
	if err != nil {
		t.Fatal(err)
	}
	digest := image[len("ghcr.io/acme/web:1.4@"):]
	tests := []struct {
		name    string
		entry   receipt.Revocation
		revoked bool
	}{
		{"by nonce", receipt.Revocation{ID: u.Claims.ID}, true},
		{"another nonce", receipt.Revocation{ID: u.Claims.ID + "x"}, false},
		{"by key", receipt.Revocation{KeyID: "release"}, true},
		{"by release", receipt.Revocation{Release: "v1.4"}, true},
		{"by image", receipt.Revocation{Image: digest}, true},
		{"another image", receipt.Revocation{Image: other[len("ghcr.io/acme/web:1.5@"):]}, false},
		{"floor over all", receipt.Revocation{Floor: &receipt.Floor{IssuedBefore: now}}, true},
		{"floor from before", receipt.Revocation{Floor: &receipt.Floor{IssuedBefore: now - 2*day}}, false},
		{"floor for its subject and environment", receipt.Revocation{Floor: &receipt.Floor{Subject: "apps/*/shop/*", Environment: "prod", Category: "image", IssuedBefore: now}}, true},
		{"floor for another subject", receipt.Revocation{Floor: &receipt.Floor{Subject: "apps/*/bank/*", IssuedBefore: now}}, false},
		{"floor for another environment", receipt.Revocation{Floor: &receipt.Floor{Environment: "test", IssuedBefore: now}}, false},
		{"floor for another category", receipt.Revocation{Floor: &receipt.Floor{Category: "rbac", IssuedBefore: now}}, false},
		{"an entry that names nothing", receipt.Revocation{}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := rules(t)
			r.Revocations = &gate.Revocations{List: receipt.RevocationList{Entries: []receipt.Revocation{tt.entry}}}
			d := evaluate(r, nil, p, compact)
			if d.Allowed() == tt.revoked {
				t.Errorf("allowed=%v, want revoked=%v: %+v", d.Allowed(), tt.revoked, d.Findings)
			}
			if d := evaluate(r, p, p, compact); !d.Allowed() {
				t.Errorf("what runs unchanged was stopped: %+v", d.Findings)
			}
		})
	}
}
