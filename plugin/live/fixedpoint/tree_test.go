package fixedpoint

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCompareNamesWhereTwoTreesDiffer(t *testing.T) {
	for _, tt := range []struct {
		name, before, after string
		want                []string
	}{
		{"nothing", `{"a":[{"name":"x","b":1}]}`, `{"a":[{"b":1,"name":"x"}]}`, nil},
		{"a value", `{"a":{"b":1}}`, `{"a":{"b":2}}`, []string{"a.b"}},
		{"a member more and one fewer", `{"a":1}`, `{"b":1}`, []string{"a", "b"}},
		{"items by name", `{"a":[{"name":"x"},{"name":"y","b":1}]}`, `{"a":[{"name":"y","b":2},{"name":"x"}]}`, []string{"a[y].b"}},
		{"an item more", `{"a":[{"name":"x"}]}`, `{"a":[{"name":"x"},{"name":"y"}]}`, []string{"a[y]"}},
		{"items by place", `{"a":[1,2]}`, `{"a":[1,3,4]}`, []string{"a[#1]", "a[#2]"}},
		{"two of one name", `{"a":[{"name":"x","b":1},{"name":"x","b":2}]}`, `{"a":[{"name":"x","b":1},{"name":"x","b":3}]}`, []string{"a[#1].b"}},
		{"another type", `{"a":{"b":1}}`, `{"a":"b"}`, []string{"a"}},
		{"a key that is no word", `{"a":{"x.y/z":1}}`, `{"a":{"x.y/z":2}}`, []string{`a["x.y/z"]`}},
	} {
		var before, after any
		if err := json.Unmarshal([]byte(tt.before), &before); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(tt.after), &after); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range compare("", before, after) {
			got = append(got, c.path)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}
