package harness

import (
	"fmt"
	"strings"

	"k8s.io/client-go/rest"
)

// As returns a view of the cluster in which everything is done by a user with a
// client certificate. The user may do nothing but what its groups and Bind
// allow.
func (c *Cluster) As(user string, groups ...string) *Cluster {
	c.T.Helper()
	view := *c
	cert, key := c.plane.authority.issue(c.T, user, groups, nil)
	view.become(c.plane.unique(user), cert, key)
	return &view
}

// AsServiceAccount returns a view of the cluster in which everything is done by
// a ServiceAccount, with a token of the TokenRequest API. It exists already.
func (c *Cluster) AsServiceAccount(namespace, name string) *Cluster {
	c.T.Helper()
	token := strings.TrimSpace(string(c.Kubectl(nil, "create", "token", name, "--namespace", namespace, "--duration=24h")))
	view := *c
	view.Kubeconfig = c.writeKubeconfig(c.plane.unique(namespace+"-"+name), fmt.Sprintf("{token: %q}", token))
	view.connect(&rest.Config{Host: c.URL, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: c.plane.authority.pem}})
	return &view
}

// Bind gives a ClusterRole to users or, for names that begin with "group:",
// groups: in one namespace or, with "", everywhere. Who calls it must be allowed
// to. In a shared cluster it goes when the test ends.
func (c *Cluster) Bind(clusterRole, namespace string, users ...string) {
	c.T.Helper()
	name := c.plane.unique("e2e-" + clusterRole)
	kind, args := "clusterrolebinding", []string{"--clusterrole=" + clusterRole}
	if namespace != "" {
		kind, args = "rolebinding", append(args, "--namespace="+namespace)
	}
	for _, user := range users {
		if group, ok := strings.CutPrefix(user, "group:"); ok {
			args = append(args, "--group="+group)
		} else {
			args = append(args, "--user="+user)
		}
	}
	c.Kubectl(nil, append([]string{"create", kind, name}, args...)...)
	if c.shared != nil && namespace == "" {
		c.T.Cleanup(func() { c.TryKubectl(nil, "delete", kind, name) })
	}
}

// unique returns a name for a file or an object that none has yet, made of what
// it is about.
func (p *plane) unique(about string) string {
	n := p.names.Add(1) // subtests may run in parallel
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '.':
			return r
		}
		return '-'
	}, about) + fmt.Sprintf("-%d", n)
}
