// Package migrate rewrites Argo CD Applications and ApplicationSets whose sources
// are rendered by Argo CD itself (kustomize, helm, directory) so that the plugin
// renders the same. What cannot move is listed with its reason. All of a file
// that is not such a source stays byte for byte.
//
//	helm:                                plugin:
//	  valueFiles: [prod.yaml]     ->       name: syncgate
//	  skipCrds: true                       parameters:
//	                                       - {name: renderer, string: helm}
//	                                       - name: helm.valueFiles
//	                                         array: [prod.yaml]
//	                                       - {name: helm.skipCrds, string: "true"}
package migrate
