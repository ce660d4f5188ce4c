// Package controller looks after the Applications whose manifests the plugin
// judges. Argo CD asks the plugin when it renders, keeps the answer for a day,
// and shows a plugin no annotation; whether a source names the plugin at all is
// for whoever writes the Application. So the controller
//
//   - publishes what Applications ask for in annotations, as files that the
//     sidecar mounts (package settings);
//   - refreshes, at a limited rate, the Applications of which a cached render
//     would be answered differently now: the policy, a key, the revocation list,
//     an annotation or an off-switch has changed;
//   - says on the Application where the gate is not in its path: an event, the
//     annotation syncgate.io/status, a metric;
//   - says there, too, what would be refused where policy only warns.
//
// It renders nothing and lets nothing pass: what it judges, it judges for people
// to read. If it is down, what is cached stays longer, and new Applications wait
// for their settings.
package controller
