// Package controller is the gate for Flux: it judges what kustomize-controller
// is about to build for a Kustomization, by the same code as everywhere else,
// and lets it through in one of two ways (package hook).
//
//   - In postBuild mode it writes the ConfigMap that the Kustomization's
//     postBuild.substituteFrom requires, with the values for exactly the content
//     that it approved, and takes it away when it refuses: then
//     kustomize-controller's build fails and applies nothing. What was approved for
//     one revision may meet another one, so that the webhook has the last word.
//   - In artifact mode it publishes an ExternalArtifact of what it approved,
//     rendered, pinned and with its receipts, which is what the Kustomization names
//     as its source. When it refuses, the last approved one stays.
//
// Either way it says why on the Kustomization: the condition
// syncgate.io/Approved, an event, a notification, metrics. Whatever it cannot
// judge it refuses. It reads Kustomizations, sources and what variables come
// from; it writes its own ConfigMaps and ExternalArtifacts, the condition and
// events, and nothing else.
package controller
