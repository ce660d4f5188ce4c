package webhook

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync/atomic"
)

// health answers probes and people.
type health struct {
	loader   *Loader
	certs    *certificates
	draining atomic.Bool
}

// mux serves /healthz (answering: for liveness and readiness probes), /readyz
// (answering, and by the newest files), /statusz (what is loaded) and /metrics.
func (h *health) mux(m *Metrics) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", h.healthz)
	mux.HandleFunc("GET /readyz", h.readyz)
	mux.HandleFunc("GET /statusz", h.statusz)
	mux.Handle("GET /metrics", m.Handler())
	return mux
}

// healthz is what a Service goes by. A bad new file must not turn it red: every
// replica has the same file, and all of them would leave the Service at once
// while each still judges by the last good one.
func (h *health) healthz(w http.ResponseWriter, _ *http.Request) {
	if h.draining.Load() {
		http.Error(w, "draining", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// readyz is what people and alerts go by.
func (h *health) readyz(w http.ResponseWriter, r *http.Request) {
	if err := h.loader.Failed(); err != nil {
		http.Error(w, "not loaded, and of these files what was loaded before is in force: "+err.Error(), http.StatusServiceUnavailable)
		return
	}
	if text := h.certs.failed.Load(); text != nil {
		http.Error(w, "certificate not loaded; the one of before is in use: "+*text, http.StatusServiceUnavailable)
		return
	}
	h.healthz(w, r)
}

func (h *health) statusz(w http.ResponseWriter, _ *http.Request) {
	s := h.loader.State()
	serial, _ := s.policy.RevocationSerial()
	out := map[string]any{
		"policyHash": s.policy.Hash(), "keyIDs": s.policy.KeyIDs(), "environments": s.policy.Environments(),
		"revocationSerial": serial, "off": s.switches.All(), "certificateExpires": h.certs.expires(),
	}
	if err := h.loader.Failed(); err != nil {
		out["reloadFailed"], out["failedFiles"] = err.Error(), h.loader.FailedFiles()
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out) // a client that has gone needs no answer
}
