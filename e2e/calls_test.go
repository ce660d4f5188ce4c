//go:build e2e

package e2e

// Whom the API server asks about what: a sample of the agreement between the
// generated conditions and the projection, which plugin/projection tests at
// length, on a real server (acceptance line 2 of the webhook).

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// callsPolicy judges one namespace, and beside what is always judged the kinds
// that policy may name.
const callsPolicy = `scope:
  admission:
    namespaces: {include: [%s]}
    kinds: [Endpoints, EndpointSlice]
`

// calls are the questions of one user, about the specimens.
type calls struct {
	*harness.Cluster
	t        *testing.T
	binaries harness.Binaries
	recorder *harness.Recorder
	ns       string
	user     *harness.Cluster
	pairs    []pair
	rejected map[string]int // by kind: what the API server itself refused
}

// pair is what an object was and became, and whether the webhook was asked.
type pair struct {
	kind, path, how string
	old, object     map[string]any
	asked           bool
}

// most is how many changes of one specimen are tried.
const most = 60

func TestTheAPIServerAsksWhenGatedFieldsMayDiffer(t *testing.T) {
	c := &calls{Cluster: harness.SharedCluster(t), t: t, rejected: map[string]int{}}
	c.binaries = harness.Build(c.Env)
	c.ns = c.NewNamespace("calls")
	for _, kind := range customKinds {
		c.Apply([]byte(definition(kind)))
		t.Cleanup(func() {
			c.Kubectl(nil, "delete", "customresourcedefinition", plural(kind)+"."+gatewayAPI, "--wait=false")
		})
	}
	for _, kind := range customKinds {
		c.Kubectl(nil, "wait", "--for=condition=Established", "customresourcedefinition/"+plural(kind)+"."+gatewayAPI, "--timeout=60s")
	}
	c.Apply([]byte("{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: calls}, value: 1}"))
	t.Cleanup(func() { c.Kubectl(nil, "delete", "priorityclass", "calls") })
	c.Kubectl(nil, "create", "serviceaccount", "robot", "--namespace", c.ns)

	signer := harness.NewSigner(c.Env, c.binaries, "release")
	policy := harness.NewPolicy(c.Env, "policy", harness.BasicPolicy("release")+fmt.Sprintf(callsPolicy, c.ns), signer)
	c.recorder = harness.StartRecorder(c.Cluster)
	c.recorder.Install(harness.WebhookConfiguration(c.Env, c.binaries, policy.Path()))
	c.user = c.As("e2e:caller", "system:masters")

	for _, s := range specimens() {
		c.create(s)
	}
	for _, s := range specimens() {
		c.change(s)
	}
	c.debug()
	t.Run("changes of every field", func(t *testing.T) { c.on(t).judge() })
	t.Run("what nobody is asked about", func(t *testing.T) { c.on(t).free() })
}

// on is the calls for a subtest.
func (c *calls) on(t *testing.T) *calls {
	view := *c
	view.Cluster, view.t = c.Cluster.On(t), t
	return &view
}

// asked reports whether the user's last request was asked about.
func (c *calls) asked() bool {
	return slices.ContainsFunc(c.recorder.Take(), func(r harness.Review) bool {
		return r.Request.UserInfo.Username == "e2e:caller"
	})
}

func (c *calls) client(s specimen) dynamic.ResourceInterface {
	return c.user.Client().Resource(s.resource).Namespace(c.ns)
}

func (s specimen) decode(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(s.manifest), &u.Object); err != nil {
		t.Fatalf("%s: %v", s.resource.Resource, err)
	}
	return u
}

// create makes a specimen: a pair, too, whose old object is none.
func (c *calls) create(s specimen) {
	c.t.Helper()
	u := s.decode(c.t)
	c.recorder.Take()
	created, err := c.client(s).Create(context.Background(), u, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatalf("creating %s %s: %v", u.GetKind(), u.GetName(), err)
	}
	c.pairs = append(c.pairs, pair{kind: u.GetKind(), path: "(created)", object: created.Object, asked: c.asked()})
}

