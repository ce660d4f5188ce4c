package application

import (
	"path"

	"github.com/syncgate/syncgate/plugin/internal/manifest"
)

// fluxGroup is the API group of Flux's Kustomization; that of kustomize's own
// is kustomize.config.k8s.io.
const fluxGroup = "kustomize.toolkit.fluxcd.io"

const noFlux = "is applied by Flux after kustomize, and is not known here: put it into the kustomization"

func isKustomization(o manifest.Object) bool {
	return o.Group() == fluxGroup && o.Kind() == "Kustomization"
}

// kustomization reads the spec of a Flux Kustomization. Flux decrypts Secrets
// after this; what is gated of them is not encrypted.
func (s *Source) kustomization(o manifest.Object, spec *fields) {
	s.flux = true
	s.App.Name = o.Name()
	s.App.Path = path.Clean(spec.text("path"))
	ref := spec.object("sourceRef")
	s.App.Repository = ref.text("name")
	ref.skip("kind", "namespace", "apiVersion")
	ref.done()
	spec.refuse(noFlux, "targetNamespace", "namePrefix", "nameSuffix", "patches", "patchesStrategicMerge", "patchesJson6902",
		"images", "components", "postBuild", "commonMetadata", "buildMetadata")
	spec.refuse("would delete objects before a change of them is refused", "force")
	spec.skip("interval", "retryInterval", "timeout", "prune", "suspend", "wait", "dependsOn", "serviceAccountName", "kubeConfig",
		"healthChecks", "healthCheckExprs", "deletionPolicy", "decryption", "ignoreMissingComponents", "validation")
	spec.done()
}
