package webhook

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/syncgate/syncgate/plugin/admission"
	"github.com/syncgate/syncgate/plugin/gate"
)

// Limits of one request and of all at a time.
const (
	// MaxBody bounds a review, in bytes: the API server's own limit is 3 MiB for
	// an object, and an update carries two.
	MaxBody = 8 << 20
	// maxInFlight bounds the bodies that are held at once, in bytes; a decoded
	// tree takes several times as much.
	maxInFlight = 32 << 20
	// deadline is how long one request may take, below TimeoutSeconds: an answer
	// that says what is wrong beats the API server's timeout.
	deadline = (admission.TimeoutSeconds - 1) * time.Second
)

// Handler answers AdmissionReviews.
type Handler struct {
	loader  *Loader
	metrics *Metrics
	log     *slog.Logger
	now     func() time.Time
	replica string
	memory  *semaphore.Weighted
}

// NewHandler returns a handler that judges by the loader's newest State.
func NewHandler(l *Loader, m *Metrics, log *slog.Logger) *Handler {
	name, err := os.Hostname()
	if err != nil {
		name = "unknown"
	}
	return &Handler{loader: l, metrics: m, log: log, now: time.Now, replica: name + "/" + strconv.Itoa(os.Getpid()), memory: semaphore.NewWeighted(maxInFlight)}
}

// ServeHTTP answers one review. Whatever is wrong with it is a refusal, or, if
// it cannot even be told what was asked, an HTTP error, which the API server
// with failurePolicy Fail takes for one.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := h.now()
	if r.URL.Path != admission.ValidatePath && r.URL.Path != admission.GuardPath {
		h.fail(w, http.StatusNotFound, "no such path")
		return
	}
	body, code, err := h.read(w, r)
	if err != nil {
		h.fail(w, code, err.Error())
		return
	}
	defer h.memory.Release(weight(len(body)))
	q, err := parseReview(body)
	if err != nil {
		if q.UID == "" {
			h.fail(w, http.StatusBadRequest, err.Error())
			return
		}
		v := denied(gate.Sentence{Items: []gate.Item{{Reason: gate.ObjectMalformed, Text: err.Error(), Fix: "change the object that was sent"}}})
		h.answer(w, q, v, start)
		return
	}
	s := h.loader.State()
	var v Verdict
	if r.URL.Path == admission.GuardPath {
		v = s.guard(q)
	} else {
		v = s.decide(q, start.Unix())
	}
	h.answer(w, q, v, start)
}

// read returns the body, whose memory it has acquired.
func (h *Handler) read(w http.ResponseWriter, r *http.Request) (body []byte, code int, err error) {
	if r.Method != http.MethodPost {
		return nil, http.StatusMethodNotAllowed, errors.New("want POST")
	}
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/json" {
		return nil, http.StatusUnsupportedMediaType, errors.New("want Content-Type application/json")
	}
	if r.ContentLength > MaxBody {
		return nil, http.StatusRequestEntityTooLarge, errors.New("the review is too large")
	}
	// A client that sends its body slowly is cut off before the API server
	// gives up on us.
	if err := http.NewResponseController(w).SetReadDeadline(time.Now().Add(deadline)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil, http.StatusInternalServerError, err
	}
	size := int64(MaxBody)
	if r.ContentLength >= 0 {
		size = weight(int(r.ContentLength))
	}
	ctx, cancel := context.WithTimeout(r.Context(), deadline)
	defer cancel()
	if err := h.memory.Acquire(ctx, size); err != nil {
		return nil, http.StatusServiceUnavailable, errors.New("too many reviews at once")
	}
	if r.ContentLength >= 0 {
		body = make([]byte, r.ContentLength)
		_, err = io.ReadFull(r.Body, body)
	} else {
		body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	}
	if err != nil {
		h.memory.Release(size)
		code = http.StatusBadRequest
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			code = http.StatusRequestEntityTooLarge
		}
		return nil, code, errors.New("the body cannot be read")
	}
	h.memory.Release(size - weight(len(body)))
	return body, 0, nil
}

// weight is what a body of n bytes takes of the memory for all.
func weight(n int) int64 { return int64(max(n, 1)) }

func (h *Handler) fail(w http.ResponseWriter, code int, text string) {
	h.metrics.malformed.Inc()
	h.log.Warn("not answered", "code", code, "reason", text)
	http.Error(w, text, code)
}

