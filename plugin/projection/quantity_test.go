package projection

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
)

func TestQuantitiesAreComparedByValue(t *testing.T) {
	for _, c := range []struct{ written, want string }{
		{"1", "1"}, {"1000m", "1"}, {"0.5", "0.5"}, {"500m", "0.5"}, {"+2", "2"}, {"-2k", "-2000"}, {"-0", "0"},
		{"1024Mi", "1073741824"}, {"1Gi", "1073741824"}, {"1e3", "1000"}, {"1E3", "1000"}, {"1E", "1000000000000000000"},
		{"1e-3", "0.001"}, {".5", "0.5"}, {"1.", "1"}, {"100n", "0.0000001"},
		{"0.0000000001", "0.000000001"}, {"-1e-30", "-0.000000001"}, {"9E9", "9000000000"}, {"8Ei", "9223372036854775808"},
		{"", ""}, {"x", "x"}, {"1x", "1x"}, {"1e", "1e"}, {"1e9999999", "1e9999999"}, {"1mi", "1mi"}, {"--1", "--1"}, {"1..2", "1..2"}, {"1ki", "1ki"}, {"Ki", "Ki"},
	} {
		if got := quantity(c.written); got != c.want {
			t.Errorf("%q: got %q, want %q", c.written, got, c.want)
		}
	}
}

// What the API server makes of a quantity is the same quantity here: the
// library that it uses is the second implementation.
func TestQuantitiesAreThoseOfTheAPIServer(t *testing.T) {
	numbers := []string{"0", "1", "7", "1000", "1024", "0.1", "1.5", "0.0001", "1234567.891", "9223372036854775", "-3", "+4", ".25", "5."}
	suffixes := []string{"", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "E2", "e-2", "e+1"}
	for _, n := range numbers {
		for _, suffix := range suffixes {
			written := n + suffix
			q, err := resource.ParseQuantity(written)
			if err != nil {
				t.Errorf("%q is none: %v", written, err)
				continue
			}
			if q.CmpInt64(1<<62) > 0 {
				continue // the library no longer writes these exactly
			}
			if got, want := quantity(written), quantity(q.String()); got != want {
				t.Errorf("%q is stored as %q: got %s and %s", written, q.String(), got, want)
			}
			if got := resource.MustParse(quantity(written)); got.Cmp(q) != 0 {
				t.Errorf("%q: got %s, want %s", written, got.String(), q.AsDec())
			}
		}
	}
}
