package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/syncgate/syncgate/plugin/keys"
	"github.com/syncgate/syncgate/plugin/lock"
	"github.com/syncgate/syncgate/plugin/receipt"
)

// step is one scene. It ends well only if the gate answers as the step says.
type step struct {
	title string
	do    func(*demo) error
}

func (s step) run(d *demo) error {
	fmt.Printf("\n== %s\n", s.title)
	if err := s.do(d); err != nil {
		return err
	}
	return d.restore()
}

var generate = []string{"generate", "shop"}

var steps = []step{
	{"The release team makes a key; the operator's policy trusts its public half", func(d *demo) error {
		r, err := d.syncgate("keys", "new", "--out", "release.pem")
		if err != nil {
			return err
		}
		if err := r.want(0); err != nil {
			return err
		}
		if r, err = d.syncgate("keys", "jwks", "release.pem"); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(d.dir, "release.jwks.json"), []byte(r.stdout), 0o644)
	}},
	{"Argo CD renders: the images are tags that anybody can push again", refused(10, "SYNC REFUSED [ImageNotPinned]", "Deployment shop/web", "containers[web].image")},
	{"A release step looks the tags up, once, and commits the pins", func(d *demo) error { return expect(d, 0, nil, "pin", "shop") }},
	{"Pinned, but nobody has signed", refused(10, "SYNC REFUSED [ReceiptMissing]", "Deployment shop/web", "RoleBinding shop/web", "6 of 6 gated objects", "and 1 more")},
	{"The release team signs what it sees", func(d *demo) error { return expect(d, 0, []string{"signed 6 of 7"}, sign()...) }},
	{"Signed: allowed, every image as tag@sha256", allowed("acme/web:1.4@sha256:", "acme/metrics:2.0@sha256:")},
	{"Signing again what is signed changes no byte", func(d *demo) error { return expect(d, 0, []string{"nothing to sign"}, sign()...) }},
	{"More replicas, more memory: nobody is asked", edited("shop/deployment.yaml",
		[][2]string{{"replicas: 2", "replicas: 9"}, {"memory: 64Mi", "memory: 1Gi"}}, allowed(`"replicas":9`))},

	{"Another image", edited("shop/deployment.yaml", [][2]string{{"acme/web:1.4", "acme/web:1.5"}}, func(d *demo) error {
		if err := expect(d, 0, nil, "pin", "shop"); err != nil {
			return err
		}
		if err := refused(10, "[DigestMismatch]", "Deployment shop/web: containers[web].image is", "acme/web:1.5")(d); err != nil {
			return err
		}
		if err := d.restore(); err != nil {
			return err
		}
		return expect(d, 0, nil, "pin", "shop")
	})},
	{"A host path", edited("shop/deployment.yaml", [][2]string{{"      containers:\n", "      volumes: [{name: host, hostPath: {path: /}}]\n      containers:\n"}},
		refused(10, "[DigestMismatch]", "Deployment shop/web: volumes[host].hostPath.path is /"))},
	{"Another command", edited("shop/deployment.yaml", [][2]string{{"        ports:", "        command: [sh, -c, env]\n        ports:"}},
		refused(10, "[DigestMismatch]", "Deployment shop/web: containers[web].command is"))},
	{"Another subject in the RoleBinding", edited("shop/rbac.yaml", [][2]string{{"kind: ServiceAccount, name: web", "kind: ServiceAccount, name: default"}},
		refused(10, "[DigestMismatch]", "RoleBinding shop/web: subjects"))},
	{"The LoadBalancer opened to the world", edited("shop/network.yaml", [][2]string{{"10.0.0.0/8", "0.0.0.0/0"}},
		refused(10, "[DigestMismatch]", "Service shop/web: spec.loadBalancerSourceRanges"))},
	{"An object for kube-system, even one without gated fields", edited("shop/kustomization.yaml", [][2]string{{"namespace: shop\n", ""}, {"- network.yaml", "- network.yaml\n- aws-auth.yaml"}}, func(d *demo) error {
		text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: aws-auth, namespace: kube-system}\ndata: {mapRoles: all}\n"
		path := filepath.Join(d.dir, "shop/aws-auth.yaml")
		d.saved = append(d.saved, edit{file: path})
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
		r, err := d.call([]string{"ARGOCD_APP_NAMESPACE=shop"}, generate...)
		if err != nil {
			return err
		}
		return r.want(10, "[ProtectedTarget]", "1 of 7 gated objects", "ConfigMap kube-system/aws-auth")
	})},

	{"What prod approved, taken to the test cluster as it is", elsewhere},
	{"Receipts that have expired", func(d *demo) error {
		return rewritten(d, func(c *receipt.Claims) { c.IssuedAt -= 2 * 86400; c.Expires = time.Now().Unix() - 3600 }, "[ReceiptExpired]")
	}},
	{"Receipts that were revoked", revoked},
	{"Receipts forged with another key under the same key ID", forged},
	{"And the receipts as they were: allowed", allowed("acme/web:1.4@sha256:")},
}

func sign(more ...string) []string {
	args := []string{"sign", "shop", "--key", "release.pem", "--issuer", "release", "--yes"}
	if len(more) == 0 {
		more = []string{"--environment", "prod"}
	}
	return append(args, more...)
}

func expect(d *demo, exit int, texts []string, args ...string) error {
	r, err := d.syncgate(args...)
	if err != nil {
		return err
	}
	return r.want(exit, texts...)
}

func allowed(texts ...string) func(*demo) error {
	return func(d *demo) error { return expect(d, 0, texts, generate...) }
}

func refused(exit int, texts ...string) func(*demo) error {
	return func(d *demo) error { return expect(d, exit, texts, generate...) }
}

func edited(file string, changes [][2]string, then func(*demo) error) func(*demo) error {
	return func(d *demo) error {
		for _, c := range changes {
			if err := d.change(file, c[0], c[1]); err != nil {
				return err
			}
			fmt.Printf("(%s: %q becomes %q)\n", file, strings.TrimSpace(c[0]), strings.TrimSpace(c[1]))
		}
		return then(d)
	}
}

// rewritten signs other claims with the right key, checks the refusal, and
// puts the lock back.
func rewritten(d *demo, change func(*receipt.Claims), code string) error {
	return keepingLock(d, func() error {
		if err := resign(d, "release.pem", "", change); err != nil {
			return err
		}
		return refused(10, code)(d)
	})
}

// resign replaces every receipt of the lock by one with changed claims.
func resign(d *demo, key, kid string, change func(*receipt.Claims)) error {
	s, err := keys.ReadSigner(filepath.Join(d.dir, key), kid)
	if err != nil {
		return err
	}
	l, err := lock.Open(filepath.Join(d.dir, "shop"))
	if err != nil {
		return err
	}
	entries := l.Entries()
	l.Remove(func(lock.Entry) bool { return true }) // else they stay as the previous ones, which are good
	for _, e := range entries {
		u, err := receipt.ParseUnverified(e.Receipt)
		if err != nil {
			return err
		}
		change(&u.Claims)
		if e.Receipt, err = receipt.Sign(u.Claims, s); err != nil {
			return err
		}
		e.Environment, e.Comment = u.Claims.Environment, "demo"
		if err := l.PutReceipt(e); err != nil {
			return err
		}
	}
	return l.Save()
}
