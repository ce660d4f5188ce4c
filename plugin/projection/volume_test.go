package projection

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestVolumes(t *testing.T) {
	mounted := func(source, mount string) string {
		return "volumes: [{name: v, " + source + "}]\ncontainers: [{name: a, volumeMounts: [{name: v, " + mount + "}]}]"
	}
	checkPod(t, []leafCase{
		{"a Secret with its items in order, and where it is mounted", mounted("secret: {secretName: s, defaultMode: 256, optional: true, items: [{key: b, path: p, mode: 511}, {key: a, path: c}]}", "mountPath: /m, readOnly: true, subPath: x"), []string{
			`secret containers[a].volumeMounts["/m"].name = "v"`, `secret containers[a].volumeMounts["/m"].readOnly = true`, `secret containers[a].volumeMounts["/m"].subPath = "x"`,
			`secret volumes[v].secret.items = [{"key":"b","path":"p"},{"key":"a","path":"c"}]`, `secret volumes[v].secret.secretName = "s"`}},
		{"readOnly false is none, propagation does not count", mounted("secret: {secretName: s}", "mountPath: /m, readOnly: false, mountPropagation: None"), []string{
			`secret containers[a].volumeMounts["/m"].name = "v"`, `secret volumes[v].secret.secretName = "s"`}},
		{"a host path, with propagation", mounted(`hostPath: {path: /, type: ""}`, "mountPath: /host, mountPropagation: Bidirectional, recursiveReadOnly: Disabled"), []string{
			`privilege containers[a].volumeMounts["/host"].mountPropagation = "Bidirectional"`, `privilege containers[a].volumeMounts["/host"].name = "v"`,
			`privilege containers[a].volumeMounts["/host"].recursiveReadOnly = "Disabled"`, `privilege volumes[v].hostPath.path = "/"`}},
		{"a claim", mounted("persistentVolumeClaim: {claimName: c, readOnly: true}", "mountPath: /m"), []string{
			`secret containers[a].volumeMounts["/m"].name = "v"`, `secret volumes[v].persistentVolumeClaim.claimName = "c"`, `secret volumes[v].persistentVolumeClaim.readOnly = true`}},
		{"an ephemeral claim counts only with a source", mounted("ephemeral: {volumeClaimTemplate: {spec: {accessModes: [x], storageClassName: fast}}}", "mountPath: /m"), nil},
		{"an ephemeral claim with a source", mounted("ephemeral: {volumeClaimTemplate: {spec: {dataSource: {kind: PersistentVolumeClaim, name: other}}}}", "mountPath: /m"), []string{
			`secret containers[a].volumeMounts["/m"].name = "v"`,
			`secret volumes[v].ephemeral.volumeClaimTemplate.spec.dataSourceRef.kind = "PersistentVolumeClaim"`, `secret volumes[v].ephemeral.volumeClaimTemplate.spec.dataSourceRef.name = "other"`}},
		{"a CSI volume, whole", mounted(`csi: {driver: d, volumeAttributes: {a.b/c: x, e: ""}, nodePublishSecretRef: {name: s}}`, "mountPath: /m"), []string{
			`secret containers[a].volumeMounts["/m"].name = "v"`, `secret volumes[v].csi.driver = "d"`, `secret volumes[v].csi.nodePublishSecretRef.name = "s"`,
			`secret volumes[v].csi.volumeAttributes["a.b/c"] = "x"`, `secret volumes[v].csi.volumeAttributes[e] = ""`}},
		{"a network file system", mounted(`nfs: {server: s, path: /p}`, "mountPath: /m"), []string{
			`secret containers[a].volumeMounts["/m"].name = "v"`, `secret volumes[v].nfs.path = "/p"`, `secret volumes[v].nfs.server = "s"`}},
		{"an image volume", mounted(`image: {reference: "r/i:1@sha256:x", pullPolicy: Always}`, "mountPath: /m"), []string{
			`privilege containers[a].volumeMounts["/m"].name = "v"`, `privilege volumes[v].image.reference#repository = "r/i"`}},
		{"a source newer than the table", mounted(`tape: {reel: 1}`, "mountPath: /m"), []string{
			`secret containers[a].volumeMounts["/m"].name = "v"`, `secret volumes[v].tape = {"reel":1}`}},
		{"an emptyDir where programs have no place", mounted(`emptyDir: {medium: Memory}`, "mountPath: /var/cache"), nil},
		{"an emptyDir over the programs", mounted(`emptyDir: {medium: Memory}`, "mountPath: /usr/bin, subPath: x"), []string{
			`command containers[a].volumeMounts["/usr/bin"].name = "v"`, `command containers[a].volumeMounts["/usr/bin"].subPath = "x"`}},
		{"a Secret over the loader's file", mounted(`secret: {secretName: s}`, "mountPath: /etc/ld.so.preload"), []string{
			`command containers[a].volumeMounts["/etc/ld.so.preload"].name = "v"`, `secret containers[a].volumeMounts["/etc/ld.so.preload"].name = "v"`, `secret volumes[v].secret.secretName = "s"`}},
		{"a plain ephemeral claim over the libraries", mounted("ephemeral: {volumeClaimTemplate: {spec: {accessModes: [x]}}}", "mountPath: /lib, readOnly: true"), []string{
			`command containers[a].volumeMounts["/lib"].name = "v"`, `command containers[a].volumeMounts["/lib"].readOnly = true`}},
		{"an image over the programs", mounted(`image: {reference: "r/i:1@sha256:x"}`, "mountPath: /opt/../usr"), []string{
			`command containers[a].volumeMounts["/opt/../usr"].name = "v"`, `privilege containers[a].volumeMounts["/opt/../usr"].name = "v"`, `privilege volumes[v].image.reference#repository = "r/i"`}},
		{"projected sources by position among their like", mounted(`projected: {sources: [{configMap: {name: c}}, {secret: {name: s}}, {serviceAccountToken: {path: t, audience: vault, expirationSeconds: 3600}}, {secret: {name: u, items: [{key: k, path: p}]}}, {clusterTrustBundle: {name: b, path: p}}]}`, "mountPath: /m"), []string{
			`identity containers[a].volumeMounts["/m"].name = "v"`,
			`identity volumes[v].projected.sources[#0].clusterTrustBundle.name = "b"`, `identity volumes[v].projected.sources[#0].clusterTrustBundle.path = "p"`,
			`identity volumes[v].projected.sources[#0].serviceAccountToken.audience = "vault"`, `identity volumes[v].projected.sources[#0].serviceAccountToken.path = "t"`,
			`secret containers[a].volumeMounts["/m"].name = "v"`, `secret volumes[v].projected.sources[#0].secret.name = "s"`,
			`secret volumes[v].projected.sources[#1].secret.items = [{"key":"k","path":"p"}]`, `secret volumes[v].projected.sources[#1].secret.name = "u"`}},
		{"a pod certificate", mounted(`projected: {sources: [{podCertificate: {signerName: s, keyType: ED25519, maxExpirationSeconds: 86400, userAnnotations: {a: b}}}]}`, "mountPath: /m"), []string{
			`identity containers[a].volumeMounts["/m"].name = "v"`, `identity volumes[v].projected.sources[#0].podCertificate.keyType = "ED25519"`,
			`identity volumes[v].projected.sources[#0].podCertificate.signerName = "s"`, `identity volumes[v].projected.sources[#0].podCertificate.userAnnotations[a] = "b"`}},
	})
}

