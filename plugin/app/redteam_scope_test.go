package app_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/policy"
	"github.com/syncgate/syncgate/plugin/receipt"
)

const siteForged = "argocd.argoproj.io/sync-options: 'Force=true,Replace=true'"

func TestRedTeamF01NoScopeLeavesAWayRoundTheRender(t *testing.T) {
	const admin = "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}, subjects: [{kind: User, name: mallory}]"
	for _, tc := range []struct {
		name, manifest string
		reason         gate.Reason
	}{
		{"cluster-admin for a user", object("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "name: m", admin), gate.ReceiptMissing},
		{"a privileged DaemonSet in kube-system", object("apps/v1", "DaemonSet", "name: m, namespace: kube-system", `spec: {template: {spec: {hostPID: true, containers: [{name: m, image: "`+webImage("1", "a")+`"}]}}}`), gate.ProtectedTarget},
		{"a Pod that runs as a controller", object("v1", "Pod", "name: m, namespace: kube-system", `spec: {serviceAccountName: replicaset-controller, containers: [{name: m, image: "`+webImage("1", "a")+`"}]}`), gate.ProtectedTarget},
		{"aws-auth, which is RBAC on EKS", object("v1", "ConfigMap", "name: aws-auth, namespace: kube-system", "data: {mapUsers: x}"), gate.ProtectedTarget},
		{"the gate's own keys", object("v1", "ConfigMap", "name: syncgate-policy, namespace: syncgate-system", "data: {policy.yaml: x}"), gate.ProtectedTarget},
		{"Argo CD's accounts", object("v1", "ConfigMap", "name: argocd-rbac-cm, namespace: argocd", "data: {policy.csv: x}"), gate.ProtectedTarget},
		{"a Secret of Argo CD", object("v1", "Secret", "name: argocd-secret, namespace: argocd", "stringData: {a: b}"), gate.ProtectedTarget},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSite(t, "scope: {admission: {namespaces: {exclude: [shop, kube-system]}}}\n") // of the webhook alone
			s.write("all.yaml", tc.manifest)
			s.refused(tc.reason)
		})
	}
	s := newSite(t, "scope: {admission: {namespaces: {exclude: [shop]}}}\n")
	s.write("all.yaml", web("", ""))
	s.refused(gate.ReceiptMissing)
}

func TestRedTeamF02AnAggregatedClusterRoleHidesNoRules(t *testing.T) {
	role := func(metadata, rest string) string {
		return object("rbac.authorization.k8s.io/v1", "ClusterRole", metadata, rest)
	}
	const everything = "rules: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]"
	s := newSite(t, "")
	s.write("all.yaml", role("name: mine", "aggregationRule: {clusterRoleSelectors: [{matchLabels: {nobody: has-this}}]}, "+everything))
	s.refused(gate.ObjectMalformed, "rules")

	s.write("all.yaml", role("name: ops", everything))
	s.signed("release")
	s.allowed()
	s.write("all.yaml", role("name: ops, labels: {example.com/agg: 'true'}", everything))
	s.refused(gate.DigestMismatch, "labels[\"example.com/agg\"]")
	s.write("all.yaml", role("name: ops, labels: {app.kubernetes.io/managed-by: Helm}", everything))
	s.allowed()
	// A label that is bookkeeping must not select.
	s.write("all.yaml", role("name: mine", "aggregationRule: {clusterRoleSelectors: [{matchLabels: {app.kubernetes.io/managed-by: Helm}}]}"))
	s.refused(gate.ObjectMalformed)
}

func TestRedTeamF04TheRollbackAnnotationIsRefused(t *testing.T) {
	s := newSite(t, "")
	s.write("all.yaml", web("", ""))
	s.signed("release")
	s.write("all.yaml", strings.Replace(web("", ""), "namespace: shop", "namespace: shop, annotations: {deprecated.deployment.rollback.to: '1'}", 1))
	s.refused(gate.ObjectMalformed, "deprecated.deployment.rollback.to")
}

func TestRedTeamF05AControllerRevisionIsNotAnApplications(t *testing.T) {
	s := newSite(t, "")
	revision := object("apps/v1", "ControllerRevision", "name: db-1, namespace: shop", `revision: 1, data: {spec: {template: {spec: {containers: [{name: db, image: "evil.example/db:666@`+sha("e")+`"}]}}}}`)
	s.write("all.yaml", revision)
	s.refused(gate.ObjectMalformed, "ControllerRevision shop/db-1", "controller")
}

