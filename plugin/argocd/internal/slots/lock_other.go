//go:build !(linux || darwin || freebsd || netbsd || openbsd)

package slots

import "os"

// Argo CD's sidecars are Linux. Elsewhere people try a render by hand, and
// every one gets the first slot.
func exclusive(*os.File) error { return nil }

func private(string) error { return nil }
