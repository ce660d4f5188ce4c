// Package harness runs a real control plane (etcd, kube-apiserver and
// kube-controller-manager) and a real Argo CD on loopback for the end-to-end
// tests, with a Git repository, an image registry and a redis beside them.
//
// Everything belongs to one Env, which a test makes with New: its folder, its
// processes and its servers end with the test. Nothing here skips: what is
// missing is a failure, so that a green run means that the real things ran.
package harness
