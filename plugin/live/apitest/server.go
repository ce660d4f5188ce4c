// Package apitest is as much of an API server as the tests of plugin/live need:
// objects in memory, dry runs, and a hook where admission would be.
package apitest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// User is who every request is made by, unless it impersonates.
const User = "alice"

// Request is one write, real or not.
type Request struct {
	Method, Path string // Path is that of the collection for a POST
	DryRun       bool
	As           string // user that is impersonated
	ContentType  string
	Object       map[string]any
}

// Status refuses a request.
type Status struct {
	Code    int
	Reason  string
	Message string
	Causes  []any // {"reason": ..., "message": ...}
}

// Server is the server. Objects are keyed by their path.
type Server struct {
	URL string

	mu       sync.Mutex
	objects  map[string]map[string]any
	requests []Request
	admit    func(Request) *Status // may change the request's object
	warning  string
}

// resources are the kinds that are served, by the path of their version.
var resources = map[string][]resource{
	"/api/v1":                    {{"pods", "Pod", true}, {"services", "Service", true}, {"configmaps", "ConfigMap", true}, {"namespaces", "Namespace", false}, {"podtemplates", "PodTemplate", true}, {"secrets", "Secret", true}},
	"/apis/apps/v1":              {{"deployments", "Deployment", true}, {"deployments/scale", "Scale", true}, {"replicasets", "ReplicaSet", true}, {"statefulsets", "StatefulSet", true}},
	"/apis/argoproj.io/v1alpha1": {{"applications", "Application", true}, {"appprojects", "AppProject", true}},
	"/apis/batch/v1":             {{"jobs", "Job", true}, {"cronjobs", "CronJob", true}},
	"/apis/networking.k8s.io/v1": {{"ingresses", "Ingress", true}, {"networkpolicies", "NetworkPolicy", true}},
	"/apis/rbac.authorization.k8s.io/v1": {
		{"roles", "Role", true}, {"rolebindings", "RoleBinding", true}, {"clusterroles", "ClusterRole", false}, {"clusterrolebindings", "ClusterRoleBinding", false},
	},
	"/apis/coordination.k8s.io/v1":         {{"leases", "Lease", true}},
	"/apis/kustomize.toolkit.fluxcd.io/v1": {{"kustomizations", "Kustomization", true}},
	"/apis/source.toolkit.fluxcd.io/v1":    {{"externalartifacts", "ExternalArtifact", true}},
	"/apis/admissionregistration.k8s.io/v1": {
		{"validatingwebhookconfigurations", "ValidatingWebhookConfiguration", false}, {"mutatingwebhookconfigurations", "MutatingWebhookConfiguration", false},
		{"validatingadmissionpolicies", "ValidatingAdmissionPolicy", false}, {"validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", false},
		{"mutatingadmissionpolicies", "MutatingAdmissionPolicy", false}, {"mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", false},
	},
}

type resource struct {
	name, kind string
	namespaced bool
}

// New serves until the test ends.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{objects: map[string]map[string]any{}}
	h := httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(h.Close)
	s.URL = h.URL
	return s
}

// Config is what a client needs.
func (s *Server) Config() *rest.Config { return &rest.Config{Host: s.URL} }

// Put stores an object (JSON or YAML's JSON subset) under the path of its
// collection, such as "/api/v1/namespaces/shop/configmaps". Its kind may be left
// out.
func (s *Server) Put(collection, object string) {
	var tree map[string]any
	if err := json.Unmarshal([]byte(object), &tree); err != nil {
		panic(fmt.Sprintf("%s: %v", object, err))
	}
	if kind, _ := kindOf(collection); tree["kind"] == nil {
		tree["apiVersion"], tree["kind"] = "v1", kind
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[collection+"/"+name(tree)] = tree
}

// Get returns an object by its path, nil if it is not there.
func (s *Server) Get(path string) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[path]
}

// Delete forgets an object.
func (s *Server) Delete(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, path)
}

// Admit sets what is asked about each write.
func (s *Server) Admit(f func(Request) *Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.admit = f
}

// Warn sends a warning with every write from now on.
func (s *Server) Warn(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.warning = text
}

// Requests returns the writes so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	if list, ok := resources[path]; ok && r.Method == http.MethodGet {
		s.discovery(w, path, list)
		return
	}
	if strings.HasSuffix(path, "/selfsubjectreviews") {
		user := r.Header.Get("Impersonate-User")
		if user == "" {
			user = User
		}
		answer(w, http.StatusCreated, map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview", "status": map[string]any{"userInfo": map[string]any{"username": user}}})
		return
	}
	kind, collection := kindOf(path)
	switch {
	case kind == "":
		refuse(w, &Status{Code: http.StatusNotFound, Reason: "NotFound", Message: "no such resource"})
	case r.Method == http.MethodGet && collection:
		s.list(w, path, kind)
	case r.Method == http.MethodGet:
		if t := s.Get(path); t != nil {
			answer(w, http.StatusOK, t)
			return
		}
		refuse(w, &Status{Code: http.StatusNotFound, Reason: "NotFound", Message: "not found"})
	default:
		s.write(w, r, path)
	}
}

