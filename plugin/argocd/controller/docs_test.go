package controller

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// TestDocsTellOfEveryFindingAndMetric: people alert on them.
func TestDocsTellOfEveryFindingAndMetric(t *testing.T) {
	data, err := os.ReadFile("../../../docs/argocd.md")
	must(t, err)
	for _, code := range findingCodes() {
		if !strings.Contains(string(data), "\n| `"+code+"` | ") {
			t.Errorf("docs/argocd.md does not tell of the finding %s", code)
		}
	}
	m, err := NewMetrics(prometheus.NewRegistry())
	must(t, err)
	all := make(chan *prometheus.Desc, 100)
	for _, c := range []prometheus.Collector{m.findings, m.warned, m.apps, m.refreshes, m.pending, m.published, m.removed} {
		c.Describe(all)
	}
	close(all)
	var names []string
	for d := range all {
		_, rest, _ := strings.Cut(d.String(), `fqName: "`)
		name, _, _ := strings.Cut(rest, `"`)
		if !strings.Contains(string(data), "`"+name) {
			t.Errorf("docs/argocd.md does not tell of the metric %s", name)
		}
		names = append(names, name)
	}
	if !slices.Contains(names, "syncgate_argocd_refreshes_total") {
		t.Errorf("metrics: got %q", names)
	}
}