// change tries changes of a specimen, one field at a time, as dry runs.
func (c *calls) change(s specimen) {
	c.t.Helper()
	ctx := context.Background()
	live, err := c.client(s).Get(ctx, s.decode(c.t).GetName(), metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	kind := live.GetKind()
	for _, m := range sample(mutations(live.Object)) {
		u := &unstructured.Unstructured{Object: m.object}
		if !s.custom {
			u.SetResourceVersion("") // a controller may have written its status
		}
		c.recorder.Take()
		updated, err := c.client(s).Update(ctx, u, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			if strings.Contains(err.Error(), "webhook") {
				c.t.Errorf("%s: %s %s: %v", kind, m.how, m.path, err)
			}
			c.rejected[kind]++
			continue
		}
		c.pairs = append(c.pairs, pair{kind, m.path, m.how, live.Object, updated.Object, c.asked()})
	}
}

// sample is every ordinary change, and of the others most, spread over the
// object: what all have in common stands together.
func sample(all []mutation) []mutation {
	stride := max(1, len(all)/most)
	var out []mutation
	for i, m := range all {
		if i%stride == 0 || ordinaryChange(m.path) != other {
			out = append(out, m)
		}
	}
	return out
}

// debug adds a container to the running Pod.
func (c *calls) debug() {
	c.t.Helper()
	ctx, pods := context.Background(), c.user.Client().Resource(harness.Pods).Namespace(c.ns)
	live, err := pods.Get(ctx, "calls", metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	c.recorder.Take()
	patch := fmt.Appendf(nil, `{"spec":{"ephemeralContainers":[{"name":"debug","image":%q,"targetContainerName":"web"}]}}`, harness.Image("debug:1"))
	patched, err := pods.Patch(ctx, "calls", types.StrategicMergePatchType, patch, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}, "ephemeralcontainers")
	if err != nil {
		c.t.Fatal(err)
	}
	c.pairs = append(c.pairs, pair{"Pod", "(ephemeral container)", "with", live.Object, patched.Object, c.asked()})
}

// gated returns the leaves of objects in the categories that the policy
// requires, as the program under test sees them.
func (c *calls) gated(objects []map[string]any) []string {
	c.t.Helper()
	var stream bytes.Buffer
	for i, o := range objects {
		o = maps.Clone(o)
		if o["kind"] == "ControllerRevision" { // refused in any application, whatever it holds
			data, _ := o["data"].(map[string]any)
			o = map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": o["metadata"], "spec": data["spec"]}
		}
		metadata := maps.Clone(o["metadata"].(map[string]any))
		metadata["name"] = fmt.Sprintf("n%06d", i)
		delete(metadata, "managedFields")
		o["metadata"] = metadata
		data, err := json.Marshal(o)
		if err != nil {
			c.t.Fatal(err)
		}
		fmt.Fprintf(&stream, "---\n%s\n", data)
	}
	dir := c.Mkdir("pairs")
	if err := os.WriteFile(filepath.Join(dir, "pairs.yaml"), stream.Bytes(), 0o600); err != nil {
		c.t.Fatal(err)
	}
	var list []struct {
		Subject string
		Fields  []struct {
			Category, Path string
			Value          any
		}
	}
	out := c.Run(dir, nil, c.binaries.Syncgate, "fields", "--output=json")
	if err := json.Unmarshal(out, &list); err != nil {
		c.t.Fatal(err)
	}
	leaves := make([]string, len(objects))
	for _, o := range list {
		var n int
		if _, err := fmt.Sscanf(o.Subject[strings.LastIndex(o.Subject, "/")+1:], "n%06d", &n); err != nil {
			c.t.Fatalf("subject %q: %v", o.Subject, err)
		}
		for _, f := range o.Fields {
			if f.Category != "service" {
				leaves[n] += fmt.Sprintf("%s %s = %v\n", f.Category, f.Path, f.Value)
			}
		}
	}
	return leaves
}

// other are changes that are not ordinary. Where they are not gated, a question
// too many is the price of short conditions.
const other = "other"

// ordinaryChange names what must never be asked about, where it is not gated.
func ordinaryChange(path string) string {
	for _, c := range []struct{ name, pattern string }{
		{"replicas", `^spec\.replicas$`},
		{"resources", `\.resources(\.|$)`},
		{"labels", `(^|\.)metadata\.labels(\[|$)`},
		{"annotations", `(^|\.)metadata\.annotations(\[|$)`},
		{"env values", `\.env\[GREETING\](\.value)?$`},
	} {
		if regexp.MustCompile(c.pattern).MatchString(path) {
			return c.name
		}
	}
	return other
}

// judge compares what was asked with what differs.
func (c *calls) judge() {
	t := c.t
	objects := make([]map[string]any, 0, 2*len(c.pairs))
	for _, p := range c.pairs {
		old := p.old
		if old == nil { // nothing gated
			old = map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{}}
		}
		objects = append(objects, old, p.object)
	}
	leaves := c.gated(objects)
	type count struct{ pairs, differ, missed, equal, needless int }
	counts, free, needless := map[string]*count{}, map[string][2]int{}, map[string]bool{}
	for i, p := range c.pairs {
		n := counts[p.kind]
		if n == nil {
			n = &count{}
			counts[p.kind] = n
		}
		n.pairs++
		where := fmt.Sprintf("%s: %s %s", p.kind, p.how, p.path)
		if leaves[2*i] != leaves[2*i+1] {
			n.differ++
			if !p.asked {
				n.missed++
				t.Errorf("%s: nobody was asked: %s", where, cmp.Diff(leaves[2*i], leaves[2*i+1]))
			}
			continue
		}
		n.equal++
		class := ordinaryChange(p.path)
		of := free[class]
		of[1]++
		if p.asked {
			n.needless++
			of[0]++
			needless[where] = true
			if class != other {
				t.Errorf("%s: asked without need (%s)", where, class)
			}
		}
		free[class] = of
	}
	var all count
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		n := counts[kind]
		t.Logf("%-22s %3d pairs (%d more refused by the API server): %3d differ, %d missed; %3d do not, %d of them asked",
			kind, n.pairs, c.rejected[kind], n.differ, n.missed, n.equal, n.needless)
		all.pairs, all.differ, all.missed, all.equal, all.needless = all.pairs+n.pairs, all.differ+n.differ, all.missed+n.missed, all.equal+n.equal, all.needless+n.needless
	}
	t.Logf("%d kinds, %d pairs: %d differ, %d missed; %d do not, %d of them asked", len(counts), all.pairs, all.differ, all.missed, all.equal, all.needless)
	for _, class := range slices.Sorted(maps.Keys(free)) {
		t.Logf("asked without need: %d of %d, %s", free[class][0], free[class][1], class)
	}
	for _, where := range slices.Sorted(maps.Keys(needless)) {
		t.Logf("asked without need: %s", where)
	}
	for _, class := range []string{"replicas", "resources", "labels", "annotations", "env values"} {
		if free[class][1] == 0 {
			t.Errorf("no pair for %s", class)
		}
	}
	if all.differ < 200 || len(counts) < len(specimens())-2 { // two kinds have two
		t.Errorf("too small a sample: %d pairs differ, %d kinds", all.differ, len(counts))
	}
}

