// Package hook is what a Flux Kustomization and the gate agree on: how the one
// asks to be gated, and how what the gate writes for it is called.
//
// A Kustomization NAME is gated in one of two ways. In artifact mode its
// spec.sourceRef is the ExternalArtifact syncgate-flux-NAME of its own
// namespace, which the gate publishes; the annotations syncgate.io/source and
// syncgate.io/path say of what. In postBuild mode its
// spec.postBuild.substituteFrom requires the ConfigMap syncgate-flux-NAME, which
// the gate writes for what it approved and takes away when it refuses:
//
//	postBuild:
//	  substituteFrom:
//	  - {kind: ConfigMap, name: syncgate-flux-shop}
//
// In postBuild mode manifests have placeholders, which kustomize-controller
// fills in. Which digest or receipts one stands for is told by where it is, so
// that its name is free but for the prefix, and stays when tags change:
//
//	metadata: {annotations: {syncgate.io/receipt: "${syncgate_receipt_web}"}}
//	...
//	image: ghcr.io/acme/web:1.5@${syncgate_pin_web}
package hook

import (
	"fmt"
	"regexp"
	"strings"
)

// Annotations of a Kustomization in artifact mode.
const (
	// SourceAnnotation names what the gate builds from: KIND/NAME or
	// KIND/NAMESPACE/NAME, of a GitRepository, OCIRepository, Bucket or
	// ExternalArtifact.
	SourceAnnotation = "syncgate.io/source"
	// PathAnnotation is the path in it, as spec.path would say it.
	PathAnnotation = "syncgate.io/path"
)

// Condition is the type of the condition in which the gate says what became of
// a Kustomization.
const Condition = "syncgate.io/Approved"

// Variables of the gate, which it alone gives a value. Latch is the key that its
// ConfigMap always has: the SHA-256 of the objects that it was written for.
const (
	Prefix        = "syncgate_"
	PinPrefix     = Prefix + "pin_"
	ReceiptPrefix = Prefix + "receipt_"
	Latch         = Prefix + "latch"
)

// namePrefix begins the names of the gate's objects for Kustomizations, and of
// no other of its objects.
const namePrefix = "syncgate-flux-"

// maxName bounds the name of a Kubernetes object, in bytes.
const maxName = 253

// Name is that of the ConfigMap and of the ExternalArtifact of a Kustomization,
// both in its own namespace.
func Name(kustomization string) (string, error) {
	name := namePrefix + kustomization
	if len(name) > maxName {
		return "", fmt.Errorf("naming the gate's object: got a name of %d bytes, want at most %d", len(kustomization), maxName-len(namePrefix))
	}
	return name, nil
}

// IsName reports whether a name is one that the gate gives, to the ConfigMap or
// ExternalArtifact of some Kustomization.
func IsName(name string) bool { return strings.HasPrefix(name, namePrefix) }

// placeholder is a bare one. What has an operator, such as a default, would give
// a value where the gate gives none.
var placeholder = regexp.MustCompile(`^\$\{(` + Prefix + `[a-z0-9_]{1,200})\}$`)

// Placeholder returns the text that stands for a variable of the gate.
func Placeholder(variable string) string { return "${" + variable + "}" }

// ParsePlaceholder returns the variable of the gate that a whole text is the
// bare placeholder of.
func ParsePlaceholder(text string) (variable string, ok bool) {
	m := placeholder.FindStringSubmatch(text)
	if m == nil {
		return "", false
	}
	return m[1], true
}

// Pin returns the variable that stands for the digest in an image reference, and
// the reference without it.
func Pin(image string) (reference, variable string, ok bool) {
	reference, digest, _ := strings.Cut(image, "@")
	variable, ok = ParsePlaceholder(digest)
	return reference, variable, ok && strings.HasPrefix(variable, PinPrefix) && len(variable) > len(PinPrefix)
}
