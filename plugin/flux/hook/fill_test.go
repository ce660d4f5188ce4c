package hook

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const receiptKey = "syncgate.io/receipt"

func tree(t *testing.T, text string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

const (
	withPlaceholders = `{"kind":"Deployment","metadata":{"name":"web","annotations":{"a":"b","syncgate.io/receipt":"${syncgate_receipt_web}"}},
		"spec":{"containers":[{"image":"web:1@${syncgate_pin_web}","args":["${other}","${syncgate_latch}"]},{"image":"side:2"}]}}`
	stripped = `{"kind":"Deployment","metadata":{"name":"web","annotations":{"a":"b"}},
		"spec":{"containers":[{"image":"web:1","args":["${other}","${syncgate_latch}"]},{"image":"side:2"}]}}`
	pinned = `{"kind":"Deployment","metadata":{"name":"web","annotations":{"a":"b","syncgate.io/receipt":"eyJ.a.b eyJ.c.d"}},
		"spec":{"containers":[{"image":"web:1@sha256:aa","args":["${other}","${syncgate_latch}"]},{"image":"side:2@sha256:bb"}]}}`
)

func TestStripLeavesWhatAPersonWrote(t *testing.T) {
	got := tree(t, withPlaceholders)
	variables, err := Strip(got, receiptKey)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(tree(t, stripped), got); diff != "" {
		t.Errorf("object (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"syncgate_pin_web", "syncgate_receipt_web"}, variables); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
}

func TestPlaceholdersThatDoNotBelongAreNamed(t *testing.T) {
	for text, want := range map[string]string{
		`{"image":"web:1@${syncgate_pin_web:-sha256:aa}"}`:                               "image is",
		`{"a":["x ${syncgate_pin_web}"]}`:                                                "a[0] is",
		`{"metadata":{"labels":{"syncgate.io/receipt":"${syncgate_receipt_a}"}}}`:        "metadata.labels.syncgate.io/receipt is",
		`{"metadata":{"annotations":{"syncgate.io/receipt":"${syncgate_pin_a}"}}}`:       "metadata.annotations.syncgate.io/receipt is",
		`{"metadata":{"annotations":{"syncgate.io/receipt":"${syncgate_receipt_a:-}"}}}`: "metadata.annotations.syncgate.io/receipt is",
		`{"data":{"${syncgate_pin_a}":"x"}}`:                                             "is a name at",
	} {
		if variables, err := Strip(tree(t, text), receiptKey); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %q, %v; want an error with %q", text, variables, err, want)
		}
	}
}

func TestFillTellsWhatVariablesStandFor(t *testing.T) {
	values := map[string]string{}
	if err := Fill(values, tree(t, withPlaceholders), tree(t, pinned), receiptKey); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"syncgate_pin_web": "sha256:aa", "syncgate_receipt_web": "eyJ.a.b eyJ.c.d"}
	if diff := cmp.Diff(want, values); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	if err := Fill(values, tree(t, strings.ReplaceAll(withPlaceholders, "_receipt_web", "_receipt_other")), tree(t, stripped+""), receiptKey); err == nil || !strings.Contains(err.Error(), "no digest is known") {
		t.Errorf("without a digest: got %v", err)
	}
	if values["syncgate_receipt_other"] != NoReceipts {
		t.Errorf("without receipts: got %q, want %q", values["syncgate_receipt_other"], NoReceipts)
	}
}

func TestAVariableHasOneSafeValue(t *testing.T) {
	for done, want := range map[string]string{
		`{"a":"web:1@sha256:aa","b":"web:2@sha256:bb"}`:                 "stands for something else",
		`{"a":"web:1@sha256:aa, evil: x","b":"web:2@sha256:aa"}`:        "could be broken",
		`{"a":"web:1@sha256:aa\nevil","b":"web:2@sha256:aa"}`:           "could be broken",
		`{"a":"web:1@sha256:aa: x","b":"web:2@sha256:aa"}`:              "could be broken",
		`{"a":"web:1@sha256:aa #x","b":"web:2@sha256:aa"}`:              "could be broken",
		`{"a":"web:1@-aa","b":"web:2@sha256:aa"}`:                       "could be broken",
		`{"a":"web:1@sha256:aa  b","b":"web:2@sha256:aa"}`:              "could be broken",
		`{"a":"web:1@${syncgate_pin_x}","b":"web:2@${syncgate_pin_x}"}`: "could be broken",
	} {
		raw := tree(t, `{"a":"web:1@${syncgate_pin_x}","b":"web:2@${syncgate_pin_x}"}`)
		if err := Fill(map[string]string{}, raw, tree(t, done), receiptKey); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", done, err, want)
		}
	}
}
