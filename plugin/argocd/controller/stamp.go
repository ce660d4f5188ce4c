package controller

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/syncgate/syncgate/plugin/policy"
	"github.com/syncgate/syncgate/plugin/receipt"
)

// stamp is what an Application's render was judged by when it was refreshed
// last: hashes of the policy with its keys, of what the Application asks for, of
// the entries of the revocation list, and of where the Application stands that
// Argo CD's cache knows nothing of. Stamps are kept in the ConfigMap
// [Refreshed], not on the Application, where an ApplicationSet would remove them
// and the two would write in turns.
type stamp struct{ rules, asked, revoked, place string }

// Refreshed is the name of the ConfigMap of the stamps, in Argo CD's namespace.
const Refreshed = "syncgate-refreshed"

// short is enough of a hash to tell two apart.
func short(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// listHash names the entries, whatever the list's serial and date.
func listHash(entries []receipt.Revocation) string {
	if len(entries) == 0 {
		return "none"
	}
	data, err := json.Marshal(entries)
	if err != nil { // strings and numbers: there is none
		return short(err.Error())
	}
	return short(string(data))
}

func newStamp(p *policy.Policy, a application, entry string, off bool) stamp {
	return stamp{rules: short(p.RulesHash()), asked: short(entry, fmt.Sprint(off)), revoked: listHash(p.Revocations()), place: short(a.place()...)}
}

func (s stamp) String() string {
	return strings.Join([]string{"v2", s.rules, s.asked, s.place, s.revoked}, " ")
}

// parseStamp reads one; what is none is that of an Application that was never
// refreshed.
func parseStamp(text string) (stamp, bool) {
	f := strings.Split(text, " ")
	if len(f) != 5 || f[0] != "v2" {
		return stamp{}, false
	}
	return stamp{rules: f[1], asked: f[2], place: f[3], revoked: f[4]}, true
}
