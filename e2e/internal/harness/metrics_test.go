package harness

import "testing"

func TestSumMetricCountsTheSeriesThatHaveTheLabels(t *testing.T) {
	const text = `# HELP calls_total What was asked.
# TYPE calls_total counter
calls_total{code="",kind="Pod"} 3
calls_total{code="a\"},\\ b",kind="Pod"} 4 1700000000000
calls_total{code="x",kind="Role"} 1.5e+01
calls_totals{kind="Pod"} 100
up 1
`
	tests := []struct {
		name   string
		metric string
		labels map[string]string
		want   float64
	}{
		{"all series", "calls_total", nil, 22},
		{"one label", "calls_total", map[string]string{"kind": "Pod"}, 7},
		{"an empty value", "calls_total", map[string]string{"code": ""}, 3},
		{"an escaped value", "calls_total", map[string]string{"code": `a"},\ b`}, 4},
		{"a label that no series has", "calls_total", map[string]string{"verb": "get"}, 0},
		{"a metric without labels", "up", nil, 1},
		{"a metric that is not there", "down", nil, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := sumMetric(text, test.metric, test.labels)
			if err != nil || got != test.want {
				t.Errorf("got %v, %v, want %v", got, err, test.want)
			}
		})
	}
	for _, text := range []string{"up x", `up{a="b" 1`, `up{a} 1`, `up{a=b} 1`} {
		if got, err := sumMetric(text+"\n", "up", nil); err == nil {
			t.Errorf("sum of %q: got %v, want an error", text, got)
		}
	}
}