// free are writes that never concern the webhook: subresources, and kinds that
// are not gated.
func (c *calls) free() {
	t := c.t
	ctx, dry := context.Background(), []string{metav1.DryRunAll}
	n := 0
	check := func(what string, err error) {
		t.Helper()
		n++
		asked := c.recorder.Take()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		for _, r := range asked {
			if r.Request.UserInfo.Username == "e2e:caller" {
				t.Errorf("%s: asked %s", what, r)
			}
		}
	}
	for _, s := range specimens() {
		kind, name := types.MergePatchType, s.decode(t).GetName()
		patch := func(what, patch string, subresource ...string) {
			t.Helper()
			_, err := c.client(s).Patch(ctx, name, kind, []byte(patch), metav1.PatchOptions{DryRun: dry}, subresource...)
			check(what+" of "+s.resource.Resource+"/"+name, err)
		}
		if s.scales {
			patch("scale", `{"spec":{"replicas":7}}`, "scale")
		}
		switch s.resource.Resource {
		case "deployments", "statefulsets", "daemonsets", "replicasets", "replicationcontrollers":
			patch("status", `{"status":{"observedGeneration":1}}`, "status")
		case "pods":
			patch("status", `{"status":{"message":"x"}}`, "status")
			kind = types.StrategicMergePatchType
			patch("resize", `{"spec":{"containers":[{"name":"web","resources":{"requests":{"cpu":"150m"}}}]}}`, "resize")
		case "services", "ingresses":
			if name != "plain" {
				patch("status", `{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.9"}]}}}`, "status")
			}
		}
		if !s.custom {
			patch("nothing", `{}`)
		}
	}
	for _, args := range [][]string{
		{"create", "configmap", "free"}, {"create", "secret", "generic", "free"}, {"create", "serviceaccount", "free"},
		{"create", "service", "clusterip", "free", "--tcp=80"}, {"create", "quota", "free"}, {"create", "poddisruptionbudget", "free", "--selector=a=b", "--min-available=1"},
		{"create", "token", "robot"}, {"delete", "pod", "calls", "--dry-run=server"}, {"delete", "deployment", "calls", "--dry-run=server"}, {"delete", "rolebinding", "calls", "--dry-run=server"},
	} {
		r := c.user.TryKubectl(nil, append(args, "--namespace", c.ns)...)
		var err error
		if r.Status != 0 {
			err = fmt.Errorf("%s", r.Stderr)
		}
		check(strings.Join(args, " "), err)
	}
	t.Logf("%d writes of subresources and of what is not gated: asked about 0", n)
}