func TestRedTeamF06IssuerIsLimitedBySubjectAndEnvironment(t *testing.T) {
	s := newSiteOf(t, siteHeader+`acceptsEnvironments: [test]
issuers:
- {name: release, keys: {file: keys/release.jwks.json}, subjects: ['*/*/shop/*'], environments: [test]}
- {name: security, keys: {file: keys/security.jwks.json}, subjects: ['*/*/shop/*']}
`)
	elsewhere := strings.Replace(web("", ""), "namespace: shop", "namespace: bank", 1)
	s.write("all.yaml", elsewhere)
	s.forge("security", func(c *receipt.Claims) {})
	s.refused(gate.IssuerNotAllowed, "issuer security may not sign apps/Deployment/bank/web")
	s.remove(".syncgate")
	s.write("all.yaml", object("rbac.authorization.k8s.io/v1", "ClusterRole", "name: shop", "rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]"))
	s.forge("security", func(c *receipt.Claims) {})
	s.refused(gate.IssuerNotAllowed, "rbac.authorization.k8s.io/ClusterRole/-/shop")
	s.remove(".syncgate")
	s.write("all.yaml", web("", ""))
	s.forge("release", func(c *receipt.Claims) {})
	s.refused(gate.IssuerNotAllowed, "issuer release may not sign for environment prod")

	s.policy(siteHeader + siteRelease + "- {name: security, keys: {file: keys/security.jwks.json}}\n")
	if got := s.policyError(); !strings.Contains(got, "issuers[1].subjects: missing") {
		t.Errorf("a second issuer without subjects: got %q, want it refused", got)
	}
}

func TestRedTeamF07WhatChoosesTheProgramIsGatedByDefault(t *testing.T) {
	for name, container := range map[string]string{
		"command":                  `command: [sh, -c, "cat /var/run/secrets/*"]`,
		"args":                     `args: [--serve-files, /]`,
		"working directory":        `workingDir: /tmp`,
		"LD_PRELOAD":               `env: [{name: LD_PRELOAD, value: /tmp/x.so}]`,
		"NODE_OPTIONS":             `env: [{name: NODE_OPTIONS, value: "-r /tmp/x"}]`,
		"JAVA_TOOL_OPTIONS":        `env: [{name: JAVA_TOOL_OPTIONS, value: "-javaagent:/tmp/x"}]`,
		"PATH":                     `env: [{name: PATH, value: /tmp}]`,
		"a probe's command":        `livenessProbe: {exec: {command: [sh, -c, evil]}}`,
		"a hook's command":         `lifecycle: {postStart: {exec: {command: [sh, -c, evil]}}}`,
		"variables of a ConfigMap": `envFrom: [{configMapRef: {name: any}}]`,
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, "")
			s.write("all.yaml", web("", ""))
			s.signed("release")
			s.allowed()
			s.write("all.yaml", web("", container))
			s.refused(gate.DigestMismatch, "Deployment shop/web")
		})
	}
	t.Run("a ConfigMap mounted over programs", func(t *testing.T) {
		s := newSite(t, "")
		mounted := func(path string) string {
			return web("volumes: [{name: c, configMap: {name: c}}]", "volumeMounts: [{name: c, mountPath: "+path+"}]")
		}
		s.write("all.yaml", mounted("/config"))
		s.signed("release")
		s.allowed()
		s.write("all.yaml", mounted("/usr/bin"))
		s.refused(gate.DigestMismatch)
	})
}

func TestRedTeamF08LabelsOfANamespaceAreGatedBothWays(t *testing.T) {
	namespace := func(labels string) string {
		return object("v1", "Namespace", "name: shop, labels: {"+labels+"}", "")
	}
	s := newSite(t, "")
	const gated = "syncgate.example/gate: 'on', pod-security.kubernetes.io/enforce: restricted"
	s.write("all.yaml", namespace(gated))
	s.signed("release")
	s.allowed()
	for _, labels := range []string{"pod-security.kubernetes.io/enforce: restricted", "syncgate.example/gate: 'on'", gated + ", istio-injection: disabled"} {
		s.write("all.yaml", namespace(labels))
		s.refused(gate.DigestMismatch, "Namespace shop", "metadata.labels[")
	}
}

func TestRedTeamF11ForceIsRefusedBeforeAnythingIsDeleted(t *testing.T) {
	s := newSite(t, "")
	binding := object("rbac.authorization.k8s.io/v1", "RoleBinding", "name: b, namespace: shop, annotations: {%}", "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}, subjects: [{kind: User, name: u}]")
	for _, annotation := range []string{siteForged, "kustomize.toolkit.fluxcd.io/force: enabled"} {
		s.write("all.yaml", strings.Replace(binding, "%", annotation, 1))
		s.refused(gate.ForceNotAllowed, "RoleBinding shop/b", "would delete a running object")
	}
	job := object("batch/v1", "Job", "name: j, namespace: shop, annotations: {"+siteForged+"}", `spec: {template: {spec: {containers: [{name: j, image: "`+webImage("1", "a")+`"}]}}}`)
	s.write("all.yaml", job)
	s.signed("release")
	s.allowed()

	flux := func(spec string) string {
		return object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "name: k, namespace: shop", "spec: {"+spec+"path: ./app, sourceRef: {kind: GitRepository, name: r}}")
	}
	s.write("all.yaml", flux("force: true, "))
	s.refused(gate.ForceNotAllowed, "Kustomization shop/k", "spec.force")
	s.write("all.yaml", flux("force: false, "))
	s.refused(gate.ReceiptMissing, "delivery")
}

func TestRedTeamF21AnAppOfAppsDoesNotWalkRoundTheGate(t *testing.T) {
	for apiKind, spec := range map[string]string{
		"argoproj.io/v1alpha1 Application":                        "source: {repoURL: 'https://evil.example/x', path: .}",
		"argoproj.io/v1alpha1 ApplicationSet":                     "generators: [{list: {}}]",
		"argoproj.io/v1alpha1 AppProject":                         "sourceRepos: ['*']",
		"kustomize.toolkit.fluxcd.io/v1 Kustomization":            "path: ./x",
		"helm.toolkit.fluxcd.io/v2 HelmRelease":                   "chart: {spec: {chart: x}}",
		"helm.cattle.io/v1 HelmChart":                             "chart: x",
		"operators.coreos.com/v1alpha1 Subscription":              "name: x",
		"kubernetes.crossplane.io/v1alpha2 Object":                "forProvider: {manifest: {kind: ClusterRoleBinding}}",
		"work.open-cluster-management.io/v1 ManifestWork":         "workload: {manifests: [{kind: Role}]}",
		"apiextensions.k8s.io/v1 CustomResourceDefinition":        "conversion: {strategy: Webhook, webhook: {clientConfig: {url: 'https://evil.example'}}}",
		"apiregistration.k8s.io/v1 APIService":                    "group: x.example, version: v1, service: {name: x, namespace: shop}",
		"admissionregistration.k8s.io/v1 MutatingAdmissionPolicy": "failurePolicy: Ignore",
	} {
		t.Run(apiKind, func(t *testing.T) {
			apiVersion, kind, _ := strings.Cut(apiKind, " ")
			s := newSite(t, "")
			s.write("all.yaml", object(apiVersion, kind, "name: x, namespace: shop", "spec: {"+spec+"}"))
			s.refused(gate.ReceiptMissing, kind)
		})
	}
	t.Run("a kind that policy names", func(t *testing.T) {
		s := newSite(t, "kinds:\n- {group: external-secrets.io, kind: ExternalSecret, path: spec.secretStoreRef.name, category: x-secrets}\n")
		secret := func(store string) string {
			return object("external-secrets.io/v1", "ExternalSecret", "name: x, namespace: shop", "spec: {secretStoreRef: {name: "+store+"}}")
		}
		s.write("all.yaml", secret("shop"))
		s.refused(gate.ReceiptMissing, "x-secrets")
		s.signed("release")
		s.allowed()
		s.write("all.yaml", secret("bank"))
		s.refused(gate.DigestMismatch, "spec.secretStoreRef.name")
	})
}

func TestRedTeamF22WhatRelaxesIsSelectedByTheCacheKeyAlone(t *testing.T) {
	for name, tc := range map[string]struct{ rule, want string }{
		"mode by project":        {"match: {project: sandbox}, mode: {render: Warn}", "apps[0].mode.render: relaxes the check"},
		"mode by repository":     {"match: {repository: 'https://git.example/*'}, mode: {render: Warn}", "apps[0].mode.render: relaxes the check"},
		"categories by project":  {"match: {project: sandbox}, categories: [{name: command, required: false}]", "apps[0].categories[0]: relaxes the check"},
		"placeholder by project": {"match: {project: sandbox}, images: {allowUnpinned: ['*']}", "apps[0].images.allowUnpinned: relaxes the check"},
		"mode by name":           {"match: {name: sandbox-*}, mode: {render: Warn}", ""},
		"stricter by project":    {"match: {project: sandbox}, images: {pins: AlreadyPinned}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, "apps:\n- {"+tc.rule+"}\n")
			if got := s.policyError(); tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	s := newSite(t, "apps:\n- {match: {name: sandbox-*}, mode: {render: Warn}}\n- {match: {project: prod}, mode: {render: Enforce}}\n")
	s.who = policy.App{Name: "sandbox-1", Namespace: "shop"}
	if diff := cmp.Diff(true, s.effective().Warn); diff != "" {
		t.Errorf("Warn for sandbox-1 (-want +got):\n%s", diff)
	}
	s.who.Project = "prod"
	if diff := cmp.Diff(false, s.effective().Warn); diff != "" {
		t.Errorf("Warn for sandbox-1 in project prod (-want +got):\n%s", diff)
	}
}
