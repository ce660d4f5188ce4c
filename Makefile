# make help lists the targets.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c

MODULES := . e2e e2e/kube e2e/argocd2
PROGRAMS := $(patsubst %,./%,$(filter-out cmd/internal,$(wildcard cmd/*)))
FUZZTIME ?= 30s
IMAGE ?= ghcr.io/syncgate/syncgate:dev

.PHONY: help demo test e2e lint bench fuzz build corpus image tidy

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / {printf "%-8s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

demo: ## show an allowed and a refused change, without a cluster
	go run ./cmd/internal/demo

test: ## run the tests that need nothing but Go and git
	.ci/run test

e2e: ## run a real control plane and a real Argo CD on loopback
	.ci/run e2e

lint: ## vet, gofmt, staticcheck and generated files, in all modules
	.ci/run lint

bench: ## run the benchmarks
	go test -run '^$$' -bench . -benchmem ./...

fuzz: ## run every fuzz target for FUZZTIME
	for package in $$(go list ./...); do
		for target in $$(go test -list '^Fuzz' "$$package" | grep '^Fuzz' || true); do
			echo "== $$package $$target"
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime '$(FUZZTIME)' "$$package"
		done
	done

build: ## build the programs into bin/
	CGO_ENABLED=0 go build -trimpath -o bin/ $(PROGRAMS)

corpus: ## run the tests over a corpus of real manifests (SYNCGATE_SHARED)
	: "$${SYNCGATE_SHARED:?names the folder with corpus/open}"
	go test -count=1 -v -run Corpus ./plugin/...

image: ## build the container image IMAGE
	docker build --tag '$(IMAGE)' .

tidy: ## tidy the go.mod of every module
	for module in $(MODULES); do
		(cd "$$module" && go mod tidy)
	done

.ONESHELL:
