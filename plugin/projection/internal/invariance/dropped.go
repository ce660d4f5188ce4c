package main

import (
	"slices"
	"strconv"
	"strings"
)

// withoutDropped copies what was sent without the members that the server says
// it does not know, and those that it drops without a word. Whatever else is
// lost is a value that the table should call absence.
func withoutDropped(sent map[string]any, warnings []string) map[string]any {
	var unknown []string
	for _, w := range warnings {
		quoted, ok := strings.CutPrefix(w, "unknown field ")
		if path, err := strconv.Unquote(quoted); ok && err == nil {
			unknown = append(unknown, path)
		}
	}
	return copyWithout("", sent, func(path, member string, v any) bool {
		return slices.Contains(unknown, path) || silent(member, v)
	}).(map[string]any)
}

// silent tells what a 1.37 API server drops without a word: fields of features
// that are off by default, and a claim's source that is none it knows.
func silent(member string, v any) bool {
	source, _ := v.(map[string]any)
	switch member {
	case "bindMountOptions", "derivedAttributes", "evictionResponders", "schedulingGroup":
		return true
	case "dataSource":
		switch text(source, "apiGroup") + "/" + text(source, "kind") {
		case "/PersistentVolumeClaim", "snapshot.storage.k8s.io/VolumeSnapshot":
			return false
		}
		return true
	case "dataSourceRef":
		return text(source, "namespace") != ""
	}
	return false
}

// copyWithout copies a tree without some members; paths are written as the API
// server does, "spec.volumes[0].csi".
func copyWithout(path string, v any, drop func(path, member string, v any) bool) any {
	switch t := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(t))
		for k, x := range t {
			if at := strings.TrimPrefix(path+"."+k, "."); !drop(at, k, x) {
				out[k] = copyWithout(at, x, drop)
			}
		}
		return out
	case []any:
		out := make([]any, len(t))
		for i, x := range t {
			out[i] = copyWithout(path+"["+strconv.Itoa(i)+"]", x, drop)
		}
		return out
	}
	return v
}