func (h *Handler) answer(w http.ResponseWriter, q request, v Verdict, start time.Time) {
	out := response{UID: q.UID, Allowed: v.Allowed, AuditAnnotations: audit(v)}
	if !v.Allowed {
		out.Status = &status{Status: "Failure", Message: v.Message, Reason: "Forbidden", Code: http.StatusForbidden, Details: h.probed(q)}
	}
	out.Warnings = warnings(v)
	data, err := out.encode()
	if err != nil {
		h.fail(w, http.StatusInternalServerError, "the answer cannot be encoded")
		return
	}
	h.metrics.observe(q, v, h.now().Sub(start))
	h.record(q, v)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	if _, err := w.Write(data); err != nil {
		h.log.Warn("answer not sent", "uid", q.UID, "error", err.Error())
	}
}

// record writes one line for what a person may have to know: a refusal, and
// what passed only by exception. Never a body.
func (h *Handler) record(q request, v Verdict) {
	level, message := slog.LevelInfo, ""
	switch {
	case !v.Allowed:
		message = "denied"
	case v.How == Warned, v.How == SwitchedOff:
		level, message = slog.LevelWarn, "allowed by exception"
	case exceptional(v.Uses):
		level, message = slog.LevelWarn, "allowed by an exceptional receipt"
	default:
		return
	}
	args := []any{"how", string(v.How), "uid", q.UID, "operation", q.Operation, "kind", q.Kind, "namespace", q.Namespace, "name", q.Name,
		"user", q.User, "dryRun", q.DryRun, "code", string(v.Reason), "sentence", v.Message}
	if v.Note != "" {
		args = append(args, "note", v.Note)
	}
	for _, u := range v.Uses {
		args = append(args, "receipt", u.ID, "issuer", u.Issuer, "keyID", u.KeyID)
	}
	h.log.Log(context.Background(), level, message, args...)
}

// exceptional reports whether a receipt counted only by an exception: a
// break-glass key, or grace.
func exceptional(uses []gate.Use) bool {
	for _, u := range uses {
		if u.BreakGlass || u.Grace {
			return true
		}
	}
	return false
}

// warnings are shown by kubectl to who sent the request. The API server cuts each
// at 256 characters once those of one request have more than 4096.
func warnings(v Verdict) []string {
	var out []string
	switch v.How {
	case Warned:
		out = append(out, v.Message)
	case SwitchedOff:
		out = append(out, "syncgate is "+v.Note+"; otherwise: "+v.Message)
	}
	for _, u := range v.Uses {
		switch {
		case u.BreakGlass:
			out = append(out, "syncgate: allowed by break-glass receipt "+u.ID+" (issuer "+u.Issuer+")")
		case u.Grace:
			out = append(out, "syncgate: receipt "+u.ID+" (issuer "+u.Issuer+") has expired and counts by grace alone: sign anew")
		}
	}
	return out
}

// audit are the annotations of the audit event; the API server puts the name of
// the webhook before each key.
func audit(v Verdict) map[string]string {
	out := map[string]string{"how": string(v.How)}
	if v.Reason != "" {
		out["code"] = string(v.Reason)
	}
	if v.Note != "" {
		out["note"] = v.Note
	}
	if len(v.Uses) == 0 {
		return out
	}
	var ids, issuers, keys []string
	for _, u := range v.Uses {
		ids, issuers, keys = append(ids, u.ID), append(issuers, u.Issuer), append(keys, u.KeyID)
		if u.BreakGlass {
			out["break-glass"] = "true"
		}
		if u.Grace {
			out["grace"] = "true"
		}
	}
	out["receipt"], out["issuer"], out["key-id"] = strings.Join(ids, " "), strings.Join(issuers, " "), strings.Join(keys, " ")
	return out
}

// ProbeAnnotation marks a request by which "syncgate doctor" finds out who
// answers: the refusal then says which replica it is and what it has loaded.
const ProbeAnnotation = "syncgate.io/doctor"

func isProbe(q request) bool {
	meta, _ := q.Object["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	return annotations[ProbeAnnotation] != nil
}

// probed is what a refusal says to a doctor. Key IDs and hashes are no secrets.
func (h *Handler) probed(q request) *details {
	if !isProbe(q) {
		return nil
	}
	s := h.loader.State()
	d := &details{Causes: []cause{{"Replica", h.replica}, {"PolicyHash", s.policy.Hash()}}}
	for _, id := range s.policy.KeyIDs() {
		d.Causes = append(d.Causes, cause{"KeyID", id})
	}
	if err := h.loader.Failed(); err != nil {
		d.Causes = append(d.Causes, cause{"ReloadFailed", gate.ASCII(err.Error())})
	}
	return d
}
