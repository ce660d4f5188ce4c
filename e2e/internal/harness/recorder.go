package harness

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Recorder is a webhook in the test process that writes down what the API server
// asks it and answers as it is told: for the conditions under which the API
// server asks at all, and to get at real reviews. Its Balancer is how it goes
// down (Close) and comes back (Open).
type Recorder struct {
	*Balancer

	cluster *Cluster
	mu      sync.Mutex
	reviews []Review
	answer  func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse
}

// Review is one question.
type Review struct {
	Raw     []byte // the AdmissionReview as it came, for Replica.Ask
	Request *admissionv1.AdmissionRequest
}

// String is "OPERATION resource/subresource namespace/name by user".
func (r Review) String() string {
	resource := r.Request.Resource.Resource
	if r.Request.SubResource != "" {
		resource += "/" + r.Request.SubResource
	}
	return fmt.Sprintf("%s %s %s/%s by %s", r.Request.Operation, resource, r.Request.Namespace, r.Request.Name, r.Request.UserInfo.Username)
}

// StartRecorder serves a recorder that allows everything until the test ends.
func StartRecorder(c *Cluster) *Recorder {
	c.T.Helper()
	r := &Recorder{cluster: c}
	r.Answer(Allow)
	r.Balancer = startBalancer(c.Env, c.serveReviews("recorder", r.review))
	return r
}

// Install is Webhooks.Install for the recorder.
func (r *Recorder) Install(config []byte) {
	r.T.Helper()
	r.cluster.install(config, r.URL())
}

// Answer says how the recorder answers from now on. The UID is filled in.
func (r *Recorder) Answer(answer func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

// Allow is an answer.
func Allow(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{Allowed: true}
}

// Deny is an answer: 403 Forbidden with a message.
func Deny(message string) func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	return func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		return &admissionv1.AdmissionResponse{Result: &metav1.Status{
			Message: message, Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden,
		}}
	}
}

// Take returns what was asked since the last Take, in the order of arrival.
func (r *Recorder) Take() []Review {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.reviews
	r.reviews = nil
	return taken
}

func (r *Recorder) review(raw []byte, request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reviews = append(r.reviews, Review{slices.Clone(raw), request})
	return r.answer(request)
}

// maxReview bounds the body of one AdmissionReview: an object is at most 1.5 MB
// in etcd, and an update carries two.
const maxReview = 8 << 20

// reviewer decides about one request. raw is the AdmissionReview as it came.
type reviewer func(raw []byte, request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse

// ServeHTTP answers one AdmissionReview.
func (decide reviewer) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	body, err := io.ReadAll(http.MaxBytesReader(rw, r.Body, maxReview))
	if err == nil {
		err = json.Unmarshal(body, &review)
	}
	if err == nil && review.Request == nil {
		err = fmt.Errorf("review without request")
	}
	if err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	response := decide(body, review.Request)
	response.UID = review.Request.UID
	review.Request, review.Response = nil, response
	rw.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(rw).Encode(review) // a lost answer is the API server's to report
}

// serveReviews serves a webhook over TLS until the test ends and returns
// "127.0.0.1:PORT".
func (c *Cluster) serveReviews(name string, decide reviewer) (address string) {
	c.T.Helper()
	cert, key := c.serverCertificate(name)
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		c.T.Fatal(err)
	}
	server := httptest.NewUnstartedServer(decide)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	server.EnableHTTP2 = true // what a real webhook speaks with the API server
	server.StartTLS()
	c.T.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// serverCertificate is one for loopback, and for the webhook's Service.
func (c *Cluster) serverCertificate(name string) (cert, key []byte) {
	c.T.Helper()
	return c.plane.authority.issue(c.T, name, nil, []string{
		"localhost", "syncgate-webhook.syncgate-system.svc",
	}, net.IPv4(127, 0, 0, 1))
}