func TestAConfigMapVolumeCountsWhereItCanBecomeAProgram(t *testing.T) {
	for _, c := range []struct {
		name, source, mountPath string
		executable, want        bool
	}{
		{"elsewhere", "configMap: {name: c}", "/config", false, false},
		{"in a directory of its own below /etc", "configMap: {name: c}", "/etc/nginx", false, false},
		{"over the root", "configMap: {name: c}", "/", false, true},
		{"among the programs", "configMap: {name: c}", "/usr/local/bin", false, true},
		{"by an unclean path", "configMap: {name: c}", "/app/../bin/", false, true},
		{"by a relative path", "configMap: {name: c}", "sbin/x", false, true},
		{"among the libraries", "configMap: {name: c}", "/lib64", false, true},
		{"over /etc itself", "configMap: {name: c}", "/etc", false, true},
		{"over the loader's file", "configMap: {name: c}", "/etc/ld.so.preload", false, true},
		{"over the trust store", "configMap: {name: c}", "/etc/ssl/certs", false, true},
		{"over a cron table", "configMap: {name: c}", "/etc/cron.d", false, true},
		{"with an executable mode", "configMap: {name: c, defaultMode: 493}", "/config", true, true},
		{"with one executable item", "configMap: {name: c, items: [{key: k, path: p, mode: 65}]}", "/config", true, true},
		{"with a plain mode", "configMap: {name: c, defaultMode: 420}", "/config", false, false},
		{"projected, with an executable mode", "projected: {defaultMode: 511, sources: [{configMap: {name: c}}]}", "/config", true, true},
		{"of the downward API among the programs", "downwardAPI: {items: [{path: p, fieldRef: {fieldPath: metadata.name}}]}", "/bin", false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := podLeaves(t, "volumes: [{name: v, "+c.source+"}]\ncontainers: [{name: a, volumeMounts: [{name: v, mountPath: "+c.mountPath+"}]}]")
			text := strings.Join(got, "\n")
			if (len(got) > 0) != c.want {
				t.Fatalf("leaves = %q, want any: %v", got, c.want)
			}
			if c.want && !strings.Contains(text, `volumeMounts[`) {
				t.Errorf("the mount is no leaf: %q", got)
			}
			if strings.Contains(text, "executable = true") != c.executable {
				t.Errorf("leaves = %q, want executable: %v", got, c.executable)
			}
		})
	}
}

