package harness

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

// AuditEvent is one answered write in the API server's audit log.
type AuditEvent struct {
	AuditID          string
	Verb             string
	RequestURI       string
	User             struct{ Username string }
	ImpersonatedUser struct{ Username string }
	ObjectRef        struct{ APIGroup, Resource, Subresource, Namespace, Name string }
	ResponseStatus   struct {
		Code            int
		Reason, Message string
	}
	// Annotations are the API server's own and, as WEBHOOK/KEY, those of the
	// webhooks that were asked.
	Annotations map[string]string
}

// Write returns "verb resource/name" or "verb resource/subresource/name".
func (a AuditEvent) Write() string {
	what := a.ObjectRef.Resource
	if a.ObjectRef.Subresource != "" {
		what += "/" + a.ObjectRef.Subresource
	}
	return a.Verb + " " + what + "/" + a.ObjectRef.Name
}

// DryRun reports whether nothing was to be stored.
func (a AuditEvent) DryRun() bool { return strings.Contains(a.RequestURI, "dryRun=All") }

// Audit returns the events that match, from the beginning of the cluster: what
// no later write can hide. The writes of nodes are not in the log, and an event
// may get there a moment after its answer (WaitAudit).
func (c *Cluster) Audit(match func(AuditEvent) bool) []AuditEvent {
	c.T.Helper()
	data, err := os.ReadFile(c.plane.audit)
	if err != nil {
		c.T.Fatal(err)
	}
	var events []AuditEvent
	for line := range strings.Lines(string(data)) {
		if !strings.HasSuffix(line, "\n") {
			break // still being written
		}
		var event AuditEvent
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			c.T.Fatalf("parsing %s: %v", c.plane.audit, err)
		}
		if match(event) {
			events = append(events, event)
		}
	}
	return events
}

// WaitAudit waits until an event matches and returns the last that does.
func (c *Cluster) WaitAudit(what string, match func(AuditEvent) bool) AuditEvent {
	c.T.Helper()
	var events []AuditEvent
	c.Eventually("audit event of "+what, func() (string, bool) {
		events = c.Audit(match)
		return fmt.Sprintf("%d events", len(events)), len(events) > 0
	})
	return events[len(events)-1]
}

// Writes returns "verb resource/name" for each write that a user made in a
// namespace since the beginning, dry runs left out.
func (c *Cluster) Writes(user, namespace string) []string {
	c.T.Helper()
	var writes []string
	for _, a := range c.Audit(func(a AuditEvent) bool {
		return a.User.Username == user && a.ObjectRef.Namespace == namespace && !a.DryRun()
	}) {
		writes = append(writes, a.Verb+" "+a.ObjectRef.Resource+"/"+a.ObjectRef.Name)
	}
	return slices.Clip(writes)
}
