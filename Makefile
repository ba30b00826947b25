# Tidekeeper. Needs Go, git and make; `make help` lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

GO ?= go
# All is compiled alike, so that what many need is compiled once; only the race detector needs
# another way, and a C compiler. What go test would have vet look for, make lint finds.
FLAGS := $(strip $(filter-out -trimpath -vet=off,$(shell $(GO) env GOFLAGS)))
export GOFLAGS := -trimpath -vet=off $(FLAGS)
export CGO_ENABLED := 0
# kubectl for install, deploy and so on; bin/kubectl is the sandbox's own.
KUBECTL ?= kubectl
BIN := $(CURDIR)/bin

# A version, such as v1.2.3, v1.2.3-4-gabcdef0-dirty or v0.0.0-abcdef0.
VERSION ?= $(shell git describe --tags --match 'v*' --dirty 2>/dev/null || echo v0.0.0-$$(git describe --always --dirty 2>/dev/null || echo unknown))
LDFLAGS := -s -w -X tidekeeper.dev/tidekeeper/internal/version.version=$(VERSION)

# Not every machine has what the race detector needs.
RACE ?= $(shell command -v $$($(GO) env CC) >/dev/null 2>&1 && echo -race)

# What the black-box tests run. Those of e2e take the builds for the race detector, if
# there are any.
PROGRAMS = SANDBOX_BIN=$(BIN)/sandbox TIDEKEEPER_BIN=$(BIN)/tidekeeper TIDE_BIN=$(BIN)/kubectl-tide \
	HELM_BIN=$(BIN)/helm E2E_BIN=$(BIN)/e2e.test PROMETHEUS_BIN=$(BIN)/prometheus PROMTOOL_BIN=$(BIN)/promtool ARGO_BIN=$(BIN)/argo-rollouts \
	METRICS_SERVER_BIN=$(BIN)/metrics-server DESCHEDULER_BIN=$(BIN)/descheduler CERT_MANAGER_BIN=$(BIN)/cert-manager \
	PROMETHEUS_OPERATOR_BIN=$(BIN)/prometheus-operator $(if $(RACE),TIDEKEEPER_RACE_BIN=$(BIN)/tidekeeper-race PROXY_RACE_BIN=$(BIN)/proxy-race)

space := $(subst ,, )

# How many suites of black-box tests run side by side, each with a sandbox of its
# own: they wait most of the time. The longest come first. Those that are ALONE fail
# if something takes some seconds, and run when the rest is done.
SUITES ?= 2
SIDE_BY_SIDE := ./e2e ./cli ./page ./neighbors ./install ./fault/outage ./scale ./capacity ./fault/explore ./fault/fuzz ./fault/underway ./fault/forgery ./fault/clock ./monitoring ./argo \
	./readme ./framework ./fault/clock/manager
ALONE := ./tenants

# $(call go-test,arguments): go test, with the slowest tests at the end.
go-test = $(PROGRAMS) $(if $(findstring -race,$(1)),CGO_ENABLED=1) $(GO) test $(1) -json | $(GO) run $(CURDIR)/hack/slowest

# The tools are pinned in a module of their own, so that what they need does
# not become what Tidekeeper needs.
TOOL := $(GO) tool -modfile=$(CURDIR)/hack/tools/go.mod
CONTROLLER_GEN := $(TOOL) controller-gen
GOLANGCI_LINT := $(TOOL) golangci-lint

MODULES := . test sandbox sandbox/client hack/demo hack/tools hack/helm hack/plot hack/prometheus hack/argo-rollouts hack/metrics-server hack/descheduler hack/cert-manager hack/prometheus-operator hack/kubelet hack/containerd
GENERATED := api/v1/zz_generated.deepcopy.go api/applyconfiguration config/crd/bases config/rbac/role.yaml config/rbac/role_binding.yaml config/rbac/*/ charts/tidekeeper/files charts/tidekeeper/values.schema.json config/monitoring/dashboards docs/reference test/readme/guestbook

# $(call build,name,command): says what is built, and how long it took.
define build
@echo "building bin/$(1)"; start=$$(date +%s); $(2); echo "built    bin/$(1) in $$(( $$(date +%s) - start )) s"
endef

##@ Every day

.PHONY: help
help: ## Show this list.
	@awk 'BEGIN {FS = ":.*## "} /^##@ / {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: build-sandbox build-tidekeeper build-kubectl-tide ## Build everything into bin/.

# Go decides what is stale, so these always ask it. A first build of the
# sandbox compiles Kubernetes, which takes minutes.
.PHONY: build-sandbox
build-sandbox:
	$(call build,sandbox,$(MAKE) --no-print-directory -C sandbox build OUT=$(BIN))

.PHONY: build-kubernetes
build-kubernetes: ## Build the control plane of another release of Kubernetes into bin/, for 'sandbox up --kubernetes'. KUBERNETES=1.34; it takes minutes.
	$(call build,kubernetes-$(KUBERNETES),$(MAKE) --no-print-directory -C sandbox build-kubernetes KUBERNETES=$(KUBERNETES) OUT=$(BIN))

.PHONY: build-tidekeeper
build-tidekeeper:
	$(call build,tidekeeper,$(GO) build -ldflags '$(LDFLAGS)' -o $(BIN)/tidekeeper ./cmd/tidekeeper)

# For the black-box tests that look for data races: compiled the way that the unit
# tests are, so that nearly all of it is compiled already. Kubernetes itself is not
# compiled with the race detector, which would take very long; the packages of the
# simulated kubelets have their own tests with it.
.PHONY: build-race
build-race:
ifneq ($(RACE),)
	$(call build,tidekeeper-race,CGO_ENABLED=1 $(GO) build $(RACE) -ldflags '$(LDFLAGS)' -o $(BIN)/tidekeeper-race ./cmd/tidekeeper)
	$(call build,proxy-race,$(MAKE) --no-print-directory -C sandbox build-proxy-race OUT=$(BIN))
endif

.PHONY: build-kubectl-tide
build-kubectl-tide:
	$(call build,kubectl-tide,$(GO) build -ldflags '$(LDFLAGS)' -o $(BIN)/kubectl-tide ./cmd/kubectl-tide)

# $(eval $(call pinned,NAME,PACKAGE)): a target that compiles bin/NAME for tests, from the module
# that hack/NAME pins, once for each version. From an empty cache each takes minutes.
define pinned
.PHONY: build-$(1)
build-$(1): $$(BIN)/$(1)
$$(BIN)/$(1): hack/$(1)/go.mod hack/$(1)/go.sum
	$$(call build,$(1),cd hack/$(1) && $$(GO) build -ldflags '-s -w' -o $$@ $(2) && touch $$@)
endef
$(eval $(call pinned,helm,helm.sh/helm/v4/cmd/helm))
$(eval $(call pinned,argo-rollouts,github.com/argoproj/argo-rollouts/cmd/rollouts-controller))
$(eval $(call pinned,metrics-server,sigs.k8s.io/metrics-server/cmd/metrics-server))
$(eval $(call pinned,descheduler,sigs.k8s.io/descheduler/cmd/descheduler))
$(eval $(call pinned,prometheus-operator,github.com/prometheus-operator/prometheus-operator/cmd/operator))
# Controllers of cert-manager, with a main package of ours.
$(eval $(call pinned,cert-manager,.))
$(BIN)/cert-manager: hack/cert-manager/main.go

# For the tests of alerts and dashboards, once for each version. The tags leave out
# the service discovery of every cloud; the build takes minutes all the same.
.PHONY: build-prometheus
build-prometheus: $(BIN)/promtool
$(BIN)/promtool: hack/prometheus/go.mod hack/prometheus/go.sum hack/prometheus/tags
	$(call build,prometheus and bin/promtool,cd hack/prometheus && $(GO) build -tags $$(cat tags) -ldflags '-s -w' -o $(BIN)/ \
		github.com/prometheus/prometheus/cmd/prometheus github.com/prometheus/prometheus/cmd/promtool && touch $@)

# What test/neighbors runs.
BUILD_NEIGHBORS := $(addprefix build-,helm metrics-server descheduler cert-manager prometheus prometheus-operator)

# What real nodes of the sandbox run, once for each version: sandbox up --real-nodes.
.PHONY: build-node
build-node: $(BIN)/node/pause ## Build what runs on real nodes of the sandbox into bin/node/: a kubelet, containerd, runc. It takes minutes.
$(BIN)/node/pause: hack/build-node hack/kubelet/go.mod hack/kubelet/go.sum hack/containerd/go.mod hack/containerd/go.sum $(wildcard sandbox/cmd/pause/*.go sandbox/cmd/runc-without-seccomp/*.go)
	$(call build,node,GO=$(GO) hack/build-node $(BIN)/node && touch $@)

# Its tests are run against an installation, too.
.PHONY: build-e2e-test
build-e2e-test:
	$(call build,e2e.test,$(if $(RACE),CGO_ENABLED=1) $(GO) test -C test -c $(RACE) -o $(BIN)/e2e.test ./e2e)

.PHONY: demo
demo: build-sandbox build-tidekeeper build-kubectl-tide ## Show a node pool on a real control plane. DEMO=once ends by itself, PAGE=1 opens the page of its cluster.
	$(GO) build -C hack/demo -o $(BIN)/demo . && $(BIN)/demo $(if $(filter once,$(DEMO)),--once) $(if $(PAGE),--page)

.PHONY: run
run: ## Run the manager from source. ARGS="--kubeconfig FILE".
	$(GO) run -ldflags '$(LDFLAGS)' ./cmd/tidekeeper --log-format=text $(ARGS)

.PHONY: clean
clean: ## Remove what was built.
	rm -rf $(BIN) sandbox/bin

##@ Tests

.PHONY: test
test: test-unit test-e2e test-rest ## Run all tests: unit, property, black-box on the sandbox, an installation's life, alerts and dashboards, and the sandbox's own.

# Without the race detector, whose builds take time.
.PHONY: check
check: RACE :=
check: test-unit build-sandbox build-tidekeeper build-kubectl-tide ## Find most mistakes in little time: unit tests, lint of what has changed since BASE (main), a black-box test of each capability.
	GOLANGCI_LINT='$(GOLANGCI_LINT)' hack/lint-changed
	$(call go-test,-C test -count=1 -p=2 -timeout=10m -run='$(CHECKED_PATTERN)' ./e2e ./cli)

# The black-box tests of make check.
CHECKED := TestNodePool_Spec TestNodePool_DeletionCleansNodes TestRestart_SpecAndStatus TestRestart_AllKinds TestOptIn_MakesASuspendedRestart \
	TestPodCount_OffByDefault TestPodStartupByPool TestManager_ProbesAndMetrics TestPools TestRestartsNext TestPodsTimelineAndSlow
CHECKED_PATTERN = ^($(subst $(space),|,$(CHECKED)))$$

.PHONY: test-unit
test-unit: ## Run the tests that need no cluster.
	$(call go-test,$(RACE) -timeout=20m ./...)

# What tests the page is skipped where there is no browser, which is said.
.PHONY: have-browser
have-browser:
	@for name in "$${CHROMIUM_BIN:-}" chromium chromium-browser chrome-headless-shell google-chrome; do \
		[ -z "$$name" ] || ! command -v "$$name" >/dev/null || exit 0; done; \
		echo "SKIPPED: the tests of kubectl tide dashboard, as there is no browser: apt-get install chromium, or set CHROMIUM_BIN"

# -count=1: Go's test cache does not know that the binaries changed.
.PHONY: test-e2e
test-e2e: have-browser build build-race build-argo-rollouts $(BUILD_NEIGHBORS) build-e2e-test ## Run the black-box tests, SUITES (2) of them side by side, some with a manager and a proxy that look for data races.
	$(call go-test,-C test $(RACE) -count=1 -p=$(SUITES) -timeout=45m $(SIDE_BY_SIDE))

.PHONY: test-page
test-page: have-browser build ## Of test-e2e, kubectl tide dashboard in a real browser.
	$(call go-test,-C test -count=1 -timeout=10m ./page)

.PHONY: bench-page
bench-page: have-browser build ## Measure the page in a browser with 1,000 nodes, 20,000 pods and 2,000 restarts: half an hour or less. make test plays it small.
	PAGE_WORLD=large $(PROGRAMS) $(GO) test -C test -v -count=1 -timeout=60m -run='^TestLargeWorldInABrowser$$' ./page

.PHONY: screenshots
screenshots: have-browser build ## Take the screenshots of docs/dashboard.md again, of the world of the tests.
	SCREENSHOTS=$(CURDIR)/docs/images $(PROGRAMS) $(GO) test -C test -count=1 -timeout=10m -run='^TestPage$$' ./page

.PHONY: test-alone
test-alone: build ## Run the black-box tests that little may disturb.
	$(call go-test,-C test $(RACE) -count=1 -p=1 -timeout=45m $(ALONE))

# Both wait most of the time.
.PHONY: test-rest
test-rest: build ## Run the black-box tests that little may disturb, and the sandbox's own beside them.
	hack/side-by-side test-alone test-sandbox

.PHONY: test-install
test-install: export FULL := $(FULL)
test-install: build build-helm build-e2e-test ## Install, upgrade, use and uninstall on a sandbox. FULL=1 uses it by all black-box tests.
	$(call go-test,-C test $(RACE) -count=1 -timeout=45m ./install)

.PHONY: test-node
test-node: build build-node build-helm build-metrics-server ## Run the manager's image and the chart on real nodes of the sandbox. Linux and root only: SKIPPED elsewhere, with the reason.
	$(PROGRAMS) $(GO) test -C test -v -count=1 -timeout=20m ./node

# What a release must do, by the black-box tests that depend on it. OF=. plays all of them,
# and only that is recorded, or SLICE=1 those of make check.
.PHONY: test-kubernetes
OF ?= $(if $(SLICE),$(CHECKED_PATTERN),.)
RECORD ?= test/testdata/kubernetes
test-kubernetes: RACE :=
test-kubernetes: build build-kubernetes ## Run the black-box tests with another release of Kubernetes. KUBERNETES=1.34; SLICE=1 for a slice of them, OF='^TestNodePool' for some.
	SANDBOX_KUBERNETES=$(KUBERNETES) $(PROGRAMS) $(GO) test -C test -json -count=1 -p=1 -timeout=60m -run='$(OF)' ./e2e ./cli | \
		$(GO) run ./hack/slowest $(if $(filter . $(CHECKED_PATTERN),$(OF)),--record=$(abspath $(RECORD))/$(KUBERNETES)$(if $(SLICE),-slice).json $(if $(SLICE),--slice) --kubernetes=$$(bash -c 'exec -a kube-apiserver $(BIN)/kubernetes-$(KUBERNETES) --version' | cut -d' ' -f2))

# The releases that can be built beside the one that the sandbox has, the oldest first.
RELEASES := $(sort $(basename $(notdir $(wildcard sandbox/kubernetes/versions/*.mod))))

.PHONY: test-releases
test-releases: ## Run the black-box tests with each release of Kubernetes that can be built: hours.
	for release in $(RELEASES); do $(MAKE) --no-print-directory test-kubernetes KUBERNETES=$$release || failed=1; done; $(MAKE) --no-print-directory generate-controllers; exit $${failed:-0}

.PHONY: test-monitoring
test-monitoring: build build-prometheus ## Test the alerts by promtool, and the dashboards by a Prometheus that scrapes the manager.
	$(call go-test,-C test $(RACE) -count=1 ./monitoring)

.PHONY: test-neighbors
test-neighbors: build $(BUILD_NEIGHBORS) ## Test what software that many clusters have does on the sandbox. SOAK=5m churns beside Tidekeeper for so long.
	$(call go-test,-C test -count=1 -timeout=30m ./neighbors)

.PHONY: test-argo
test-argo: build build-argo-rollouts ## Test restarts of Argo's Rollouts with Argo's own controller.
	$(call go-test,-C test -count=1 -timeout=10m ./argo)

.PHONY: test-sandbox
test-sandbox: ## Run the sandbox's own tests.
	$(MAKE) --no-print-directory -C sandbox test

.PHONY: fuzz
FUZZTIME ?= 10s
fuzz: ## Run every fuzz test for FUZZTIME.
	@{ grep -rlE '^func Fuzz' --include='*_test.go' . || true; } | while read -r file; do \
		for target in $$(sed -nE 's/^func (Fuzz[A-Za-z0-9_]*)\(.*/\1/p' "$$file"); do \
			(set -x; cd "$$(dirname "$$file")" && $(GO) test -run='^$$' -fuzz="^$$target\$$" -fuzztime=$(FUZZTIME) .) || exit 1; \
		done; done

