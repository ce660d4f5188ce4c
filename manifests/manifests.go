// Package manifests holds what people install, for "syncgate manifests".
package manifests

import "embed"

// ArgoCD is the kustomize component that adds the sidecar to a stock
// argocd-repo-server, and one with the settings that go with it.
//
//go:embed argocd/*.yaml argocd/README.md argocd/recommended
var ArgoCD embed.FS

// ArgoCDHelm are values of Argo CD's Helm chart that do the same.
//
//go:embed argocd/helm
var ArgoCDHelm embed.FS

// ArgoCDController is the kustomize base of the controller beside Argo CD, and
// the component that makes the sidecar go by what it publishes.
//
//go:embed argocd/controller argocd/settings
var ArgoCDController embed.FS

// Flux is the kustomize base of the gate for Flux.
//
//go:embed flux
var Flux embed.FS

// Webhook is the kustomize base of the admission webhook, with a component for
// each way to come by certificates.
//
//go:embed webhook
var Webhook embed.FS

// Policies are the ValidatingAdmissionPolicies beside it. Those below static are
// of use only where an API server loads them from its own disk.
//
//go:embed policies
var Policies embed.FS

// Namespace is where all of it is installed, as the files say.
const Namespace = "syncgate-system"

// Service is the name of the webhook's Service there.
const Service = "syncgate-webhook"
