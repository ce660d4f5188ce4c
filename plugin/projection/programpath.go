package projection

import (
	"path"
	"sort"
	"strings"
)

// programPath reports whether a file mounted at p can change which program
// runs: where programs and libraries are found, and the files that configure
// loaders, shells, logins and trust.
func programPath(p string) bool {
	parts := strings.Split(strings.TrimPrefix(path.Clean("/"+p), "/"), "/")
	switch first := parts[0]; {
	case first == "", first == "bin", first == "sbin", first == "usr", strings.HasPrefix(first, "lib"):
		return true
	case first != "etc":
		return false
	}
	if len(parts) == 1 {
		return true
	}
	for _, prefix := range []string{"ld.so", "profile", "cron", "sudoers"} {
		if strings.HasPrefix(parts[1], prefix) {
			return true
		}
	}
	i := sort.SearchStrings(etcFiles, parts[1])
	return i < len(etcFiles) && etcFiles[i] == parts[1]
}

var etcFiles = []string{"pam.d", "passwd", "ssh", "ssl"} // sorted
