// Command syncgate is the command line and the Argo CD plugin.
package main

import (
	"os"
	"runtime/debug"

	"github.com/syncgate/syncgate/plugin/argocd"
	"github.com/syncgate/syncgate/plugin/cli"
)

// version is set by -ldflags "-X main.version=v1.2.3".
var version = ""

func main() {
	os.Exit(cli.Execute(cli.New(buildVersion(), argocd.NewCommand()), os.Stderr))
}

func buildVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
