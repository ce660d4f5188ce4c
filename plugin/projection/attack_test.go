package projection

import (
	"strings"
	"testing"
)

// digests of two objects over everything that applies; they must be of one kind.
func sameDigest(t *testing.T, a, b string) bool {
	t.Helper()
	var out [2]string
	for i, in := range []string{a, b} {
		p, err := Project(parse(t, in))
		if err != nil {
			t.Fatalf("%s: %v", in, err)
		}
		out[i], err = p.Digest(p.Applies())
		if err != nil {
			t.Fatal(err)
		}
	}
	return out[0] == out[1]
}

// What an attacker and a newcomer tried on the first release.
func TestChangesThatWereFree(t *testing.T) {
	const application = `{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: a}, spec: {project: p, source: {repoURL: "https://x"}}%s}`
	const ingress = `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: i, annotations: {nginx.ingress.kubernetes.io/proxy-body-size: "%s"}}, spec: {}}`
	const structural = `{apiVersion: x.example/v1, kind: Thing, spec: {hostPID: true, containers: [{name: d, %s}]}}`
	for name, c := range map[string]struct{ a, b string }{
		"an operation of an Application":      {strings.Replace(application, "%s", "", 1), strings.Replace(application, "%s", `, operation: {sync: {source: {repoURL: "https://evil"}}}`, 1)},
		"an image updater on an Application":  {strings.Replace(application, "%s", "", 1), strings.Replace(strings.Replace(application, "%s", "", 1), "{name: a}", `{name: a, annotations: {argocd-image-updater.argoproj.io/image-list: evil}}`, 1)},
		"where Flux fetches from":             {`{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, spec: {url: "https://good"}}`, `{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, spec: {url: "https://evil"}}`},
		"configuration in a tuning value":     {strings.Replace(ingress, "%s", "8m", 1), strings.Replace(ingress, "%s", "8m; lua_code", 1)},
		"a container with nothing but args":   {strings.Replace(structural, "%s", "args: [a]", 1), strings.Replace(structural, "%s", "args: [evil]", 1)},
		"a container with nothing but a hook": {strings.Replace(structural, "%s", "lifecycle: {postStart: {exec: {command: [a]}}}", 1), strings.Replace(structural, "%s", "lifecycle: {postStart: {exec: {command: [evil]}}}", 1)},
		"start-up code of a runtime":          {deployment(`containers: [{name: a, image: "b:1", env: [{name: DOTNET_STARTUP_HOOKS, value: a}]}]`), deployment(`containers: [{name: a, image: "b:1", env: [{name: DOTNET_STARTUP_HOOKS, value: b}]}]`)},
	} {
		t.Run(name, func(t *testing.T) {
			if sameDigest(t, c.a, c.b) {
				t.Error("changes no digest")
			}
		})
	}
}

func TestChangesThatWereRefused(t *testing.T) {
	const source = `{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, spec: {url: "https://good", interval: %s, ref: {branch: %s}}}`
	const envFrom = `containers: [{name: a, image: "b:1", envFrom: [{configMapRef: {name: %s}}]}]`
	const volume = `{apiVersion: v1, kind: Pod, spec: {volumes: [{name: c, configMap: {name: %s}}], containers: [{name: a, image: "b:1", volumeMounts: [{name: c, mountPath: /usr/bin}]}]}}`
	sprint := func(f string, args ...string) string {
		for _, a := range args {
			f = strings.Replace(f, "%s", a, 1)
		}
		return f
	}
	for name, c := range map[string]struct{ a, b string }{
		"another content hash of configMapGenerator":     {deployment(sprint(envFrom, "cfg-89g4tffbfk")), deployment(sprint(envFrom, "cfg-2t2k4mdbch"))},
		"another content hash of a ConfigMap volume":     {sprint(volume, "cfg-89g4tffbfk"), sprint(volume, "cfg")},
		"another revision and interval of a Flux source": {sprint(source, "1m", "main"), sprint(source, "5m", "next")},
	} {
		t.Run(name, func(t *testing.T) {
			if !sameDigest(t, c.a, c.b) {
				t.Error("changes the digest")
			}
		})
	}
	for name, c := range map[string]struct{ a, b string }{
		"another ConfigMap":             {deployment(sprint(envFrom, "cfg")), deployment(sprint(envFrom, "other"))},
		"a suffix that is no such hash": {deployment(sprint(envFrom, "cfg-production")), deployment(sprint(envFrom, "cfg"))},
		"another Secret's hash":         {deployment(`containers: [{name: a, image: "b:1", envFrom: [{secretRef: {name: s-89g4tffbfk}}]}]`), deployment(`containers: [{name: a, image: "b:1", envFrom: [{secretRef: {name: s-2t2k4mdbch}}]}]`)},
	} {
		t.Run(name, func(t *testing.T) {
			if sameDigest(t, c.a, c.b) {
				t.Error("changes no digest")
			}
		})
	}
}

func TestAFaultNeverShowsTheValue(t *testing.T) {
	for _, in := range []string{
		deployment(`containers: [{name: a, image: "b:1", args: --password=hunter2}]`),
		deployment(`containers: [{name: a, image: "b:1", args: [--password, 12345678]}]`),
		deployment(`containers: [{name: a, image: "b:1", env: [{name: A, valueFrom: {secretKeyRef: hunter2}}]}]`),
		`{apiVersion: v1, kind: Secret, metadata: {name: s, labels: hunter2}}`,
	} {
		_, err := Project(parse(t, in))
		if err == nil || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "12345678") {
			t.Errorf("%s: %v", in, err)
		}
	}
}
