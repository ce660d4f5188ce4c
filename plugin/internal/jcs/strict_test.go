package jcs

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type inner struct {
	Name string `json:"name,omitempty"`
}

type outer struct {
	Issuer string            `json:"iss"`
	Count  int64             `json:"count"`
	Yes    bool              `json:"yes,omitempty"`
	List   []string          `json:"list"`
	Items  []inner           `json:"items"`
	One    *inner            `json:"one"`
	Leaves map[string]string `json:"leaves"`
	Free   any               `json:"free"`
}

func TestStrictDecodesEveryKindOfMember(t *testing.T) {
	var got outer
	err := Strict([]byte(` {"iss":"a","count":-7,"yes":true,"list":["x"],"items":[{"name":"n"},{}],"one":{"name":"o"},"leaves":{"p":"q"},"free":[1]} `), &got)
	if err != nil {
		t.Fatal(err)
	}
	want := outer{
		Issuer: "a", Count: -7, Yes: true, List: []string{"x"}, Items: []inner{{"n"}, {}},
		One: &inner{"o"}, Leaves: map[string]string{"p": "q"}, Free: got.Free,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("value (-want +got):\n%s", diff)
	}
}

func TestStrictRefusesWhatEncodingJSONWouldTake(t *testing.T) {
	for _, tc := range []struct {
		name, in, want string
	}{
		{"another case", `{"ISS":"a"}`, `unknown member "ISS"`},
		{"another case beside the right one", `{"iss":"a","Iss":"b"}`, `unknown member "Iss"`},
		{"a letter that folds to s", `{"i\u017fs":"a"}`, "unknown member"},
		{"the field's Go name", `{"Issuer":"a"}`, "unknown member"},
		{"unknown member inside", `{"one":{"x":1}}`, `member "one": unknown member "x"`},
		{"the first unknown member in order", `{"zz":1,"b":1,"y":1}`, `unknown member "b"`},
		{"unknown member in a list", `{"items":[{},{"Name":"n"}]}`, `item 1: unknown member "Name"`},
		{"duplicate member", `{"iss":"a","iss":"a"}`, "duplicate member"},
		{"null for a string", `{"iss":null}`, "got null, want a string"},
		{"null for a pointer", `{"one":null}`, "got null, want an object"},
		{"null for a list", `{"list":null}`, "got null, want an array"},
		{"a number for a string", `{"iss":1}`, "got a number, want a string"},
		{"a string for a number", `{"count":"1"}`, "got a string, want an integer"},
		{"a boolean for a list", `{"list":true}`, "got a boolean, want an array"},
		{"an array for a map", `{"leaves":[]}`, "got an array, want an object"},
		{"an object for a boolean", `{"yes":{}}`, "got an object, want a boolean"},
		{"the first wrong member of a map in order", `{"leaves":{"c":1,"b":1,"a":"x"}}`, `member "b"`},
		{"a fraction", `{"count":1.0}`, "plain integer"},
		{"an exponent", `{"count":1e3}`, "plain integer"},
		{"negative zero", `{"count":-0}`, "plain integer"},
		{"past 2^53-1", `{"count":9007199254740992}`, "2^53-1"},
		{"past 64 bits", `{"count":99999999999999999999}`, "plain integer"},
		{"not an object", `[]`, "got an array, want an object"},
		{"trailing data", `{}{}`, "trailing data"},
		{"empty", ``, "unexpected end"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := outer{Issuer: "before"}
			err := Strict([]byte(tc.in), &got)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
			if diff := cmp.Diff(outer{Issuer: "before"}, got); diff != "" {
				t.Errorf("changed on an error (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStrictRefusesTargetsThatItCannotFill(t *testing.T) {
	var nowhere *outer
	var untagged struct{ Name string }
	var float struct {
		F float64 `json:"f"`
	}
	for _, tc := range []struct {
		name string
		v    any
	}{
		{"not a pointer", outer{}},
		{"a nil pointer", nowhere},
		{"a field without a tag", &untagged},
		{"a field of another type", &float},
	} {
		err := Strict([]byte(`{"f":1}`), tc.v)
		if err == nil {
			t.Errorf("%s: got no error", tc.name)
		}
	}
}
