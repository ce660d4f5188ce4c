package webhook

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/syncgate/syncgate/plugin/projection"
)

// Metrics of the webhook (docs/webhook.md lists them).
type Metrics struct {
	registry  *prometheus.Registry
	requests  *prometheus.CounterVec
	duration  prometheus.Histogram
	malformed prometheus.Counter
	receipts  *prometheus.CounterVec
	reload    prometheus.Gauge
	files     *prometheus.GaugeVec
	loaded    *prometheus.GaugeVec
	serial    prometheus.Gauge
	expires   prometheus.Gauge
}

// NewMetrics returns metrics in a registry of their own.
func NewMetrics() *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "syncgate_admission_requests_total",
			Help: "Reviews answered, by operation, kind, how they were answered, and the code of a refusal."}, []string{"operation", "kind", "how", "code"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "syncgate_admission_duration_seconds",
			Help: "Time from a review's first byte to its answer.", Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1, 4}}),
		malformed: prometheus.NewCounter(prometheus.CounterOpts{Name: "syncgate_admission_malformed_total",
			Help: "Requests that were no review and got an HTTP error, which refuses."}),
		receipts: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "syncgate_admission_exceptional_receipts_total",
			Help: "Receipts that counted only by an exception: break-glass or grace."}, []string{"exception", "issuer"}),
		reload: prometheus.NewGauge(prometheus.GaugeOpts{Name: "syncgate_reload_failed",
			Help: "1 while the newest policy, keys, revocations or off-switches cannot be loaded and older ones are in force."}),
		files: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "syncgate_reload_failed_file",
			Help: "1 for each file that cannot be loaded."}, []string{"file"}),
		loaded: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "syncgate_policy_info",
			Help: "1 for the policy that is in force, by the hash of all its files."}, []string{"hash"}),
		serial: prometheus.NewGauge(prometheus.GaugeOpts{Name: "syncgate_revocation_list_serial",
			Help: "Serial of the revocation list that is in force; 0 without one."}),
		expires: prometheus.NewGauge(prometheus.GaugeOpts{Name: "syncgate_certificate_expiry_timestamp_seconds",
			Help: "When the serving certificate expires."}),
	}
	m.registry.MustRegister(m.requests, m.duration, m.malformed, m.receipts, m.reload, m.files, m.loaded, m.serial, m.expires,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Handler serves the metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

func (m *Metrics) observe(q request, v Verdict, d time.Duration) {
	m.requests.WithLabelValues(operationLabel(q.Operation), kindLabel(q), string(v.How), string(v.Reason)).Inc()
	m.duration.Observe(d.Seconds())
	for _, u := range v.Uses {
		switch {
		case u.BreakGlass:
			m.receipts.WithLabelValues("break-glass", u.Issuer).Inc()
		case u.Grace:
			m.receipts.WithLabelValues("grace", u.Issuer).Inc()
		}
	}
}

// loadedState shows what is in force.
func (m *Metrics) loadedState(l *Loader) {
	m.reload.Set(0)
	if l.Failed() != nil {
		m.reload.Set(1)
	}
	m.files.Reset()
	for _, file := range l.FailedFiles() {
		m.files.WithLabelValues(file).Set(1)
	}
	p := l.State().policy
	m.loaded.Reset()
	m.loaded.WithLabelValues(p.Hash()).Set(1)
	serial, _ := p.RevocationSerial()
	m.serial.Set(float64(serial))
}

// Labels never hold what a client chose freely: they would grow without end.
func kindLabel(q request) string {
	if projection.Known(q.Group, q.Kind) {
		return q.Kind
	}
	return "other"
}

func operationLabel(op string) string {
	switch op {
	case "CREATE", "UPDATE", "DELETE":
		return op
	}
	return "other"
}
