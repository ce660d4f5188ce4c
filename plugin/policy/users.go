package policy

import "strings"

// serviceAccountUser is how the API server calls a service account.
const serviceAccountUser = "system:serviceaccount:"

// serviceAccount takes the name of a service account's user apart.
func serviceAccount(user string) (namespace, name string, ok bool) {
	account, ok := strings.CutPrefix(user, serviceAccountUser)
	if !ok {
		return "", "", false
	}
	return cutAccount(account)
}

func cutAccount(account string) (namespace, name string, ok bool) {
	namespace, name, ok = strings.Cut(account, ":")
	return namespace, name, ok && namespaceWord.MatchString(namespace) && groupWord.MatchString(name)
}

// user checks the name of a user.
func (v *validator) user(path, user string) bool {
	account, isAccount := strings.CutPrefix(user, serviceAccountUser)
	_, _, whole := cutAccount(account)
	switch {
	case user == "":
		v.fail(path, "missing: the user name that the API server shows")
	case strings.ContainsAny(user, "*\n\r\t") || strings.TrimSpace(user) != user:
		v.fail(path, "got %.40q, want the exact name of a user", user)
	case user == "system:anonymous":
		v.fail(path, "anybody can be %q", user)
	case isAccount && !whole:
		v.fail(path, "got %.40q, want %sNAMESPACE:NAME", user, serviceAccountUser)
	default:
		return true
	}
	return false
}

// impersonation: "whoever is editor of its namespace can impersonate it or mint
// its token", so a user who lives in a gated namespace must be accepted
// knowingly.
func (v *validator) impersonation(path, user string, accepted bool, a Admission) {
	namespace, _, isAccount := serviceAccount(user)
	if isAccount && !accepted && a.Gated(namespace) {
		v.fail(path, "its namespace %q is gated itself, so its editors can be this user; exclude it or say acceptImpersonation: true", namespace)
	}
}
