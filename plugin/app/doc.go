// Package app takes one application from a directory to a verdict: render,
// pin, stamp receipts, evaluate. The Argo CD plugin, the command line and the
// Flux gate run these same steps, so that a laptop and the cluster see the
// same digests and the same refusal.
//
// What stops the whole application (a render that fails, prints nothing, or
// holds an object twice) ends Build early; what is wrong with single objects is
// collected, so that one message tells all of it.
package app
