//go:build e2e

package e2e

import (
	"os"
	"testing"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }
