package main

import (
	"crypto/ed25519"
	"encoding/json"
	"testing"

	"github.com/syncgate/syncgate/plugin/internal/manifest"
	"github.com/syncgate/syncgate/plugin/projection"
)

// BenchmarkDecision shows where the time of one decision goes.
func BenchmarkDecision(b *testing.B) {
	f, err := newFixture()
	if err != nil {
		b.Fatal(err)
	}
	_, docs, err := f.signed(1)
	if err != nil {
		b.Fatal(err)
	}
	objects, err := manifest.Parse(docs[0], "bench")
	if err != nil {
		b.Fatal(err)
	}
	message := make([]byte, 700)
	signature, public := ed25519.Sign(f.private, message), f.private.Public().(ed25519.PublicKey)
	for name, run := range map[string]func() error{
		"floor-decode": func() error { var v map[string]any; return json.Unmarshal(docs[0], &v) },
		"floor-verify": func() error { ed25519.Verify(public, message, signature); return nil },
		"decode":       func() error { _, err := manifest.Parse(docs[0], "bench"); return err },
		"project":      func() error { _, err := projection.Project(objects[0].Tree); return err },
		"decide":       func() error { return f.decide(objects[0]) },
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(docs[0])))
			b.ReportAllocs()
			for b.Loop() {
				if err := run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
