package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
)

// pair is a line of a recorded file: what plugin/projection's TestInvariance
// reads.
type pair struct {
	Server   string         `json:"server"`
	Document int            `json:"document"`
	Outcome  string         `json:"outcome"`
	Field    string         `json:"field,omitempty"`
	Sent     map[string]any `json:"sent"`
	Stored   map[string]any `json:"stored"`
}

// record writes what was sent and what is stored, one file for each of the
// corpus and one line for each document that the server accepted.
func record(dir, server string, rows []*row) error {
	files := map[string]*bytes.Buffer{}
	for _, r := range rows {
		if r.stored == nil {
			continue
		}
		name := strings.ReplaceAll(strings.TrimSuffix(r.path, filepath.Ext(r.path)), "/", "-") + ".json"
		if files[name] == nil {
			files[name] = &bytes.Buffer{}
		}
		enc := json.NewEncoder(files[name])
		enc.SetEscapeHTML(false)
		if err := enc.Encode(pair{server, r.document, r.outcome, r.field, r.sent, withoutRecords(r.stored)}); err != nil {
			return err
		}
	}
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(dir, name), b.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// withoutRecords leaves out what the server says of every object and no
// projection looks at, so that recording again changes little.
func withoutRecords(obj map[string]any) map[string]any {
	return withoutMetadata(obj, "managedFields", "uid", "creationTimestamp")
}

// withoutMetadata copies an object without some members of its metadata.
func withoutMetadata(obj map[string]any, names ...string) map[string]any {
	meta, ok := obj["metadata"].(map[string]any)
	if !ok {
		return obj
	}
	out := make(map[string]any, len(obj))
	for k, v := range obj {
		out[k] = v
	}
	kept := make(map[string]any, len(meta))
	for k, v := range meta {
		kept[k] = v
	}
	for _, n := range names {
		delete(kept, n)
	}
	out["metadata"] = kept
	return out
}
