#!/usr/bin/env bash
# build.sh [native] builds the control plane and Argo CD from their Go modules,
# and with "native" kustomize and Helm, and prints one line each: NAME PATH.
#
# Linking them takes a minute on a small machine even when the Go cache is warm,
# and compiling them takes many. So the finished binaries are kept in
# $SYNCGATE_E2E_CACHE (default: syncgate-e2e in the user's cache folder), named
# by a hash of everything that goes into them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

command -v go >/dev/null || { echo "build.sh: go is missing" >&2; exit 1; }

cache=${SYNCGATE_E2E_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/syncgate-e2e}
mkdir -p "$cache"

# What "kubectl version" and the API server's /version say; Argo CD hands the
# latter to its plugins as KUBE_VERSION.
kube_version() {
	local version=v1.37.2 package flags=""
	for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
		flags+=" -X $package.gitVersion=$version -X $package.gitMajor=1 -X $package.gitMinor=37"
		flags+=" -X $package.gitTreeState=clean -X $package.gitCommit=from-module"
		flags+=" -X $package.buildDate=1970-01-01T00:00:00Z"
	done
	echo "$flags"
}

# build NAME DIR LDFLAGS [PACKAGE]: the package in DIR, or one of the tools of
# the module there.
build() {
	local name=$1 dir=$2 ldflags="-s -w $3" package=${4:-.} key out tmp
	key=$({
		go version
		echo "$ldflags $package"
		[ "$package" != . ] || cat "$dir"/*.go
		cat "$dir/go.mod" "$dir/go.sum" build.sh
	} | sha256sum | cut -c1-16)
	out=$cache/$name-$key
	if [ ! -x "$out" ]; then
		echo "build.sh: building $name (many minutes when the Go cache is cold)" >&2
		tmp=$(mktemp "$cache/.$name.XXXXXX")
		# Without debug information these compile in half the memory.
		# GOGC trades some of that for time.
		if ! (cd "$dir" && GOGC=${GOGC:-400} GOWORK=off GOFLAGS=-mod=readonly CGO_ENABLED=0 \
			go build -gcflags=all=-dwarf=false -ldflags "$ldflags" -o "$tmp" "$package" >&2); then
			rm -f "$tmp"
			echo "build.sh: building $name failed" >&2
			exit 1
		fi
		chmod 0755 "$tmp"
		mv "$tmp" "$out"
		# Nobody asks for the binary of an old hash again.
		find "$cache" -maxdepth 1 -name "$name-*" -mtime +30 ! -path "$out" -delete
	fi
	echo "$name $out"
}

build kube kube "$(kube_version)"
build argocd2 argocd2 ""
build argocd3 argocd3 ""
build flux-source flux "" github.com/fluxcd/source-controller
build flux-kustomize flux "" github.com/fluxcd/kustomize-controller
# Those that Argo CD v2.14 brings along (hack/tool-versions.sh there), under the
# names by which it calls them, for what it renders itself.
if [ "${1:-}" = native ]; then
	build kustomize native/kustomize "" sigs.k8s.io/kustomize/kustomize/v5
	build helm native/helm "" helm.sh/helm/v3/cmd/helm
fi
# The CRDs and the stock repo-server come from the very modules that were built,
# which the module cache need not hold when the binaries were not built just now.
for major in 2 3; do
	module=github.com/argoproj/argo-cd/v$major
	dir=$(cd "argocd$major" && export GOWORK=off && go mod download "$module" >&2 && go list -m -f '{{.Dir}}' "$module")
	[ -d "$dir" ] || { echo "build.sh: no folder of $module" >&2; exit 1; }
	echo "argocd$major-manifests $dir/manifests"
done
for controller in source kustomize; do
	module=github.com/fluxcd/$controller-controller
	dir=$(cd flux && export GOWORK=off && go mod download "$module" >&2 && go list -m -f '{{.Dir}}' "$module")
	[ -d "$dir" ] || { echo "build.sh: no folder of $module" >&2; exit 1; }
	echo "flux-$controller-crds $dir/config/crd/bases"
done