.PHONY: faults
faults: build-sandbox build-tidekeeper build-argo-rollouts ## Play all faults and bad edits, of which make test plays a slice.
	FAULTS=all SANDBOX_BIN=$(BIN)/sandbox TIDEKEEPER_BIN=$(BIN)/tidekeeper ARGO_BIN=$(BIN)/argo-rollouts $(GO) test -C test -v -count=1 -p=1 -timeout=240m ./fault/...

.PHONY: soak
SOAK ?= 1h
soak: build-sandbox build-tidekeeper ## Churn for SOAK, and see that the manager does not grow.
	SOAK=$(SOAK) SANDBOX_BIN=$(BIN)/sandbox TIDEKEEPER_BIN=$(BIN)/tidekeeper $(GO) test -C test -v -count=1 -timeout=100h -run='^TestSoak$$' ./fault/outage

.PHONY: bench-sandbox
bench-sandbox: ## Measure the sandbox.
	$(MAKE) --no-print-directory -C sandbox bench

.PHONY: bench-explore
bench-explore: build ## Explore published operators with known mistakes, and print what was found. It takes ten minutes for each of four.
	cd sandbox && $(GO) run ./cmd/score $(BIN)/sandbox $(or $(OUT),$(BIN)/bench)/explore $(ROWS)

.PHONY: bench-podcache
bench-podcache: ## Measure what a pod costs in the manager's cache, beside one as the API server sends it. SIZE=small takes seconds, medium minutes; the full one needs more than 6 GiB.
	GOGC=25 SIZE=$(or $(SIZE),full) $(GO) test -v -count=1 -timeout=30m -run='^TestPodCache$$' ./internal/manager

# What is measured and the profiles go to OUT; make plots draws what is recorded
# in test/scale/results.
.PHONY: bench
SCALE ?= small
OUT ?= $(BIN)/bench
bench: build ## Measure Tidekeeper beside bare clients and simple controllers. SCALE=small takes minutes, medium and full (5,000 nodes, 150,000 pods) much longer.
	SCALE=$(SCALE) OUT=$(abspath $(OUT)) $(PROGRAMS) $(GO) test -C test -v -count=1 -timeout=3h ./scale

.PHONY: plots
plots: ## Draw the plots of docs/performance.md and write its tables, from what is recorded in test/scale/results.
	cd hack/plot && $(GO) run . $(CURDIR)/test/scale/results $(CURDIR)/docs/performance.md

##@ Code

.PHONY: generate
generate: ## Regenerate what is generated: deep copies, apply configurations, CRDs, roles, dashboards, their copies in the chart, reference pages.
	cd test && $(CONTROLLER_GEN) object:headerFile=../hack/boilerplate.go.txt crd rbac:roleName=manager-role paths=./readme/guestbook/... \
		output:crd:dir=readme/guestbook/config/crd/bases output:rbac:dir=readme/guestbook/config/rbac
	$(CONTROLLER_GEN) object:headerFile=hack/boilerplate.go.txt applyconfiguration:headerFile=hack/boilerplate.go.txt \
		crd paths=./api/... output:crd:dir=config/crd/bases
	$(GO) run ./hack/dashboards
	$(MAKE) --no-print-directory generate-controllers

# The part of generate that follows from the list of controllers.
.PHONY: generate-controllers
generate-controllers: ## Regenerate the reference pages, the roles, and the chart's list of controllers.
	$(GO) run ./hack/generate
	hack/copy-into-chart

.PHONY: verify
verify: generate ## Check that generated code, go.mod files and formatting are as they should be.
	@changed=$$(git status --porcelain --untracked-files=all -- $(GENERATED)); if [ -n "$$changed" ]; then \
		echo "Generated files are not as committed. Commit what make generate wrote:"; \
		echo "$$changed"; git --no-pager diff -- $(GENERATED); exit 1; fi
	@for module in $(MODULES); do (cd $$module && $(GO) mod tidy -diff) || { echo "$$module/go.mod is not tidy: run go mod tidy there"; exit 1; }; done
	@cd sandbox/kubernetes && $(GO) run ./write --check
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "Not formatted; run gofmt -w on:"; echo "$$unformatted"; exit 1; fi

.PHONY: lint
lint: lint-words ## Run the linters.
	$(GOLANGCI_LINT) run ./...
	for module in test sandbox sandbox/client hack/demo; do (cd $$module && $(GOLANGCI_LINT) run --config $(CURDIR)/.golangci.yml ./...) || exit 1; done
	GOLANGCI_LINT='$(GOLANGCI_LINT)' $(GO) test -count=1 -run='^TestPureRule' ./hack/lint

.PHONY: lint-words
lint-words: ## Find words and phrases that this project does not use, as listed in hack/lint/words.go.
	$(GO) run ./hack/lint

##@ Supply chain

# What may be linked into what we ship. MPL-2.0 asks for its own files' source
# only, which the module proxy serves; it is in the sandbox, not in the manager.
LICENSES := Apache-2.0,BSD-2-Clause,BSD-3-Clause,ISC,MIT
GO_LICENSES = $(TOOL) go-licenses check --logtostderr=false --stderrthreshold=ERROR --ignore=tidekeeper.dev/tidekeeper

.PHONY: licenses
# go-licenses asks its own program for Go's folder.
licenses: export GOFLAGS := $(FLAGS)
licenses: ## Check the licences of everything that is linked into the binaries.
	$(GO_LICENSES) --allowed_licenses=$(LICENSES) ./cmd/...
	cd sandbox && $(GO_LICENSES) --allowed_licenses=$(LICENSES),MPL-2.0 ./cmd/...

# Asks the Go vulnerability database, so it needs the network.
.PHONY: vulncheck
vulncheck: ## Look for known vulnerabilities that our code can reach. VULNDB=URL for another database.
	$(TOOL) govulncheck $(if $(VULNDB),-db $(VULNDB)) ./...
	cd test && $(TOOL) govulncheck $(if $(VULNDB),-db $(VULNDB)) ./...
	cd sandbox && $(TOOL) govulncheck $(if $(VULNDB),-db $(VULNDB)) ./...

.PHONY: reproducible
reproducible: ## Build the binaries twice, elsewhere and from an empty cache the second time, and compare.
	GO=$(GO) VERSION=$(VERSION) LDFLAGS='$(LDFLAGS)' hack/reproducible

# The version of the chart is that of what it installs, without the v. IMAGE and
# DIGEST name a published image.
.PHONY: chart
chart: build-helm ## Package the chart into bin/. IMAGE=registry/name DIGEST=sha256:….
	@chart=$$(mktemp -d)/tidekeeper; cp -r charts/tidekeeper $$chart; \
	if [ -n "$(IMAGE)" ]; then sed -i -e 's|^  repository: tidekeeper$$|  repository: $(IMAGE)|' -e 's|^  digest: ""$$|  digest: "$(DIGEST)"|' $$chart/values.yaml; fi; \
	$(BIN)/helm package $$chart --version $(VERSION:v%=%) --app-version $(VERSION) --destination $(BIN); rm -r $$(dirname $$chart)

##@ Cluster

.PHONY: install
install: ## Install the CRDs into the cluster that KUBECTL talks to.
	$(KUBECTL) apply -k config/crd

.PHONY: uninstall
uninstall: delete-pools ## Delete the node pools, while a manager still cleans their nodes, then the CRDs.
	$(KUBECTL) delete --ignore-not-found -k config/crd

.PHONY: deploy
deploy: ## Install everything: CRDs, rights and the manager.
	$(KUBECTL) apply -k config/default

.PHONY: undeploy
undeploy: delete-pools ## Delete the node pools, while the manager still cleans their nodes, then everything.
	$(KUBECTL) delete --ignore-not-found -k config/default

# A pool goes when its nodes are clean, which only a running manager can do.
# Without one this fails after a minute, and that is better than nodes that
# keep their taints forever.
.PHONY: delete-pools
delete-pools:
	@if $(KUBECTL) get crd nodepools.tidekeeper.dev >/dev/null 2>&1; then $(KUBECTL) delete nodepools.tidekeeper.dev --all --timeout=60s; fi
