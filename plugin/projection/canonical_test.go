package projection

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/gowebpki/jcs"
)

// reference is another implementation's RFC 8785 form of a decoded value.
func reference(t testing.TB, v any) ([]byte, bool) {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	out, err := jcs.Transform(append(append([]byte(`{"v":`), raw...), '}'))
	if err != nil {
		return nil, false
	}
	return bytes.TrimSuffix(bytes.TrimPrefix(out, []byte(`{"v":`)), []byte("}")), true
}

func TestCanonicalFormIsThatOfRFC8785(t *testing.T) {
	for _, in := range []string{
		`null`, `true`, `""`, `"a\"b\\c\/d"`, `"\u0000\u0007\b\t\n\u000b\f\r\u001f\u007f"`, `"\u2028\u2029é€😀"`, `"<>&"`,
		`0`, `-0`, `-1`, `7`, `9007199254740991`, `-9007199254740991`, `1.0`, `1e3`, `1.5`, `-0.25`, `1e-7`, `0.000001`, `123456.789e3`, `4.50`, `2e-3`,
		`[]`, `[1,"a",null,[],{}]`, `{}`, `{"b":1,"a":{"d":[],"c":null}}`,
		`{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7}`, // RFC 8785 section 3.2.3
		`{"\uffff":1,"\ud83d\ude00":2}`,
	} {
		v := decode(t, []byte(`{"v":`+in+`}`))["v"]
		want, ok := reference(t, v)
		if !ok {
			t.Fatalf("the reference refuses %s", in)
		}
		w := &walker{}
		n, _ := w.normalAny("v", v)
		if strings.Contains(in, "null") { // nulls are dropped from objects, which is not RFC 8785's business
			n = v
		}
		if got := appendValue(nil, n); len(w.faults) > 0 || string(got) != string(want) {
			t.Errorf("%s: got %s, want %s, faults %v", in, got, want, w.faults)
		}
	}
}

func TestNumbersWithoutOneMeaningAreRefused(t *testing.T) {
	for _, in := range []string{"9007199254740992", "-9007199254740992", "9007199254740993.0", "1e400", "123456789012345678901234567890", "1e300", "NaN", ""} {
		if n, ok := number(json.Number(in)); ok {
			t.Errorf("number(%q) = %q, want none", in, n)
		}
	}
}

func TestCanonicalHoldsExactlyTheCoveredCategories(t *testing.T) {
	p := project(t, deployment("hostPID: true\ncontainers: [{name: a, image: i}]"))
	for _, c := range []struct {
		covers []Category
		want   string
	}{
		{nil, `{"fields":{},"profile":"v1"}`},
		{[]Category{Secret}, `{"fields":{"secret":{}},"profile":"v1"}`},
		{[]Category{Secret, Image}, `{"fields":{"image":{"spec.template.spec.containers[a].image":"i"},"secret":{}},"profile":"v1"}`},
		{[]Category{Privilege}, `{"fields":{"privilege":{"spec.template.spec.containers[a].image#repository":"i","spec.template.spec.hostPID":true}},"profile":"v1"}`},
	} {
		got, err := p.Canonical(c.covers)
		if err != nil || string(got) != c.want {
			t.Errorf("covers %v: got %s, %v, want %s", c.covers, got, err, c.want)
		}
	}
}

func TestCoversMustApplyAndStandOnce(t *testing.T) {
	p := project(t, deployment("hostPID: true"))
	for _, covers := range [][]Category{{RBAC}, {Image, Image}, {"x-mine"}, {""}} {
		if b, err := p.Canonical(covers); err == nil {
			t.Errorf("covers %q: %s", covers, b)
		}
		if d, err := p.Digest(covers); err == nil {
			t.Errorf("covers %q: %s", covers, d)
		}
	}
}

func TestAShortHashIsOfTheValueAlone(t *testing.T) {
	a, b := Leaf{Category: Image, Path: "a", Value: "x"}, Leaf{Category: Secret, Path: "b", Value: "x"}
	if a.ShortHash() != b.ShortHash() || len(a.ShortHash()) != 11 {
		t.Errorf("short hashes %q and %q", a.ShortHash(), b.ShortHash())
	}
	if c := (Leaf{Value: "q"}); c.ShortHash() == a.ShortHash() {
		t.Error("another value has the same short hash")
	}
}

func TestDiffNamesWhatMovedInOrder(t *testing.T) {
	from := project(t, deployment("hostPID: true\nhostIPC: true\ncontainers: [{name: a, image: i}]"))
	to := project(t, deployment("hostPID: true\nruntimeClassName: r\ncontainers: [{name: a, image: j}]"))
	var got []string
	for _, c := range Diff(from, to) {
		got = append(got, string(c.Category)+" "+strings.TrimPrefix(c.Path, podPrefix)+" "+string(appendValue(nil, c.Old))+"->"+string(appendValue(nil, c.New)))
	}
	want := `image containers[a].image "i"->"j"; privilege containers[a].image#repository "i"->"j"; privilege hostIPC true->null; privilege runtimeClassName null->"r"`
	if s := strings.Join(got, "; "); s != want {
		t.Errorf("got %s, want %s", s, want)
	}
	if n := len(Diff(nil, to)); n != len(to.Leaves()) {
		t.Errorf("against nothing %d changes, want %d", n, len(to.Leaves()))
	}
	if d := Diff(from, from); len(d) != 0 {
		t.Errorf("against itself: %v", d)
	}
}

// FuzzCanonical holds appendString, appendValue and number against another
// implementation of RFC 8785: what both accept, both write alike.
func FuzzCanonical(f *testing.F) {
	for _, s := range []string{`"é\u0000"`, `{"b":[1,2.50,-0],"a":"😀"}`, `1e21`, `[[[]]]`, `{"\ud83d":1}`, `123456789.25e-3`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		d := json.NewDecoder(strings.NewReader(`{"v":` + in + `}`))
		d.UseNumber()
		var obj map[string]any
		if d.Decode(&obj) != nil || depth(obj, 0) > maxDepth || hasNull(obj) {
			t.Skip()
		}
		w := &walker{}
		n, keep := w.normalAny("v", obj["v"])
		if len(w.faults) > 0 {
			t.Skip()
		}
		if !keep && !isEmptyList(obj["v"]) {
			t.Fatalf("%s is dropped", in)
		}
		if !keep {
			return
		}
		if want, ok := reference(t, normalEmptyLists(obj["v"])); ok && string(appendValue(nil, n)) != string(want) {
			t.Errorf("%s: got %s, want %s", in, appendValue(nil, n), want)
		}
	})
}

func isEmptyList(v any) bool {
	list, ok := v.([]any)
	return ok && len(list) == 0
}

// normalEmptyLists does what RFC 8785 knows nothing of: an empty list in an
// object is absent, in a list it is null.
func normalEmptyLists(v any) any {
	switch t := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, x := range t {
			if !isEmptyList(x) {
				out[k] = normalEmptyLists(x)
			}
		}
		return out
	case []any:
		out := make([]any, len(t))
		for i, x := range t {
			if !isEmptyList(x) {
				out[i] = normalEmptyLists(x)
			}
		}
		return out
	}
	return v
}

func hasNull(v any) bool {
	switch t := v.(type) {
	case nil:
		return true
	case map[string]any:
		for _, x := range t {
			if hasNull(x) {
				return true
			}
		}
	case []any:
		for _, x := range t {
			if hasNull(x) {
				return true
			}
		}
	}
	return false
}
