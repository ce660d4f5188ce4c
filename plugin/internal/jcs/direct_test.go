package jcs

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// claims is made of what is decoded directly.
type claims struct {
	Issuer string            `json:"iss"`
	Count  int64             `json:"count"`
	Yes    bool              `json:"yes,omitempty"`
	List   []string          `json:"list"`
	Leaves map[string]string `json:"leaves"`
	Inner  inner             `json:"inner"`
}

var directSeeds = []string{
	`{"iss":"a","count":-7,"yes":true,"list":["x","y"],"leaves":{"p":"q","r":"s"},"inner":{"name":"n"}}`,
	"\t{ \"iss\" : \"caf\\u00e9\" ,\n\"list\" : [ ] , \"leaves\" : { } , \"yes\" : false , \"count\" : 0 } ", `{}`,
}

func TestWhatIsOrdinaryIsDecodedDirectly(t *testing.T) {
	for _, in := range directSeeds {
		var got, want claims
		if err := direct([]byte(in), reflect.ValueOf(&got).Elem()); err != nil {
			t.Errorf("%s: %v", in, err)
		}
		if err := byTree([]byte(in), reflect.ValueOf(&want).Elem()); err != nil {
			t.Errorf("%s: %v", in, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: directly and by a tree (-tree +directly):\n%s", in, diff)
		}
	}
}

// What is decoded directly is what a tree says; what a tree refuses is not.
func FuzzDirect(f *testing.F) {
	for _, in := range directSeeds {
		f.Add([]byte(in))
	}
	for _, in := range []string{
		`{"iss":"a","iss":"b"}`, `{"leaves":{"a":"b","a":"c"}}`, `{"ISS":"a"}`, `{"iss":null}`, `{"iss":"a"}x`, `{"iss":"a",}`, `{"leaves":{"a":"b",}}`, `{"list":["a",]}`,
		`{"count":1.0}`, `{"count":-0}`, `{"count":9007199254740992}`, `{"yes":truer}`, `{"iss":"\ud800"}`, "{\"iss\":\"\xff\"}", "{\"iss\":\"\x01\"}", `{"inner":{"name":"a","name":"b"}}`, `{"list":[1]}`, `[]`, ``,
	} {
		f.Add([]byte(in))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var got, want claims
		if direct(raw, reflect.ValueOf(&got).Elem()) != nil {
			return
		}
		if err := byTree(raw, reflect.ValueOf(&want).Elem()); err != nil {
			t.Fatalf("decoded directly, and refused by a tree: %v", err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("directly and by a tree (-tree +directly):\n%s", diff)
		}
	})
}
