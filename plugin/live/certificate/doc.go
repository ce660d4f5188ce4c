// Package certificate makes the webhook's serving certificate and keeps it
// fresh, for clusters without cert-manager (docs/webhook.md, Certificates).
//
// Each serving certificate comes with an authority of its own, whose key is
// forgotten as soon as it has signed: nothing is left that could vouch for
// another. The configuration's caBundle learns the new authority before anybody
// serves by it, and keeps those of before until they expire, so that replicas
// with the old and the new certificate are trusted side by side.
package certificate
