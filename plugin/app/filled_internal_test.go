package app

import (
	"strings"
	"testing"
)

func TestValuesThatNoConfigMapHolds(t *testing.T) {
	if err := fits(map[string]string{"k": strings.Repeat("x", maxValues-1)}); err != nil {
		t.Errorf("just within: %v", err)
	}
	if err := fits(map[string]string{"k": strings.Repeat("x", maxValues), "kk": ""}); err == nil || !strings.Contains(err.Error(), "split the Kustomization") {
		t.Errorf("just beyond: got error %v", err)
	}
}
