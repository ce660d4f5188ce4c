// Package webhook is the backstop: it answers the API server's AdmissionReviews
// with the same decision that render makes, from files alone. It never changes
// an object, never reaches the network, and denies whatever it cannot judge
// (docs/webhook.md).
package webhook
