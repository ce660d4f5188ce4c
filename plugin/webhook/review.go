package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/syncgate/syncgate/plugin/admission"
	"github.com/syncgate/syncgate/plugin/internal/jcs"
)

// The version of the API that is spoken.
const (
	reviewVersion = "admission.k8s.io/v1"
	reviewKind    = "AdmissionReview"
)

// request is what an AdmissionReview asks. Object and Old are raw trees; nil if
// the review has none.
type request struct {
	UID         string
	Operation   string
	Group       string
	Kind        string
	Namespace   string
	Name        string
	Subresource string
	User        string
	Groups      []string
	DryRun      bool
	Object, Old map[string]any
}

// errReview says that a body is no AdmissionReview. It never quotes the body.
var errReview = errors.New("not an AdmissionReview of admission.k8s.io/v1 with a request")

// parseReview decodes a review, objects included, in one strict pass: a
// duplicate member anywhere is an error, so that nobody else can read another
// object out of the same bytes. The strings of the trees share the body; the
// request's own, which are remembered and logged, do not. When the request's uid could be read it is
// returned even with an error, so that the answer can carry it.
func parseReview(body []byte) (request, error) {
	v, err := jcs.DecodeShared(body)
	if err != nil {
		return request{}, fmt.Errorf("decoding the review: %w", err)
	}
	root, _ := v.(map[string]any)
	req, ok := root["request"].(map[string]any)
	if !ok {
		return request{}, errReview
	}
	f := fields{tree: req}
	r := request{UID: f.text("uid"), Operation: f.text("operation"), Namespace: f.text("namespace"), Name: f.text("name"), Subresource: f.text("subResource")}
	if root["apiVersion"] != reviewVersion || root["kind"] != reviewKind {
		return request{UID: r.UID}, errReview
	}
	kind := f.child("kind")
	r.Group, r.Kind = kind.text("group"), kind.text("kind")
	user := f.child("userInfo")
	r.User, r.Groups = user.text("username"), user.texts("groups")
	r.DryRun = f.flag("dryRun")
	r.Object, r.Old = f.object("object"), f.object("oldObject")
	switch {
	case f.wrong != "":
		return request{UID: r.UID}, fmt.Errorf("request.%s has the wrong type", f.wrong)
	case kind.wrong != "" || user.wrong != "":
		return request{UID: r.UID}, fmt.Errorf("request: %s%s has the wrong type", kind.wrong, user.wrong)
	case r.UID == "", r.Kind == "", r.Operation == "":
		return request{UID: r.UID}, errors.New("request without uid, kind or operation")
	}
	return r, nil
}

// fields reads members of one object and remembers the first of a wrong type.
type fields struct {
	tree  map[string]any
	wrong string
}

func (f *fields) fail(name string) {
	if f.wrong == "" {
		f.wrong = name
	}
}

func (f *fields) text(name string) string {
	s, ok := f.tree[name].(string)
	if !ok && f.tree[name] != nil {
		f.fail(name)
	}
	return strings.Clone(s)
}

func (f *fields) flag(name string) bool {
	b, ok := f.tree[name].(bool)
	if !ok && f.tree[name] != nil {
		f.fail(name)
	}
	return b
}

func (f *fields) texts(name string) []string {
	list, ok := f.tree[name].([]any)
	if !ok && f.tree[name] != nil {
		f.fail(name)
	}
	var out []string
	for _, x := range list {
		s, ok := x.(string)
		if !ok {
			f.fail(name)
		}
		out = append(out, strings.Clone(s))
	}
	return out
}

func (f *fields) object(name string) map[string]any {
	m, ok := f.tree[name].(map[string]any)
	if !ok && f.tree[name] != nil {
		f.fail(name)
	}
	return m
}

func (f *fields) child(name string) *fields { return &fields{tree: f.object(name)} }

func (r request) writer() admission.Writer {
	return admission.Writer{
		User: r.User, Groups: r.Groups, Operation: r.Operation, Kind: admission.GroupKind{Group: r.Group, Kind: r.Kind},
		Namespace: r.Namespace, Name: r.Name, Subresource: r.Subresource, Mirror: admission.IsMirror(r.Object),
	}
}

// review is the answer.
type review struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Response   response `json:"response"`
}

type response struct {
	UID              string            `json:"uid"`
	Allowed          bool              `json:"allowed"`
	Status           *status           `json:"status,omitempty"`
	AuditAnnotations map[string]string `json:"auditAnnotations,omitempty"`
	Warnings         []string          `json:"warnings,omitempty"`
}

// status is always 403 Forbidden: with force, Flux deletes the live object on
// 409, 422 and some words (docs/spec/refusal.md).
type status struct {
	Status  string   `json:"status"`
	Message string   `json:"message"`
	Reason  string   `json:"reason"`
	Details *details `json:"details,omitempty"`
	Code    int      `json:"code"`
}

type details struct {
	Causes []cause `json:"causes,omitempty"`
}

type cause struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

func (r response) encode() ([]byte, error) {
	return json.Marshal(review{reviewVersion, reviewKind, r})
}
