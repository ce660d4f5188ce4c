package projection_test

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/syncgate/syncgate/plugin/projection"
)

// The bytes below are those of the example in docs/spec/gated-fields.md.
const example = `{
  "apiVersion": "apps/v1",
  "kind": "Deployment",
  "metadata": {"name": "checkout", "namespace": "shop"},
  "spec": {
    "replicas": 3,
    "template": {
      "metadata": {"labels": {"app": "checkout"}},
      "spec": {
        "serviceAccountName": "checkout",
        "containers": [{
          "name": "web",
          "image": "registry.example/shop/checkout:1.4@sha256:7d865e959b2466918c9863afca942d0fb89d7c9ac0c99bafc3749504ded97730",
          "env": [{"name": "DB_PASSWORD", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}}],
          "resources": {"limits": {"memory": "256Mi"}},
          "securityContext": {"runAsNonRoot": true}
        }]
      }
    }
  }
}`

func Example() {
	d := json.NewDecoder(bytes.NewReader([]byte(example)))
	d.UseNumber()
	var object map[string]any
	if err := d.Decode(&object); err != nil {
		fmt.Println(err)
		return
	}
	p, err := projection.Project(object)
	if err != nil {
		fmt.Println(err)
		return
	}
	covers := []projection.Category{projection.Identity, projection.Image, projection.Secret}
	canonical, err := p.Canonical(covers)
	if err != nil {
		fmt.Println(err)
		return
	}
	digest, err := p.Digest(covers)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s\n%s\n", canonical, digest)
	// Output:
	// {"fields":{"identity":{"spec.template.spec.containers[web].image#repository":"registry.example/shop/checkout","spec.template.spec.serviceAccountName":"checkout"},"image":{"spec.template.spec.containers[web].image":"registry.example/shop/checkout:1.4@sha256:7d865e959b2466918c9863afca942d0fb89d7c9ac0c99bafc3749504ded97730"},"secret":{"spec.template.spec.containers[web].env[DB_PASSWORD].valueFrom.secretKeyRef.key":"password","spec.template.spec.containers[web].env[DB_PASSWORD].valueFrom.secretKeyRef.name":"db","spec.template.spec.containers[web].image#repository":"registry.example/shop/checkout"}},"profile":"v1"}
	// sha256:cfbe72dd7d8c0b784337bc48c6dd74ab883054aa0bd1c76b20a925ff6ea07228
}
