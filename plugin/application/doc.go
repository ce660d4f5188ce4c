// Package application reads what the manifest of an Argo CD Application or a
// Flux Kustomization says about one application: where it is, how it is
// rendered, what policy may match on. With it a laptop computes the digests
// that the cluster will. A setting that it cannot honour is refused by name.
package application
