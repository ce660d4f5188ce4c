package controller

import (
	"errors"

	fluxmetrics "github.com/fluxcd/pkg/runtime/metrics"
	"github.com/prometheus/client_golang/prometheus"
)

// Metrics of the controller (docs/flux.md lists them).
type Metrics struct {
	approved  *prometheus.GaugeVec
	verdicts  *prometheus.CounterVec
	seconds   prometheus.Histogram
	writes    *prometheus.CounterVec
	repairs   *prometheus.CounterVec
	anyway    *prometheus.CounterVec
	Durations *fluxmetrics.Recorder // gotk_reconcile_duration_seconds, as of Flux's controllers
}

// NewMetrics registers the metrics.
func NewMetrics(r prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		approved: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "syncgate_flux_approved",
			Help: "1 if what the source of a gated Kustomization has now is approved, else 0."}, []string{"namespace", "name", "mode"}),
		verdicts: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "syncgate_flux_verdicts_total",
			Help: "Judgements of a Kustomization, by reason; Approved if it may be applied."}, []string{"reason"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "syncgate_flux_verdict_seconds",
			Help:    "What fetching, building and judging took.",
			Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}}),
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "syncgate_flux_writes_total",
			Help: "Writes of the gate's ConfigMaps and ExternalArtifacts."}, []string{"kind", "verb"}),
		repairs: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "syncgate_flux_repairs_total",
			Help: "Times that an ExternalArtifact of the gate, or the file behind it, was not what the gate had made it."}, []string{"what"}),
		anyway: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "syncgate_flux_applied_anyway_total",
			Help: "Contents that Flux applied of a Kustomization of postBuild mode though the gate refused them."}, []string{"namespace", "name"}),
		Durations: fluxmetrics.NewRecorder(),
	}
	all := []prometheus.Collector{m.approved, m.verdicts, m.seconds, m.writes, m.repairs, m.anyway}
	var failed error
	for _, c := range append(all, m.Durations.Collectors()...) {
		failed = errors.Join(failed, r.Register(c))
	}
	return m, failed
}

// forget takes out the series of a Kustomization.
func (m *Metrics) forget(namespace, name string) {
	of := prometheus.Labels{"namespace": namespace, "name": name}
	m.approved.DeletePartialMatch(of)
	m.anyway.DeletePartialMatch(of)
}
