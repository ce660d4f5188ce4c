//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// repeats is how often each question is asked.
const repeats = 1000

// TestTheSameAnswerAlways: a thousand repeats of real reviews, on each replica,
// warm and just started, and the same sentence through the API server for a dry
// run and for the real thing.
func TestTheSameAnswerAlways(t *testing.T) {
	cluster := harness.SharedCluster(t)
	b := harness.Build(cluster.Env)
	release := harness.NewSigner(cluster.Env, b, "answers")
	policy := harness.NewPolicy(cluster.Env, "answers-policy", harness.BasicPolicy("answers"), release)
	webhooks := harness.StartWebhooks(cluster, b, 3, policy.Dir)
	ns := cluster.NewNamespace("answers")
	config := harness.WebhookConfiguration(cluster.Env, b, policy.Path())

	signed := release.Sign(policy, string(deployment("web", ns, harness.Image("web:1"), 1)), ns)
	steps := []struct{ name, manifests, want string }{
		{"create signed", signed, ""},
		{"create unsigned", string(deployment("other", ns, harness.Image("web:1"), 1)), "ReceiptMissing"},
		{"update the image", strings.ReplaceAll(signed, harness.Image("web:1"), harness.Image("web:2")), "DigestMismatch"},
		{"update with a tag alone", strings.ReplaceAll(signed, harness.Image("web:1"), "registry.example.test/web:3"), "ImageNotPinned"},
	}

	// The questions as an API server asks them.
	recorder := harness.StartRecorder(cluster)
	recorder.Install(config)
	var questions []harness.Review
	for _, s := range steps {
		for _, flags := range [][]string{{"--dry-run=server"}, nil} {
			if r := cluster.TryApply([]byte(s.manifests), flags...); r.Status != 0 {
				t.Fatalf("%s: %s", s.name, r.Stderr)
			}
			asked := recorder.Take()
			if len(asked) == 0 {
				t.Fatalf("%s %v: nobody was asked", s.name, flags)
			}
			questions = append(questions, asked[0])
		}
	}
	cluster.Kubectl(nil, "delete", "deployment", "--all", "--namespace", ns)
	recorder.Close()

	// The answers, without the uid that the API server makes up for each.
	answer := func(r *harness.Replica, q harness.Review) string {
		status, body := r.Ask("/validate", q.Raw)
		if status != 200 {
			t.Fatalf("%s: status %d: %s", q, status, body)
		}
		return strings.ReplaceAll(string(body), string(q.Request.UID), "UID")
	}
	answers := map[string]map[string]int{} // by step, dry run and real together
	var mu sync.Mutex
	for round, cold := range []bool{false, true} {
		for i, q := range questions {
			step := steps[i/2].name
			for _, r := range webhooks.Replicas {
				if cold {
					r.Kill()
					r.Start()
					r.WaitReady()
				}
				var wg sync.WaitGroup
				n := repeats
				if cold {
					n = 4 // the first one is the cold one
				}
				for range 4 {
					wg.Go(func() {
						for range n / 4 {
							a := answer(r, q)
							mu.Lock()
							if answers[step] == nil {
								answers[step] = map[string]int{}
							}
							answers[step][a]++
							mu.Unlock()
						}
					})
				}
				wg.Wait()
			}
		}
		t.Logf("round %d (cold: %t): asked", round+1, cold)
	}
	for _, s := range steps {
		if len(answers[s.name]) != 1 {
			t.Errorf("%s: got %d different answers, want 1: %v", s.name, len(answers[s.name]), answers[s.name])
		}
		for a, n := range answers[s.name] {
			t.Logf("%s: %d times %.300s", s.name, n, a)
			var review struct {
				Response struct {
					Allowed bool
					Status  struct{ Message string }
				}
			}
			if err := json.Unmarshal([]byte(a), &review); err != nil {
				t.Fatal(err)
			}
			if review.Response.Allowed != (s.want == "") || !strings.Contains(review.Response.Status.Message, s.want) {
				t.Errorf("%s: got %+v, want %q", s.name, review.Response, s.want)
			}
		}
	}

	// Through the API server.
	webhooks.Install(config)
	for _, s := range steps {
		texts := map[string]bool{}
		for i := range 10 {
			var flags []string
			if i%2 == 0 {
				flags = append(flags, "--dry-run=server")
			}
			webhooks.Cut() // another connection, another replica
			r := cluster.TryApply([]byte(s.manifests), flags...)
			if (r.Status == 0) != (s.want == "") {
				t.Errorf("%s %v: status %d: %s", s.name, flags, r.Status, r.Stderr)
			}
			if s.want != "" {
				texts[string(r.Stderr)] = true
			}
		}
		if s.want != "" && len(texts) != 1 {
			t.Errorf("%s: got %d different texts, want 1: %v", s.name, len(texts), texts)
		}
	}
}

// TestTwoVersionsBehindOneServiceRefuseNothingThatIsSigned: while replicas are
// replaced one after another, by another build and with another policy text,
// what is signed goes in and what is not stays out.
func TestTwoVersionsBehindOneServiceRefuseNothingThatIsSigned(t *testing.T) {
	cluster := harness.SharedCluster(t)
	b := harness.Build(cluster.Env)
	release := harness.NewSigner(cluster.Env, b, "versions")
	old := harness.NewPolicy(cluster.Env, "versions-old", harness.BasicPolicy("versions"), release)
	next := harness.NewPolicy(cluster.Env, "versions-new", harness.BasicPolicy("versions")+"help: ask us\n", release)
	webhooks := harness.StartWebhooks(cluster, b, 2, old.Dir)
	webhooks.Install(harness.WebhookConfiguration(cluster.Env, b, old.Path()))
	other := b.WebhookWith(cluster.Env, "-ldflags=-X main.build=next")
	ns := cluster.NewNamespace("versions")
	n, refused := 0, 0
	change := func() {
		t.Helper()
		for range 4 {
			n++
			image := harness.Image(fmt.Sprintf("web:%d", n))
			webhooks.Cut()
			if r := cluster.TryApply([]byte(release.SignApp(old, "versions", string(deployment("web", ns, image, 1)), ns))); r.Status != 0 {
				t.Errorf("change %d, signed: %s", n, r.Stderr)
			}
			webhooks.Cut()
			if r := cluster.TryApply(deployment("web", ns, harness.Image("evil:1"), 1), "--dry-run=server"); r.Status == 0 {
				t.Errorf("change %d, unsigned: it passed", n)
			} else {
				refused++
			}
		}
	}
	change()
	for _, r := range append([]*harness.Replica(nil), webhooks.Replicas...) {
		webhooks.Add(other, next.Dir)
		change()
		r.Stop()
		change()
	}
	webhooks.Install(harness.WebhookConfiguration(cluster.Env, b, next.Path()))
	change()
	t.Logf("%d signed changes, %d unsigned ones refused", n, refused)
}
