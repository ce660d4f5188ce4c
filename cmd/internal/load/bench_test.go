package main

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/syncgate/syncgate/plugin/webhook"
)

// BenchmarkReview judges the reviews of the generator without a connection.
func BenchmarkReview(b *testing.B) {
	f, err := newFixture(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	l, err := webhook.NewLoader(webhook.Source{Policy: f.policy})
	if err != nil {
		b.Fatal(err)
	}
	h := webhook.NewHandler(l, webhook.NewMetrics(), slog.New(slog.NewTextHandler(io.Discard, nil)))
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		r := httptest.NewRequest(http.MethodPost, "/validate", bytes.NewReader(f.reviews[n%len(f.reviews)]))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if !bytes.Contains(w.Body.Bytes(), allowed) {
			b.Fatal(w.Body)
		}
	}
}

// BenchmarkDecodeOnly is what the handler to compare with does.
func BenchmarkDecodeOnly(b *testing.B) {
	f, err := newFixture(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		var review struct {
			Request struct {
				UID    string         `json:"uid"`
				Object map[string]any `json:"object"`
			} `json:"request"`
		}
		if err := json.Unmarshal(f.reviews[n%len(f.reviews)], &review); err != nil {
			b.Fatal(err)
		}
	}
}
