package projection

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestWhatOtherProgramsActOnCounts: names that injectors, meshes, clouds,
// runtimes and interpreters answer by running or opening something else.
func TestWhatOtherProgramsActOnCounts(t *testing.T) {
	t.Parallel()
	pod := func(meta, container string) string {
		return `{apiVersion: v1, kind: Pod, metadata: {` + meta + `}, spec: {volumes: [{name: v, emptyDir: {}}], containers: [{name: a` + container + `}]}}`
	}
	for _, tc := range []struct{ name, doc, want string }{
		{"another image of an injector", pod(`annotations: {dapr.io/sidecar-image: evil}`, ``), `command metadata.annotations["dapr.io/sidecar-image"] = "evil"`},
		{"devices of the host", pod(`annotations: {cdi.k8s.io/x: vendor.com/net=all}`, ``), `privilege metadata.annotations["cdi.k8s.io/x"] = "vendor.com/net=all"`},
		{"another network", pod(`annotations: {v1.multus-cni.io/default-network: host}`, ``), `network metadata.annotations["v1.multus-cni.io/default-network"] = "host"`},
		{"Istio's label, which wins over its annotation", pod(`labels: {sidecar.istio.io/inject: "false"}`, ``), `network metadata.labels["sidecar.istio.io/inject"] = "false"`},
		{"an identity by label", pod(`labels: {aadpodidbinding: x}`, ``), `identity metadata.labels[aadpodidbinding] = "x"`},
		{"arguments by variable", pod(``, `, env: [{name: GUNICORN_CMD_ARGS, value: -c /data/x}]`), `command spec.containers[a].env[GUNICORN_CMD_ARGS].value = "-c /data/x"`},
		{"settings that name a program", pod(``, `, env: [{name: AWS_CONFIG_FILE, value: /data/x}]`), `command spec.containers[a].env[AWS_CONFIG_FILE].value = "/data/x"`},
		{"Perl's modules", pod(``, `, volumeMounts: [{name: v, mountPath: /etc/perl}]`), `command spec.containers[a].volumeMounts["/etc/perl"].name = "v"`},
		{"all of the application", pod(``, `, volumeMounts: [{name: v, mountPath: /app/}]`), `command spec.containers[a].volumeMounts["/app/"].name = "v"`},
		{"crontabs", pod(``, `, volumeMounts: [{name: v, mountPath: /var/spool/cron/crontabs}]`), `command spec.containers[a].volumeMounts["/var/spool/cron/crontabs"].name = "v"`},
		{"around by /proc", pod(``, `, volumeMounts: [{name: v, mountPath: /proc/self/root/usr}]`), `command spec.containers[a].volumeMounts["/proc/self/root/usr"].name = "v"`},
		{"the application's settings", pod(``, `, volumeMounts: [{name: v, mountPath: /app/config}, {name: v, mountPath: /opt/x/etc}, {name: v, mountPath: /var/cache/x}, {name: v, mountPath: /var/run}]`), ``},
		{"RKE's control plane", `{apiVersion: v1, kind: Pod, spec: {tolerations: [{key: node-role.kubernetes.io/etcd, operator: Exists}]}}`, `privilege spec.tolerations = [{"key":"node-role.kubernetes.io/etcd","operator":"Exists"}]`},
		{"a namespace handed to another Argo CD", `{apiVersion: v1, kind: Namespace, metadata: {labels: {argocd.argoproj.io/managed-by: evil, argocd.argoproj.io/instance: app}}}`, `privilege metadata.labels["argocd.argoproj.io/managed-by"] = "evil"`},
		{"a Service routed to from outside", `{apiVersion: v1, kind: Service, metadata: {annotations: {getambassador.io/config: x}}, spec: {}}`, `network metadata.annotations["getambassador.io/config"] = "x"`},
		{"an OAuth client", `{apiVersion: v1, kind: ServiceAccount, metadata: {annotations: {serviceaccounts.openshift.io/oauth-redirecturi.x: "https://evil"}}}`, `identity metadata.annotations["serviceaccounts.openshift.io/oauth-redirecturi.x"] = "https://evil"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			want := []string{}
			if tc.want != "" {
				want = []string{tc.want}
			}
			if diff := cmp.Diff(want, leaves(project(t, tc.doc), false)); diff != "" {
				t.Errorf("leaves (-want +got):\n%s", diff)
			}
		})
	}
}
