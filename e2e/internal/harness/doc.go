// Package harness runs a real control plane (etcd, kube-apiserver and
// kube-controller-manager), the backstop's replicas and a real Argo CD on
// loopback for the end-to-end tests, with a Git repository, an image registry
// and a redis beside them.
//
// A test begins with New, which makes its Env (a folder, processes and servers
// that end with the test), and StartCluster, or with SharedCluster if it lets no
// part of the cluster die. What runs as a process is a Component, which may be
// stopped, killed and started again. See README.md of the module for a tour.
//
// Nothing here skips: what is missing is a failure, so that a green run means
// that the real things ran.
package harness
