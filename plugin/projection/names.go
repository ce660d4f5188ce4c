package projection

import "strings"

// names is a set of names that the table lists. A trailing or leading '*' is a
// wild card. The walk asks has; the matchConditions say the same in CEL.
type names struct {
	list               []string // as written, in the order of the documentation
	exact              map[string]bool
	prefixes, suffixes []string
}

func nameSet(list ...string) *names {
	n := &names{list: list, exact: map[string]bool{}}
	for _, p := range list {
		if rest, ok := strings.CutPrefix(p, "*"); ok {
			n.suffixes = append(n.suffixes, rest)
		} else if rest, ok := strings.CutSuffix(p, "*"); ok {
			n.prefixes = append(n.prefixes, rest)
		} else {
			n.exact[p] = true
		}
	}
	return n
}

func (n *names) has(k string) bool {
	for _, p := range n.prefixes {
		if strings.HasPrefix(k, p) {
			return true
		}
	}
	for _, s := range n.suffixes {
		if strings.HasSuffix(k, s) {
			return true
		}
	}
	return n.exact[k]
}

// metaRule says which labels or annotations of an object count.
type metaRule struct {
	names  *names   // these; nil: every one
	except []*names // but none of these
	// mayTune: nor those that only tune how traffic is served, as long as they
	// hold nothing but a setting.
	mayTune bool
}

func (r *metaRule) counts(k string, v any) bool {
	if r.names != nil && !r.names.has(k) {
		return false
	}
	for _, e := range r.except {
		if e.has(k) {
			return false
		}
	}
	return !r.mayTune || !tuning.has(k) || !mereSetting(v)
}
