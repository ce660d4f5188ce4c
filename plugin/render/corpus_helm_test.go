package render_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/syncgate/syncgate/plugin/render"
)

// stricterCharts lists charts of the corpus that Helm 3 renders and we refuse.
// Most make up a password or a certificate at each render.
var stricterCharts = map[string]string{
	"argoproj+argo-cd/reposerver/repository/testdata/in-bounds-values-file-link":                                       "cannot load values.yaml", // the text of a symbolic link
	"argoproj+argo-cd/util/helm/testdata/redis":                                                                        `data.redis-password of Secret "release-redis"`,
	"bitnami+charts/bitnami/common":                                                                                    "the chart is a library",
	"bitnami+charts/bitnami/rabbitmq":                                                                                  `data.rabbitmq-erlang-cookie of Secret "default/release-rabbitmq"`,
	"kubernetes-sigs+metrics-server/charts/metrics-server -f ci/tls-helm-values.yaml":                                  `data.tls.crt of Secret "default/release-metrics-server"`,
	"prometheus-community+helm-charts/charts/prometheus-pushgateway -f ci/basic-auth-values.yaml":                      "data.web-config.yaml of Secret",
	"prometheus-community+helm-charts/charts/prometheus-pushgateway -f ci/servicemonitor-basicauth-secret-values.yaml": "data.web-config.yaml of Secret",
	"prometheus-community+helm-charts/charts/prometheus-pushgateway -f ci/servicemonitor-basicauth-values.yaml":        "data.web-config.yaml of Secret",
	"sse-secure-systems+connaisseur/charts/connaisseur":                                                                `data.REDIS_PASSWORD of Secret "default/connaisseur-redis-secret"`,
	"stefanprodan+podinfo/charts/podinfo":                                                                              "leave those out (skipTests)",
}

// Every chart of the public corpus renders to as many objects as Helm itself
// made, or is refused for a reason listed above; what Helm could not render
// offline is an error here too.
func TestCorpusChartsRenderAsHelmDoes(t *testing.T) {
	root, rows := corpus(t, "chart")
	built := 0
	for _, row := range rows {
		name := row.dir
		o := render.Options{
			Dir: filepath.Join(root, filepath.FromSlash(row.dir)), Renderer: render.Helm,
			ReleaseName: "release", Namespace: "default", KubeVersion: "1.35.0",
		}
		repository, _, _ := strings.Cut(row.dir, "/")
		o.Root = filepath.Join(root, repository)
		if row.values != "" {
			name += " -f " + row.values
			o.Helm.ValueFiles = []string{row.values}
		}
		got, err := render.Render(t.Context(), o)
		if err != nil && (strings.Contains(err.Error(), root) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: error names an absolute path or has several lines: %v", name, err)
		}
		switch reason, listed := stricterCharts[name]; {
		case listed && err == nil:
			t.Errorf("%s: renders, but is listed as refused for %q", name, reason)
		case listed && !strings.Contains(err.Error(), reason):
			t.Errorf("%s: got error %q, want one with %q", name, err, reason)
		case listed:
		case row.ok && err != nil:
			t.Errorf("%s: helm makes %d objects, we fail: %v", name, row.docs, err)
		case !row.ok && err == nil:
			t.Errorf("%s: renders %d objects, but helm fails", name, len(got.Objects))
		case row.ok && len(got.Objects) != row.docs:
			t.Errorf("%s: got %d objects, want %d", name, len(got.Objects), row.docs)
		default:
			built++
		}
	}
	if built < 60 {
		t.Errorf("only %d of %d charts compared", built, len(rows))
	}
}
