package harness

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
)

// Sink takes what Flux's controllers, and the gate, send to
// notification-controller.
type Sink struct {
	URL string

	mu  sync.Mutex
	all []Notification
}

// Notification is one of Flux's events.
type Notification struct {
	InvolvedObject      struct{ Kind, Namespace, Name string }
	Severity            string
	Reason              string
	Message             string
	Metadata            map[string]string
	ReportingController string
}

func startSink(e *Env) *Sink {
	e.T.Helper()
	s := &Sink{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		var n Notification
		if err == nil {
			err = json.Unmarshal(data, &n)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all = append(s.all, n)
		w.WriteHeader(http.StatusAccepted)
	}))
	e.T.Cleanup(server.Close)
	s.URL = server.URL + "/"
	return s
}

// Notifications returns what a controller has sent about an object.
func (s *Sink) Notifications(controller, kind, namespace, name string) []Notification {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.all), func(n Notification) bool {
		o := n.InvolvedObject
		return n.ReportingController != controller || o.Kind != kind || o.Namespace != namespace || o.Name != name
	})
}
