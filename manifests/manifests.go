// Package manifests holds what people install, for "syncgate manifests".
package manifests

import "embed"

// ArgoCD is the kustomize component that adds the sidecar to a stock
// argocd-repo-server.
//
//go:embed argocd
var ArgoCD embed.FS
