package controller

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Metrics of the controller (docs/argocd.md lists them).
type Metrics struct {
	findings  *prometheus.GaugeVec
	warned    *prometheus.GaugeVec
	apps      *prometheus.GaugeVec
	refreshes *prometheus.CounterVec
	pending   prometheus.Gauge
	published prometheus.Gauge
	removed   prometheus.Counter
}

// NewMetrics registers the metrics.
func NewMetrics(r prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		findings: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "syncgate_argocd_application_finding",
			Help: "1 for each way in which the gate is not in the path of an Application, or is asked for what it refuses."}, []string{"namespace", "name", "finding"}),
		warned: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "syncgate_argocd_would_be_refused",
			Help: "Objects of an Application that policy only warns for, by why they would be refused; Unread: those that the controller could not look at."}, []string{"namespace", "name", "reason"}),
		apps: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "syncgate_argocd_applications",
			Help: "Applications, by whether a source names the plugin."}, []string{"gated"}),
		refreshes: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "syncgate_argocd_refreshes_total",
			Help: "Hard refreshes asked for, by what had changed."}, []string{"cause"}),
		pending: prometheus.NewGauge(prometheus.GaugeOpts{Name: "syncgate_argocd_refreshes_pending",
			Help: "Hard refreshes that are due and not yet asked for."}),
		published: prometheus.NewGauge(prometheus.GaugeOpts{Name: "syncgate_argocd_settings",
			Help: "Applications whose settings are published."}),
		removed: prometheus.NewCounter(prometheus.CounterOpts{Name: "syncgate_argocd_status_removed_total",
			Help: "Times that somebody took the annotation syncgate.io/status away while it still held."}),
	}
	for _, c := range []prometheus.Collector{m.findings, m.warned, m.apps, m.refreshes, m.pending, m.published, m.removed} {
		if err := r.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}
