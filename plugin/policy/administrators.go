package policy

import (
	"slices"
	"strings"
)

// Administrators are who may change the gate's own ConfigMaps and Secrets and
// use the off-switch: one of these users, or a member of one of these groups.
// Groups always holds system:masters. RBAC cannot hold its members back, so
// that they could delete the webhook itself; letting them pass loses nothing,
// and mends a cluster in which nobody else gets in.
type Administrators struct {
	Users, Groups []string
}

const (
	defaultAdministrators = "syncgate:administrators"
	masters               = "system:masters"
)

// everybodys are groups that nobody has to be let into.
var everybodys = []string{"system:authenticated", "system:unauthenticated", "system:nodes", "system:bootstrappers", "system:serviceaccounts"}

// appliers are the service accounts, by their stock names, that apply what is
// in Git. One that could change the policy would bring changes of it from Git,
// past whoever decides about the gate.
var appliers = []string{"argocd-application-controller", "kustomize-controller", "helm-controller"}

// applies reports whether a user applies applications.
func applies(user string) bool {
	_, name, ok := serviceAccount(user)
	return ok && slices.Contains(appliers, name)
}

func (v *validator) administrators(a Admission) Administrators {
	d := v.doc.Administrators
	if d == nil {
		return Administrators{Groups: []string{defaultAdministrators, masters}}
	}
	if len(d.Users) == 0 && len(d.Groups) == 0 {
		v.fail("administrators", "nobody; name users or groups, or leave it out to mean the group %s", defaultAdministrators)
	}
	unique(v, "administrators.users", d.Users)
	unique(v, "administrators.groups", d.Groups)
	for i, user := range d.Users {
		path := item("administrators.users", i)
		switch {
		case !v.user(path, user):
		case applies(user):
			v.fail(path, "%q applies applications, so a commit could change the gate", user)
		default:
			v.impersonation(path, user, d.AcceptImpersonation, a)
		}
	}
	for i, group := range d.Groups {
		path := item("administrators.groups", i)
		switch {
		case strings.ContainsAny(group, "*\n\r\t") || strings.TrimSpace(group) != group:
			v.fail(path, "got %.40q, want the exact name of a group", group)
		case slices.ContainsFunc(everybodys, func(e string) bool { return group == e || strings.HasPrefix(group, e+":") }):
			v.fail(path, "%.80q is not a group of people; name service accounts one by one, under users", group)
		}
	}
	groups := d.Groups
	if !slices.Contains(groups, masters) {
		groups = append(slices.Clip(groups), masters)
	}
	return Administrators{Users: d.Users, Groups: groups}
}