func TestOnlyTheMountThatMattersOfAConfigMapCounts(t *testing.T) {
	got := podLeaves(t, `
volumes: [{name: v, configMap: {name: c, items: [{key: k, path: p}]}}]
containers:
- {name: a, volumeMounts: [{name: v, mountPath: /config}, {name: v, mountPath: /bin/x, subPath: p}]}
- {name: b, volumeMounts: [{name: v, mountPath: /config}]}`)
	want := []string{
		`command containers[a].volumeMounts["/bin/x"].name = "v"`, `command containers[a].volumeMounts["/bin/x"].subPath = "p"`,
		`command volumes[v].configMap.items = [{"key":"k","path":"p"}]`, `command volumes[v].configMap.name = "c"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("leaves (-want +got):\n%s", diff)
	}
}

func TestAStatefulSetsClaimsAreVolumes(t *testing.T) {
	p := project(t, `
apiVersion: apps/v1
kind: StatefulSet
spec:
 template: {spec: {containers: [{name: a, image: r/i:1, volumeMounts: [{name: data, mountPath: /d}, {name: plain, mountPath: /p}, {name: plain, mountPath: /usr/lib}]}]}}
 volumeClaimTemplates:
 - {metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], volumeName: theirs, dataSource: {kind: X, name: src}, dataSourceRef: {kind: X, name: src}}}
 - {metadata: {name: plain}, spec: {storageClassName: fast}}`)
	want := []string{
		`command spec.template.spec.containers[a].volumeMounts["/usr/lib"].name = "plain"`,
		`image spec.template.spec.containers[a].image = "r/i:1"`,
		`secret spec.template.spec.containers[a].image#repository = "r/i"`,
		`secret spec.template.spec.containers[a].volumeMounts["/d"].name = "data"`,
		`secret spec.volumeClaimTemplates[data].spec.dataSourceRef.kind = "X"`,
		`secret spec.volumeClaimTemplates[data].spec.dataSourceRef.name = "src"`,
		`secret spec.volumeClaimTemplates[data].spec.volumeName = "theirs"`,
	}
	if diff := cmp.Diff(want, leaves(p, true)); diff != "" {
		t.Errorf("leaves (-want +got):\n%s", diff)
	}
}

const injected = `
apiVersion: v1
kind: Pod
spec:
  containers:
  - {name: a, image: i, volumeMounts: [{name: kube-api-access-x1, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true}]}
  volumes:
  - name: kube-api-access-x1
    projected:
      defaultMode: 420
      sources:
      - serviceAccountToken: {expirationSeconds: 3607, path: token}
      - configMap: {name: kube-root-ca.crt, items: [{key: ca.crt, path: ca.crt}]}
      - downwardAPI: {items: [{path: namespace, fieldRef: {apiVersion: v1, fieldPath: metadata.namespace}}]}
`

