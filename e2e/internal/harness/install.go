package harness

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// CABundle is the base64 of the certificate of the authority that signs the
// servers' certificates, as a clientConfig's caBundle wants it.
func (c *Cluster) CABundle() string { return base64.StdEncoding.EncodeToString(c.plane.authority.pem) }

// install stores webhook configurations (YAML or JSON, several documents) as
// they are, except that every webhook is at base, with the path of its URL or
// service, and trusts our authority. It returns when the API server goes by
// them. In a shared cluster they go when the test ends.
func (c *Cluster) install(config []byte, base string) {
	c.T.Helper()
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(config), 4096)
	for {
		var u unstructured.Unstructured
		err := decoder.Decode(&u.Object)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			c.T.Fatalf("decoding webhook configuration: %v", err)
		}
		if len(u.Object) == 0 {
			continue
		}
		kind := strings.ToLower(u.GetKind())
		if kind != "validatingwebhookconfiguration" && kind != "mutatingwebhookconfiguration" {
			c.T.Fatalf("installing a %q: only webhook configurations are", u.GetKind())
		}
		webhooks := Maps(&u, "webhooks")
		list := make([]any, len(webhooks))
		for i, w := range webhooks {
			w["clientConfig"] = map[string]any{"url": base + clientPath(w), "caBundle": c.CABundle()}
			list[i] = w
		}
		u.Object["webhooks"] = list
		if err := c.put(WebhookConfigs.GroupVersion().WithResource(kind+"s"), &u); err != nil {
			c.T.Fatalf("installing %s %s: %v", u.GetKind(), u.GetName(), err)
		}
		if c.shared != nil {
			c.T.Cleanup(func() { c.Kubectl(nil, "delete", kind, u.GetName(), "--ignore-not-found") })
		}
	}
	c.WaitAdmission()
}

// put stores a cluster-scoped object in the place of what is there. (An apply
// would leave what others have added, such as the conditions of a Patch.)
func (c *Cluster) put(r schema.GroupVersionResource, u *unstructured.Unstructured) error {
	ctx := context.Background()
	_, err := c.client.Resource(r).Create(ctx, u, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	present, err := c.client.Resource(r).Get(ctx, u.GetName(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	u.SetResourceVersion(present.GetResourceVersion())
	_, err = c.client.Resource(r).Update(ctx, u, metav1.UpdateOptions{})
	return err
}

// clientPath is the path of a webhook's clientConfig.
func clientPath(webhook map[string]any) string {
	u := &unstructured.Unstructured{Object: webhook}
	if path := Field(u, "clientConfig", "service", "path"); path != "" {
		return path
	}
	parsed, err := url.Parse(Field(u, "clientConfig", "url"))
	if err != nil {
		return ""
	}
	return parsed.Path
}

// WaitAdmission waits until the API server goes by every webhook configuration
// as it is now stored, changed and deleted ones included. (It learns of them in
// the order of their writes. So we write another, and poll with dry runs until
// that one counts.) ValidatingAdmissionPolicies take another way: poll with
// WaitRefused.
func (c *Cluster) WaitAdmission() {
	c.T.Helper()
	for _, kind := range []string{"Validating", "Mutating"} {
		c.passBarrier(kind)
	}
}

// passBarrier makes a configuration with a webhook that nothing answers and that
// only one request asks, and waits until that request is refused.
func (c *Cluster) passBarrier(kind string) {
	c.T.Helper()
	const namespace = "kube-public"
	name := c.plane.unique("barrier")
	data := fmt.Appendf(nil, `apiVersion: admissionregistration.k8s.io/v1
kind: %[1]sWebhookConfiguration
metadata: {name: %[2]s}
webhooks:
- name: %[2]s.e2e.test
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  timeoutSeconds: 1
  clientConfig: {url: "https://127.0.0.1:1/"}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps], scope: Namespaced}]
  matchConditions: [{name: barrier, expression: "request.namespace == '%[3]s' && request.name == '%[2]s'"}]
`, kind, name, namespace)
	var configuration unstructured.Unstructured
	if err := yaml.Unmarshal(data, &configuration.Object); err != nil {
		c.T.Fatal(err)
	}
	resource := WebhookConfigs.GroupVersion().WithResource(strings.ToLower(kind) + "webhookconfigurations")
	ctx, configurations := context.Background(), c.plane.client.Resource(resource)
	if _, err := configurations.Create(ctx, &configuration, metav1.CreateOptions{}); err != nil {
		c.T.Fatal(err)
	}
	probe := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name},
	}}
	c.Eventually("admission configuration", func() (string, bool) {
		_, err := c.plane.client.Resource(ConfigMaps).Namespace(namespace).Create(ctx, probe,
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return fmt.Sprint(err), err != nil && strings.Contains(err.Error(), name+".e2e.test")
	})
	if err := configurations.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		c.T.Fatal(err)
	}
}

// WaitRefused polls with server-side dry runs until manifests are refused with
// a text that contains each of want, and returns the text.
func (c *Cluster) WaitRefused(manifests []byte, want ...string) string {
	c.T.Helper()
	var text string
	c.Eventually(fmt.Sprintf("refusal with %q", want), func() (string, bool) {
		r := c.TryApply(manifests, "--dry-run=server")
		text = string(r.Stderr)
		return fmt.Sprintf("status %d: %s", r.Status, text), r.Status != 0 && ContainsAll(text, want)
	})
	return text
}
