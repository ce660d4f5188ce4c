package admission

import (
	"fmt"
	"slices"
	"strings"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/policy"
	"github.com/syncgate/syncgate/plugin/projection"
)

// matchConditions of an entry. The exemption stands first and alone: one false
// condition skips the call even when another one errs, and even when the
// webhook cannot be reached, so that a scaled Deployment gets its Pods.
func (e *entry) matchConditions(a policy.Admission) []Condition {
	out := []Condition{{"not-exempt", exemption(a, e.kinds)}}
	created := fmt.Sprintf("request.operation != 'CREATE' || (%s)", e.conditions.Create)
	if e.conditions.Create != "true" {
		out = append(out, Condition{"created-with-gated-fields", created})
	}
	always := alwaysAsked(a, e.kinds)
	for i, expression := range e.conditions.Update {
		name := "may-change-gated-fields"
		if i > 0 {
			name = "changes-gated-fields"
		}
		if i > 1 {
			name = fmt.Sprintf("%s-%d", name, i)
		}
		out = append(out, Condition{name, fmt.Sprintf("request.operation != 'UPDATE' || (%s) || (%s)", always, expression)})
	}
	return out
}

// forceChanged is true when what makes a tool delete and create the object is
// new or different: ForceNotAllowed must be judged. Flux takes a label, too.
var forceChanged = func() string {
	var parts []string
	for _, force := range forces {
		get := func(o string) string {
			return fmt.Sprintf("%s.metadata.?%s[?'%s'].orValue('')", o, force.part, force.key)
		}
		parts = append(parts, get("object")+" != "+get("oldObject"))
	}
	return strings.Join(parts, " || ")
}()

// forces is where a tool is told to force (gate.Forced).
var forces = []struct{ part, key string }{{"annotations", gate.ArgoSyncOptions}, {"annotations", gate.FluxForce}, {"labels", gate.FluxForce}}

// exemption is false for requests that are never judged: the same table as
// Exempt, as far as it concerns these kinds.
func exemption(a policy.Admission, kinds []projection.Kind) string {
	parts := []string{fmt.Sprintf("request.userInfo.username == %s", quote(APIServer))}
	resource := func(k GroupKind) (string, bool) {
		for _, x := range kinds {
			if x.Group == k.Group && x.Kind == k.Kind {
				return x.Group + "/" + x.Resource, true
			}
		}
		return "", false
	}
	for _, g := range grants {
		var resources []string
		for _, k := range g.kinds {
			if r, ok := resource(k); ok {
				resources = append(resources, r)
			}
		}
		if len(resources) == 0 {
			continue
		}
		parts = append(parts, fmt.Sprintf("(%s && %s && %s)", userIs(controllerUser(a, g.controller)), operationIn(g.operations), resourceIn(resources)))
	}
	if slices.ContainsFunc(kinds, func(k projection.Kind) bool { return slices.Contains(a.GatedDeletes, k.Kind) }) {
		users := make([]string, len(deleters))
		for i, d := range deleters {
			users[i] = controllerUser(a, d)
		}
		parts = append(parts, fmt.Sprintf("(request.operation == 'DELETE' && request.userInfo.username in %s)", list(users)))
	}
	if r, ok := resource(GroupKind{"", "Pod"}); ok {
		parts = append(parts, fmt.Sprintf("(request.userInfo.username.startsWith(%s) && %s in request.userInfo.?groups.orValue([]) && request.operation == 'CREATE' && %s && object.metadata.?annotations[?%s].orValue('') != '')",
			quote(nodeUser), quote(nodeGroup), resourceIn([]string{r}), quote(mirror)))
	}
	for _, t := range a.TrustedWriters {
		if t.Exempt {
			parts = append(parts, exemptWriter(t, resource)...)
		}
	}
	return "!(" + strings.Join(parts, " ||\n  ") + ")"
}

func exemptWriter(t policy.TrustedWriter, resource func(GroupKind) (string, bool)) []string {
	var resources []string
	for _, k := range []GroupKind{{"", "Pod"}, {"apps", "ReplicaSet"}} {
		named := slices.Contains(t.Kinds, k.Kind) || k.Group != "" && slices.Contains(t.Kinds, k.Kind+"."+k.Group)
		if r, ok := resource(k); ok && named {
			resources = append(resources, r)
		}
	}
	if len(resources) == 0 {
		return nil
	}
	part := fmt.Sprintf("%s && request.operation != 'DELETE' && %s", userIs(t.User), resourceIn(resources))
	if !slices.Contains(t.Namespaces, "*") {
		part += fmt.Sprintf(" && request.?namespace.orValue('').matches(%s)", quote(pattern(t.Namespaces)))
	}
	if len(t.Names) > 0 && !slices.Contains(t.Names, "*") {
		part += fmt.Sprintf(" && (object == null ? request.?name.orValue('') : object.metadata.?name.orValue('')).matches(%s)", quote(pattern(t.Names)))
	}
	return []string{"(" + part + ")"}
}

// pattern is a regular expression (RE2) that matches what one of the globs
// does: '*' never crosses a '/'.
func pattern(globs []gate.Glob) string {
	var alternatives []string
	for _, g := range globs {
		var b strings.Builder
		for _, r := range string(g) {
			switch {
			case r == '*':
				b.WriteString("[^/]*")
			case strings.ContainsRune(`\.+?()|[]{}^$`, r):
				b.WriteString(`\` + string(r))
			default:
				b.WriteRune(r)
			}
		}
		alternatives = append(alternatives, b.String())
	}
	return "^(?:" + strings.Join(alternatives, "|") + ")$"
}

func userIs(user string) string {
	return "request.userInfo.username == " + quote(user)
}

func operationIn(operations []string) string {
	if len(operations) == 1 {
		return "request.operation == " + quote(operations[0])
	}
	return "request.operation in " + list(operations)
}

func resourceIn(resources []string) string {
	return "request.resource.group + '/' + request.resource.resource in " + list(resources) + " && request.?subResource.orValue('') == ''"
}

func list(values []string) string {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = quote(v)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// quote writes a CEL string literal.
func quote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(s) + "'"
}