func (s *Server) write(w http.ResponseWriter, r *http.Request, path string) {
	q := Request{Method: r.Method, Path: path, DryRun: r.URL.Query().Get("dryRun") == "All", As: r.Header.Get("Impersonate-User"), ContentType: r.Header.Get("Content-Type")}
	if err := json.NewDecoder(r.Body).Decode(&q.Object); err != nil {
		refuse(w, &Status{Code: http.StatusBadRequest, Reason: "BadRequest", Message: err.Error()})
		return
	}
	s.mu.Lock()
	s.requests = append(s.requests, q)
	admit, warning := s.admit, s.warning
	s.mu.Unlock()
	if admit != nil {
		if status := admit(q); status != nil {
			refuse(w, status)
			return
		}
	}
	if warning != "" {
		w.Header().Add("Warning", fmt.Sprintf("299 - %q", warning))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Method == http.MethodPost {
		if g, _ := meta(q.Object)["generateName"].(string); name(q.Object) == "" && g != "" {
			meta(q.Object)["name"] = g + "xxxxx"
		}
		path += "/" + name(q.Object)
		if s.objects[path] != nil {
			refuse(w, &Status{Code: http.StatusConflict, Reason: "AlreadyExists", Message: "already exists"})
			return
		}
	}
	next := q.Object
	if r.Method == http.MethodPatch {
		next = clone(s.objects[path])
		if v, _ := meta(q.Object)["resourceVersion"].(string); v != "" && v != meta(next)["resourceVersion"] {
			refuse(w, &Status{Code: http.StatusConflict, Reason: "Conflict", Message: "the object has been modified"})
			return
		}
		merge(next, q.Object)
	}
	if meta(next)["uid"] == nil {
		meta(next)["uid"] = "uid-of-" + name(next)
	}
	if !q.DryRun {
		meta(next)["resourceVersion"] = fmt.Sprint(len(s.requests))
		s.objects[path] = next
	}
	answer(w, http.StatusOK, next)
}

func (s *Server) list(w http.ResponseWriter, path, kind string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	items := []any{}
	var keys []string
	for k := range s.objects {
		if rest, ok := strings.CutPrefix(k, path+"/"); ok && !strings.Contains(rest, "/") {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	for _, k := range keys {
		items = append(items, s.objects[k])
	}
	answer(w, http.StatusOK, map[string]any{"apiVersion": "v1", "kind": kind + "List", "metadata": map[string]any{}, "items": items})
}

func (s *Server) discovery(w http.ResponseWriter, path string, list []resource) {
	var out []any
	for _, r := range list {
		out = append(out, map[string]any{"name": r.name, "kind": r.kind, "namespaced": r.namespaced, "verbs": []string{"create"}})
	}
	gv := strings.TrimPrefix(strings.TrimPrefix(path, "/apis/"), "/api/")
	answer(w, http.StatusOK, map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": gv, "resources": out})
}

// kindOf returns the kind that a path is about, and whether it is a collection.
func kindOf(path string) (kind string, collection bool) {
	for prefix, list := range resources {
		rest, ok := strings.CutPrefix(path, prefix+"/")
		if !ok {
			continue
		}
		parts := strings.Split(rest, "/")
		if parts[0] == "namespaces" && len(parts) > 2 {
			parts = parts[2:]
		}
		for _, r := range list {
			if r.name == parts[0] {
				return r.kind, len(parts) == 1
			}
		}
	}
	return "", false
}

func answer(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v) // a client that has gone is its test's to report
}

func refuse(w http.ResponseWriter, s *Status) {
	answer(w, s.Code, map[string]any{
		"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": s.Code, "reason": s.Reason, "message": s.Message,
		"details": map[string]any{"causes": s.Causes},
	})
}

func meta(t map[string]any) map[string]any {
	m, ok := t["metadata"].(map[string]any)
	if !ok {
		m = map[string]any{}
		if t != nil {
			t["metadata"] = m
		}
	}
	return m
}

func name(t map[string]any) string {
	s, _ := meta(t)["name"].(string)
	return s
}

func clone(t map[string]any) map[string]any {
	out := map[string]any{}
	data, err := json.Marshal(t)
	if err != nil {
		panic(err)
	}
	if err := json.Unmarshal(data, &out); err != nil {
		panic(err)
	}
	return out
}

// merge is RFC 7386.
func merge(into, patch map[string]any) {
	for k, v := range patch {
		child, isMap := v.(map[string]any)
		there, both := into[k].(map[string]any)
		switch {
		case v == nil:
			delete(into, k)
		case isMap && both:
			merge(there, child)
		default:
			into[k] = v
		}
	}
}
