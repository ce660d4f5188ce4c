package main

import (
	"bytes"
	"os"
	"testing"
)

func TestTheShapesAreThoseOfTheAPIVersionsInGoMod(t *testing.T) {
	got, err := os.ReadFile("../../schema_gen.go")
	if err != nil {
		t.Fatal(err)
	}
	want, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("schema_gen.go is stale: run go generate ./plugin/projection")
	}
}