func TestTheInjectedTokenVolumeIsNoLeaf(t *testing.T) {
	if got := leaves(project(t, injected), true); len(got) != 1 {
		t.Errorf("leaves = %q, want only the image", got)
	}
}

func TestATokenVolumeThatIsNotTheInjectedOneIsALeaf(t *testing.T) {
	for _, c := range []struct{ name, from, to string }{
		{"another name", "kube-api-access-x1", "token"},
		{"another place", "kubernetes.io/serviceaccount", "kubernetes.io/other"},
		{"writable", "readOnly: true", "readOnly: false"},
		{"with a sub-path", "readOnly: true", "readOnly: true, subPath: x"},
		{"another lifetime", "3607", "360700"},
		{"an audience", "path: token", "path: token, audience: vault"},
		{"another ConfigMap", "kube-root-ca.crt", "mine"},
		{"another file", "fieldPath: metadata.namespace", "fieldPath: metadata.name"},
		{"another mode", "defaultMode: 420", "defaultMode: 511"},
		{"automount false", "spec:\n", "spec:\n  automountServiceAccountToken: false\n"},
		{"one more source", "sources:\n", "sources:\n      - secret: {name: s}\n"},
		{"in a template", "kind: Pod\nspec:", "kind: PodTemplate\ntemplate:\n spec:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := strings.ReplaceAll(injected, c.from, c.to)
			if c.name == "in a template" {
				in = strings.Replace(injected, "apiVersion: v1\nkind: Pod\nspec:", "apiVersion: v1\nkind: PodTemplate\ntemplate:\n spec:", 1)
				in = in[:strings.Index(in, " spec:\n")+7] + indent(in[strings.Index(in, " spec:\n")+7:], "  ")
			}
			if in == injected {
				t.Fatal("the case changes nothing")
			}
			got := leaves(project(t, in), false)
			if !strings.Contains(strings.Join(got, "\n"), "serviceAccountToken.path") {
				t.Errorf("leaves = %q, want the token's", got)
			}
		})
	}
}

func TestPrivilegesBindTheRepositoryOfTheContainersThatGetThem(t *testing.T) {
	const spec = `
containers:
- {name: a, image: "localhost:5000/a/b:1@sha256:0", securityContext: {privileged: true}}
- {name: b, image: b, volumeMounts: [{name: s, mountPath: /s}]}
- {name: c, image: "c:2"}
- {name: d, image: d, volumeDevices: [{name: p, devicePath: /dev/x}]}
volumes: [{name: s, secret: {secretName: s}}, {name: p, persistentVolumeClaim: {claimName: p}}, {name: unused, hostPath: {path: /}}]
`
	bound := func(in string) []string {
		out := []string{}
		for _, l := range project(t, deployment(in)).Leaves() {
			if l.binding {
				out = append(out, strings.Replace(l.String(), podPrefix, "", 1))
			}
		}
		return out
	}
	want := []string{
		`privilege containers[a].image#repository = "localhost:5000/a/b"`,
		`privilege containers[d].image#repository = "d"`,
		`secret containers[b].image#repository = "b"`,
		`secret containers[d].image#repository = "d"`,
	}
	if diff := cmp.Diff(want, bound(spec)); diff != "" {
		t.Errorf("bindings (-want +got):\n%s", diff)
	}
	if got := bound(spec + "serviceAccountName: x\n"); len(got) != 8 {
		t.Errorf("bindings = %q, want identity in every container besides", got)
	}
	if got := bound("containers: [{name: a, image: i, command: [x]}]\nhostNetwork: true"); len(got) != 0 {
		t.Errorf("bindings = %q, want none for command and network", got)
	}
}

func TestAVersionBumpLeavesBoundCategoriesAlone(t *testing.T) {
	spec := func(image string) *Projection {
		return project(t, deployment(`containers: [{name: a, image: "`+image+`", securityContext: {privileged: true}}]`))
	}
	old, bumped, other := spec("r/i:1@sha256:0"), spec("r/i:2@sha256:1"), spec("r/j:2@sha256:1")
	if !EqualIn(old, bumped, Privilege) || EqualIn(old, bumped, Image) {
		t.Error("a version bump changes privilege, or not image")
	}
	if EqualIn(bumped, other, Privilege) {
		t.Error("another repository does not change privilege")
	}
}
