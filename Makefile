# make help lists the targets.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c

MODULES := . e2e e2e/fluxgen e2e/kube e2e/argocd2 e2e/argocd3 e2e/flux e2e/native/kustomize e2e/native/helm
PROGRAMS := $(patsubst %,./%,$(filter-out cmd/internal,$(wildcard cmd/*)))
FUZZTIME ?= 30s
SOAK ?= 10m
PUSHES ?= 200
APPS ?= 200
CORPUS ?= ../shared/corpus/open
OUT ?= bin/corpus.tsv
# What other renderers make of the same folder, if it stands beside it.
EXPECT ?= $(patsubst %/,%,$(dir $(patsubst %/,%,$(CORPUS))))/RENDER.tsv
# The version for argocd-up and scale-argocd: v3.2.11 or v2.14.21.
ARGOCD ?= v3.2.11
IMAGE ?= ghcr.io/syncgate/syncgate:dev

.PHONY: help demo argocd-up flux-up test e2e lint bench soak fuzz build corpus parity parity-flux invariance invariance-record flux-race scale-argocd scale-flux image tidy

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "%-17s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

demo: ## show an allowed and a refused change, without a cluster
	go run ./cmd/internal/demo

argocd-up: ## start Argo CD with the gate and an application on loopback, to look at, until Ctrl-C (ARGOCD=v2.14.21: that version)
	@e2e/build.sh >/dev/null
	cd e2e
	GOWORK=off go build -o ../bin/argocd-up ./up
	exec ../bin/argocd-up --argocd '$(ARGOCD)'

flux-up: ## start Flux with the gate in both modes and two applications on loopback, to look at, until Ctrl-C
	@e2e/build.sh >/dev/null
	cd e2e
	GOWORK=off go build -o ../bin/flux-up ./up
	exec ../bin/flux-up --flux

test: ## run the tests that need nothing but Go and git
	.ci/run test

e2e: ## run a real control plane and a real Argo CD on loopback
	.ci/run e2e

lint: ## vet, gofmt, staticcheck and generated files, in all modules
	.ci/run lint

bench: ## run the benchmarks; ends with one line BENCH<TAB>name<TAB>value<TAB>limit a measure
	go test -run '^$$' -bench . -benchmem -benchtime 200ms ./plugin/...
	go run ./plugin/internal/bench
	go run ./cmd/internal/load
	go run ./cmd/internal/load --cold 9

soak: ## put the webhook under load for SOAK while its files change, then end it
	go run ./cmd/internal/load --soak '$(SOAK)'

fuzz: ## run every fuzz target for FUZZTIME
	for package in $$(go list ./...); do
		for target in $$(go test -list '^Fuzz' "$$package" | grep '^Fuzz' || true); do
			echo "== $$package $$target"
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime '$(FUZZTIME)' "$$package"
		done
	done

build: ## build the programs into bin/
	CGO_ENABLED=0 go build -trimpath -o bin/ $(PROGRAMS)

corpus: ## run the whole gate over a folder of manifests, overlays and charts (CORPUS=DIR OUT=FILE.tsv)
	@test -d '$(CORPUS)' || { echo "no folder $(CORPUS): give CORPUS=DIR" >&2; exit 1; }
	mkdir -p "$$(dirname '$(OUT)')"
	go run ./cmd/internal/corpus --corpus '$(CORPUS)' --out '$(OUT)' \
		$(if $(wildcard $(EXPECT)),--expect '$(EXPECT)' --explained cmd/internal/corpus/explained.tsv)

parity: OUT = bin/parity.tsv
parity: ## render a folder's applications by Argo CD's own code and by the gate, and compare (CORPUS=DIR OUT=FILE.tsv)
	@test -d '$(CORPUS)' || { echo "no folder $(CORPUS): give CORPUS=DIR" >&2; exit 1; }
	mkdir -p "$$(dirname '$(OUT)')"
	built=$$(e2e/build.sh native)
	path() { awk -v name="$$1" '$$1 == name { print $$2 }' <<<"$$built"; }
	go run ./cmd/internal/parity --corpus '$(CORPUS)' --out '$(OUT)' --explained cmd/internal/parity/explained.tsv \
		--argocd "$$(path argocd2)" --kustomize "$$(path kustomize)" --helm "$$(path helm)"

parity-flux: OUT = bin/parity-flux.tsv
parity-flux: ## build a folder's kustomizations by kustomize-controller's own libraries and by the gate, and compare (CORPUS=DIR OUT=FILE.tsv)
	@test -d '$(CORPUS)' || { echo "no folder $(CORPUS): give CORPUS=DIR" >&2; exit 1; }
	mkdir -p "$$(dirname '$(OUT)')" bin
	(cd e2e/flux && GOWORK=off CGO_ENABLED=0 go build -gcflags=all=-dwarf=false -ldflags '-s -w' -o ../../bin/flux-native ./native)
	go run ./cmd/internal/parity --corpus '$(CORPUS)' --out '$(OUT)' --explained cmd/internal/parity/explained_flux.tsv --flux bin/flux-native

invariance: OUT = bin/invariance.tsv
invariance: ## ask a real API server whether the digests of a folder's manifests stay once stored (CORPUS=DIR OUT=FILE.tsv)
	@test -d '$(CORPUS)' || { echo "no folder $(CORPUS): give CORPUS=DIR" >&2; exit 1; }
	mkdir -p "$$(dirname '$(OUT)')"
	e2e/build.sh
	export GOWORK=off SYNCGATE_INVARIANCE_CORPUS='$(abspath $(CORPUS))' SYNCGATE_INVARIANCE_OUT='$(abspath $(OUT))'
	(cd e2e && go test -tags e2e -count=1 -timeout 60m -v -run '^TestDigestsStayOnceStored$$' .)

invariance-record: ## record again what the API server stores of plugin/projection/testdata/invariance/inputs
	e2e/build.sh
	export GOWORK=off SYNCGATE_INVARIANCE_RECORD='$(abspath plugin/projection/testdata/invariance/pairs)'
	(cd e2e && go test -tags e2e -count=1 -v -run '^TestTheRecordedSelectionIsWhatTheAPIServerDoes$$' .)

flux-race: ## push PUSHES times, signed and unsigned in turn, as fast as a real Flux goes, in each mode
	e2e/build.sh
	export GOWORK=off SYNCGATE_E2E_FLUX_PUSHES='$(PUSHES)'
	(cd e2e && go test -tags e2e -count=1 -timeout 60m -v -run '^TestFluxRace' .)

scale-argocd: ## refresh APPS applications of 30 objects at once in a real Argo CD, natively and by the plugin (ARGOCD=v2.14.21: in that one)
	e2e/build.sh native
	export GOWORK=off SYNCGATE_E2E_SCALE='$(APPS)' SYNCGATE_E2E_SCALE_ARGOCD='$(ARGOCD)'
	(cd e2e && go test -tags e2e -count=1 -timeout 60m -v -run '^TestOneApplicationHoldsUpNoOther$$' .)

scale-flux: ## change APPS Kustomizations of a repository at once in a real Flux, without the gate and in each of its modes
	e2e/build.sh
	export GOWORK=off SYNCGATE_E2E_FLUX_SCALE='$(APPS)'
	(cd e2e && go test -tags e2e -count=1 -timeout 60m -v -run '^TestFluxScale$$' .)

image: ## build the container image IMAGE
	docker build --tag '$(IMAGE)' .

tidy: ## tidy the go.mod of every module
	for module in $(MODULES); do
		(cd "$$module" && go mod tidy)
	done

.ONESHELL:
