package projection

import "encoding/json"

// filledIn are the values that the API server fills in where no API type of
// schema_gen.go says so: what the schemas of custom resources give as defaults
// (Flux source-controller 1.9 and helm-controller 1.6, Operator Lifecycle
// Manager 0.30, Open Cluster Management 1.0), and those of the API server's own
// extension kinds. By group/Kind, then path; [] stands for the items of a list.
var filledIn = map[string]map[string]any{
	"apiregistration.k8s.io/APIService": {
		"spec.service.port":          json.Number("443"),
		"spec.insecureSkipTLSVerify": false,
	},
	"apiextensions.k8s.io/CustomResourceDefinition": {
		"spec.conversion.webhook.clientConfig.service.port": json.Number("443"),
	},
	"kustomize.toolkit.fluxcd.io/Kustomization": {
		"spec.force": false,
		"spec.postBuild.substituteFrom[].optional": false,
	},
	"source.toolkit.fluxcd.io/Bucket": {"spec.provider": "generic"},
	"source.toolkit.fluxcd.io/GitRepository": {
		"spec.gitImplementation": "go-git",
		"spec.verify.mode":       "HEAD",
	},
	"source.toolkit.fluxcd.io/HelmChart": {
		"spec.reconcileStrategy": "ChartVersion",
		"spec.verify.provider":   "cosign",
		"spec.version":           "*",
	},
	"source.toolkit.fluxcd.io/HelmRepository": {"spec.provider": "generic"},
	"source.toolkit.fluxcd.io/OCIRepository": {
		"spec.provider":        "generic",
		"spec.verify.provider": "cosign",
	},
	"helm.toolkit.fluxcd.io/HelmRelease": {
		"spec.chart.spec.reconcileStrategy":  "ChartVersion",
		"spec.chart.spec.verify.provider":    "cosign",
		"spec.chart.spec.version":            "*",
		"spec.uninstall.deletionPropagation": "background",
	},
	"resource.k8s.io/ResourceClaimTemplate": {"spec.metadata": emptyObject},
	"operators.coreos.com/Subscription": {
		"spec.config.env[].valueFrom.configMapKeyRef.name":         "",
		"spec.config.env[].valueFrom.secretKeyRef.name":            "",
		"spec.config.envFrom[].configMapRef.name":                  "",
		"spec.config.envFrom[].secretRef.name":                     "",
		"spec.config.volumes[].azureDisk.fsType":                   "ext4",
		"spec.config.volumes[].azureDisk.readOnly":                 false,
		"spec.config.volumes[].cephfs.secretRef.name":              "",
		"spec.config.volumes[].cinder.secretRef.name":              "",
		"spec.config.volumes[].configMap.name":                     "",
		"spec.config.volumes[].csi.nodePublishSecretRef.name":      "",
		"spec.config.volumes[].flexVolume.secretRef.name":          "",
		"spec.config.volumes[].iscsi.iscsiInterface":               "default",
		"spec.config.volumes[].iscsi.secretRef.name":               "",
		"spec.config.volumes[].projected.sources[].configMap.name": "",
		"spec.config.volumes[].projected.sources[].secret.name":    "",
		"spec.config.volumes[].rbd.keyring":                        "/etc/ceph/keyring",
		"spec.config.volumes[].rbd.pool":                           "rbd",
		"spec.config.volumes[].rbd.secretRef.name":                 "",
		"spec.config.volumes[].rbd.user":                           "admin",
		"spec.config.volumes[].scaleIO.fsType":                     "xfs",
		"spec.config.volumes[].scaleIO.secretRef.name":             "",
		"spec.config.volumes[].scaleIO.storageMode":                "ThinProvisioned",
		"spec.config.volumes[].storageos.secretRef.name":           "",
	},
	"work.open-cluster-management.io/ManifestWork": {
		"spec.deleteOption.propagationPolicy":                                            "Foreground",
		"spec.manifestConfigs[].updateStrategy.serverSideApply.fieldManager":             "work-agent",
		"spec.manifestConfigs[].updateStrategy.serverSideApply.ignoreFields[].condition": "OnSpokePresent",
		"spec.manifestConfigs[].updateStrategy.type":                                     "Update",
	},
}

// withoutFilledIn copies what stands at path in obj, without members that say
// what an absent one means.
func withoutFilledIn(obj map[string]any, path string, v any) any {
	group, kind := groupKind(obj)
	defaults := filledIn[group+"/"+kind]
	if len(defaults) == 0 {
		return v
	}
	return copyWithoutFilledIn(defaults, path, v)
}

func copyWithoutFilledIn(defaults map[string]any, path string, v any) any {
	switch t := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(t))
		for k, x := range t {
			at := path + "." + fieldName(k)
			if def, ok := defaults[at]; ok && equalsDefault(def, x) {
				continue
			}
			out[k] = copyWithoutFilledIn(defaults, at, x)
		}
		return out
	case []any:
		out := make([]any, len(t))
		for i, x := range t {
			out[i] = copyWithoutFilledIn(defaults, path+"[]", x)
		}
		return out
	}
	return v
}

func equalsDefault(def, v any) bool {
	if n, ok := integer(v); ok {
		return def == n
	}
	switch t := v.(type) {
	case string, bool:
		return def == v && def != emptyObject
	case map[string]any:
		for _, x := range t {
			if x != nil {
				return false
			}
		}
		return def == emptyObject
	}
	return false
}
