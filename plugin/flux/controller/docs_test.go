package controller

import (
	"os"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// TestDocsTellOfEveryMetric: people alert on them.
func TestDocsTellOfEveryMetric(t *testing.T) {
	data, err := os.ReadFile("../../../docs/flux.md")
	must(t, err)
	m, err := NewMetrics(prometheus.NewRegistry())
	must(t, err)
	all := make(chan *prometheus.Desc, 100)
	for _, c := range []prometheus.Collector{m.approved, m.verdicts, m.seconds, m.writes, m.repairs, m.anyway} {
		c.Describe(all)
	}
	close(all)
	told := 0
	for d := range all {
		_, rest, _ := strings.Cut(d.String(), `fqName: "`)
		name, _, _ := strings.Cut(rest, `"`)
		told++
		if !strings.Contains(string(data), "`"+name) {
			t.Errorf("docs/flux.md does not tell of the metric %s", name)
		}
	}
	if told != 6 {
		t.Errorf("got %d metrics, want 6", told)
	}
}
