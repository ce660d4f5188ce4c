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
	case first == "", first == "bin", first == "sbin", first == "usr", strings.HasPrefix(first, "lib"), first == "nix", first == "proc":
		return true
	case (first == "app" || first == "opt" || first == "root") && len(parts) == 1: // all of it, where an application or a login is
		return true
	case first == "var" && len(parts) > 2 && parts[1] == "spool":
		return parts[2] == "cron"
	case first == "var":
		return len(parts) == 1 || len(parts) == 2 && parts[1] == "spool"
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

var etcFiles = []string{ // sorted
	"alternatives", "bash.bashrc", "environment", "group", "init.d", "nsswitch.conf", "pam.d", "passwd", "perl", "php", "pki", "shadow", "ssh", "ssl",
}
