package admission

import (
	"fmt"
	"slices"
	"strings"

	"github.com/syncgate/syncgate/plugin/policy"
)

// Names of what lives in the gate's own namespace.
const (
	CertificateSecret  = "syncgate-webhook-tls"
	certificateAccount = "syncgate-certificates"

	// cert-manager writes the certificate, its authority and keys that are not
	// yet in use; their names begin alike. Nothing else of ours does.
	certManager        = "system:serviceaccount:cert-manager:cert-manager"
	certManagerSecrets = "syncgate-webhook-"

	guardEntry = "guard" // in the configuration
)

// guard is the entry that protects the gate's own ConfigMaps and Secrets
// (policy, keys, revocations, the off-switch). Administrators are exempt in a
// condition: what has to be mended must be mendable while the webhook is down.
func guard(a policy.Admission, place Place) Webhook {
	w := webhook(guardEntry, place.config(GuardPath))
	w.Rules = []Rule{{APIGroups: []string{""}, APIVersions: []string{"*"}, Operations: []string{Create, Update, Delete}, Resources: []string{"configmaps", "secrets"}, Scope: "Namespaced"}}
	w.NamespaceSelector = &LabelSelector{[]Requirement{{Key: "kubernetes.io/metadata.name", Operator: "In", Values: []string{a.Namespace}}}}
	w.MatchConditions = []Condition{{"not-an-administrator", guardCondition(a)}}
	return w
}

func guardCondition(a policy.Admission) string {
	users := slices.Concat([]string{APIServer, controllerUser(a, "namespace-controller"), controllerUser(a, "generic-garbage-collector")}, a.Administrators.Users)
	parts := []string{"request.userInfo.username in " + list(users)}
	if len(a.Administrators.Groups) > 0 {
		parts = append(parts, fmt.Sprintf("request.userInfo.?groups.orValue([]).exists(g, g in %s)", list(a.Administrators.Groups)))
	}
	parts = append(parts,
		fmt.Sprintf("(request.?name.orValue('') == 'kube-root-ca.crt' && request.resource.resource == 'configmaps' && %s)", userIs(controllerUser(a, "root-ca-cert-publisher"))),
		fmt.Sprintf("(request.?name.orValue('') == %s && request.resource.resource == 'secrets' && %s)", quote(CertificateSecret), userIs(certificateUser(a))),
		fmt.Sprintf("(request.?name.orValue('').startsWith(%s) && request.resource.resource == 'secrets' && %s)", quote(certManagerSecrets), userIs(certManager)))
	return "!(" + strings.Join(parts, " ||\n  ") + ")"
}

func certificateUser(a policy.Admission) string {
	return "system:serviceaccount:" + a.Namespace + ":" + certificateAccount
}

// MayAdminister reports whether a request may change the gate's own object: the
// same as the guard's condition.
func MayAdminister(a policy.Admission, w Writer) bool {
	switch {
	case w.User == APIServer, w.User == controllerUser(a, "namespace-controller"), w.User == controllerUser(a, "generic-garbage-collector"):
		return true
	case slices.Contains(a.Administrators.Users, w.User):
		return true
	case w.Kind == (GroupKind{"", "ConfigMap"}) && w.Name == "kube-root-ca.crt" && w.User == controllerUser(a, "root-ca-cert-publisher"):
		return true
	case w.Kind == (GroupKind{"", "Secret"}) && w.Name == CertificateSecret && w.User == certificateUser(a):
		return true
	case w.Kind == (GroupKind{"", "Secret"}) && strings.HasPrefix(w.Name, certManagerSecrets) && w.User == certManager:
		return true
	}
	return slices.ContainsFunc(w.Groups, func(g string) bool { return slices.Contains(a.Administrators.Groups, g) })
}
