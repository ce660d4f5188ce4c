package flux

import (
	"errors"
	"fmt"
	"strings"

	"github.com/syncgate/syncgate/plugin/internal/manifest"
	"github.com/syncgate/syncgate/plugin/render/internal/kustomize"
	"sigs.k8s.io/kustomize/api/resource"
)

// decryptKey on an object, with the value disabled, keeps Flux from decrypting
// it.
const decryptKey = "kustomize.toolkit.fluxcd.io/decrypt"

// checkEncrypted refuses an object that Flux decrypts into something that the
// gate has not seen: SOPS encrypts values of any object, an image or a kind too.
// In a Secret what is encrypted must be data, of which nothing is gated. It looks
// at the object before variables are substituted, which is when Flux decrypts.
// Whether the Kustomization has spec.decryption does not matter: whoever edits it
// can set that when the objects are approved and published.
func checkEncrypted(r *resource.Resource) error {
	if r.Field("sops").IsNilOrEmpty() {
		return nil
	}
	tree, err := kustomize.Tree(r)
	if err != nil {
		return err
	}
	o := manifest.Object{Tree: tree}
	if sops, ok := tree["sops"].(map[string]any); !ok || sops["mac"] == nil {
		return nil
	}
	meta, _ := o.Tree["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	if v, _ := annotations[decryptKey].(string); strings.EqualFold(v, "disabled") {
		return nil
	}
	if o.Group() != "" || o.Kind() != "Secret" {
		return errors.New("is encrypted: Flux decrypts it after the gate has judged it, or once spec.decryption is set, so that only a Secret may be")
	}
	for k, v := range o.Tree {
		if k != "sops" && k != "data" && k != "stringData" && hasEncrypted(v) {
			return fmt.Errorf("has an encrypted %.60q: Flux decrypts it after the gate has judged it, or once spec.decryption is set; encrypt data and stringData only (encrypted_regex: ^(data|stringData)$)", k)
		}
	}
	return nil
}

// hasEncrypted looks for a value that SOPS has encrypted.
func hasEncrypted(v any) bool {
	switch v := v.(type) {
	case string:
		return strings.HasPrefix(v, "ENC[")
	case map[string]any:
		for _, x := range v {
			if hasEncrypted(x) {
				return true
			}
		}
	case []any:
		for _, x := range v {
			if hasEncrypted(x) {
				return true
			}
		}
	}
	return false
}
