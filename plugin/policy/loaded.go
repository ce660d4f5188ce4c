package policy

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"slices"

	"github.com/syncgate/syncgate/plugin/projection"
	"github.com/syncgate/syncgate/plugin/receipt"
)

// Hash is a name for everything that was read: "sha256:" and 64 lower-case
// hexadecimal digits over the policy, the key sets and the revocation list, in
// this order, each with its name as the policy has it. Replicas that show the
// same have loaded the same, wherever the files are. The zero Policy has none.
func (p *Policy) Hash() string { return p.hash }

// RulesHash is Hash without the revocation list: what else decides.
func (p *Policy) RulesHash() string { return p.rulesHash }

// Revocations returns the entries of the revocation list, none without one.
func (p *Policy) Revocations() []receipt.Revocation {
	if p.base.Rules.Revocations == nil {
		return nil
	}
	return p.base.Rules.Revocations.List.Entries
}

// Annotation is the key under which objects carry receipts.
func (p *Policy) Annotation() string { return p.base.Annotation }

// KeyIDs returns the IDs of all keys of all issuers, retired ones too, sorted.
func (p *Policy) KeyIDs() []string { return p.keyIDs }

// RevocationSerial returns the serial of the revocation list; false if policy
// names none.
func (p *Policy) RevocationSerial() (int64, bool) {
	r := p.base.Rules.Revocations
	if r == nil {
		return 0, false
	}
	return r.List.Serial, true
}

// RevocationFile returns the name of the revocation list as the policy has it;
// empty if it names none.
func (p *Policy) RevocationFile() string {
	if p.revocations == nil {
		return ""
	}
	return p.revocations.File
}

// CustomKinds returns the kinds outside the table of gated fields that the
// webhook judges, and those of the table that the policy's own fields are of,
// in the order of the policy. A Resource that policy does not give follows from
// the kind.
func (p *Policy) CustomKinds() []projection.Kind {
	var out []projection.Kind
	for _, c := range p.custom {
		k := projection.Kind{Group: c.Group, Kind: c.Kind, Resource: c.Resource, ClusterScoped: c.ClusterScoped}
		if k.Resource == "" {
			k.Resource = projection.Resource(c.Group, c.Kind)
		}
		out = append(out, k)
	}
	return out
}

// open reads a file that the policy names and records it.
func (v *validator) open(name string) ([]byte, error) {
	data, err := v.read(name)
	if err == nil {
		v.record(name, data)
	}
	return data, err
}

// record adds a file to what is hashed. Lengths stand before what varies, so
// that nothing can be moved from one file to the next.
func (v *validator) record(name string, data []byte) {
	for _, b := range [][]byte{[]byte(name), data} {
		v.loaded = binary.BigEndian.AppendUint64(v.loaded, uint64(len(b)))
		v.loaded = append(v.loaded, b...)
	}
}

func hash(loaded []byte) string {
	sum := sha256.Sum256(loaded)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func (v *validator) keyIDs() []string {
	ids := map[string]bool{}
	for _, list := range v.keys {
		for _, k := range list {
			ids[k.ID] = true
		}
	}
	return slices.Sorted(maps.Keys(ids))
}
