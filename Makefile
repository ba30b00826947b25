# Tidekeeper. Needs Go, git and make; `make help` lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

GO ?= go
# All is compiled alike, so that what many need is compiled once; only the race detector needs
# another way, and a C compiler. What go test would have vet look for, make lint finds.
FLAGS := $(strip $(filter-out -trimpath -vet=off -toolexec=%,$(shell $(GO) env GOFLAGS)))
TOOLEXEC := -toolexec=$(CURDIR)/sandbox/hack/toolexec
export GOFLAGS := -trimpath -vet=off $(TOOLEXEC) $(FLAGS)
export CGO_ENABLED := 0
# kubectl for install, deploy and so on; bin/kubectl is the sandbox's own.
KUBECTL ?= kubectl
BIN := $(CURDIR)/bin

# A version, such as v1.2.3, v1.2.3-4-gabcdef0-dirty or v0.0.0-abcdef0.
VERSION ?= $(shell git describe --tags --match 'v*' --dirty 2>/dev/null || echo v0.0.0-$$(git describe --always --dirty 2>/dev/null || echo unknown))
LDFLAGS := -s -w -X tidekeeper.dev/tidekeeper/internal/version.version=$(VERSION)

# Not every machine has what the race detector needs.
RACE ?= $(shell command -v $$($(GO) env CC) >/dev/null 2>&1 && echo -race)

# What the black-box tests run.
PROGRAMS = SANDBOX_BIN=$(BIN)/sandbox TIDEKEEPER_BIN=$(BIN)/tidekeeper TIDE_BIN=$(BIN)/kubectl-tide \
	HELM_BIN=$(BIN)/helm E2E_BIN=$(BIN)/e2e.test PROMETHEUS_BIN=$(BIN)/prometheus PROMTOOL_BIN=$(BIN)/promtool ARGO_BIN=$(BIN)/argo-rollouts \
	METRICS_SERVER_BIN=$(BIN)/metrics-server DESCHEDULER_BIN=$(BIN)/descheduler CERT_MANAGER_BIN=$(BIN)/cert-manager \
	PROMETHEUS_OPERATOR_BIN=$(BIN)/prometheus-operator

# Runs suites of tests side by side, JOBS of them: 'make suites' lists them, and
# hack/suites/table.go is the list. It builds what they need by targets of this file.
JOBS ?= 3
RUN_SUITES = $(PROGRAMS) $(GO) run ./hack/suites

# The tools are pinned in a module of their own, so that what they need does
# not become what Tidekeeper needs.
TOOL := $(GO) tool -modfile=$(CURDIR)/hack/tools/go.mod
CONTROLLER_GEN := $(TOOL) controller-gen
GOLANGCI_LINT := $(TOOL) golangci-lint

# The kit in sandbox/ has modules, targets and checks of its own, which these call.
MODULES := . test test/room hack/demo hack/release hack/tools hack/helm hack/plot hack/site hack/prometheus hack/argo-rollouts hack/metrics-server hack/descheduler hack/cert-manager hack/krew hack/cosign hack/prometheus-operator
GENERATED := api/v1/zz_generated.deepcopy.go api/applyconfiguration config/crd/bases config/rbac/role.yaml config/rbac/role_binding.yaml config/rbac/*/ charts/tidekeeper/files charts/tidekeeper/values.schema.json config/monitoring/dashboards docs/reference

KIT := $(MAKE) --no-print-directory -C sandbox OUT=$(BIN)

# $(call build,name,command): says what is built, and how long it took.
define build
@echo "building bin/$(1)"; start=$$(date +%s); $(2); echo "built    bin/$(1) in $$(( $$(date +%s) - start )) s"
endef

# $(COMPILE) NAME go build ARGUMENTS shows how many packages are compiled. It is compiled for
# this machine, whatever it builds.
TARGET := GOOS=$(GOOS) GOARCH=$(GOARCH)
COMPILE := env -u GOOS -u GOARCH $(GO) run $(CURDIR)/sandbox/hack/compile/main.go

##@ Every day

.PHONY: help
help: ## Show this list.
	@awk 'BEGIN {FS = ":.*## "} /^##@ / {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: build-sandbox build-tidekeeper build-kubectl-tide $(if $(wildcard $(BIN)/tidekeeper-clock),build-clock) ## Build everything into bin/.

# Go decides what is stale, so these always ask it. A first build of the
# sandbox compiles Kubernetes, which takes minutes.
.PHONY: build-sandbox
build-sandbox:
	$(call build,sandbox,$(KIT) build)

.PHONY: build-kubernetes
build-kubernetes: ## Build the control plane of another release of Kubernetes into bin/, for 'sandbox up --kubernetes'. KUBERNETES=1.34; it takes minutes.
	$(call build,kubernetes-$(KUBERNETES),$(KIT) build-kubernetes KUBERNETES=$(KUBERNETES))

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
	$(call build,proxy-race,$(KIT) build-proxy-race)
endif

# The manager with a clock that tests set. Once there, it is built again with the rest, as tests that are
# run without make would take a stale one.
.PHONY: build-clock
build-clock:
	$(call build,tidekeeper-clock,$(GO) build -C test -o $(BIN)/tidekeeper-clock ./fault/clock/manager)

# What a test of upgrades starts from: the latest version in test/compat, built once from its commit.
.PHONY: build-older
build-older:
	$(call build,older,GO=$(GO) hack/older $(BIN)/older)

.PHONY: build-kubectl-tide
build-kubectl-tide:
	$(call build,kubectl-tide,$(GO) build -ldflags '$(LDFLAGS)' -o $(BIN)/kubectl-tide ./cmd/kubectl-tide)

# $(eval $(call pinned,NAME,PACKAGE)): a target that compiles bin/NAME for tests, from the module
# that hack/NAME pins, once for each version. From an empty cache each takes minutes.
define pinned
.PHONY: build-$(1)
build-$(1): $$(BIN)/$(1)
$$(BIN)/$(1): hack/$(1)/go.mod hack/$(1)/go.sum
	$$(call build,$(1),$$(COMPILE) $(1) $$(TARGET) $$(GO) build -C hack/$(1) -ldflags '-s -w' -o $$@ $(2) && touch $$@)
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
	$(call build,prometheus and bin/promtool,$(COMPILE) Prometheus $(TARGET) $(GO) build -C hack/prometheus -tags $$(cat hack/prometheus/tags) -ldflags '-s -w' -o $(BIN)/ \
		github.com/prometheus/prometheus/cmd/prometheus github.com/prometheus/prometheus/cmd/promtool && touch $@)

# For the test of a release, once for each version: cosign, and krew with the check that its index makes.
.PHONY: build-cosign
build-cosign: $(BIN)/cosign
$(BIN)/cosign: hack/cosign/go.mod hack/cosign/go.sum
	$(call build,cosign,$(COMPILE) cosign $(GO) build -C hack/cosign -ldflags '-s -w' -o $(BIN)/ github.com/sigstore/cosign/v3/cmd/cosign && touch $@)

.PHONY: build-krew
build-krew: $(BIN)/krew
$(BIN)/krew: hack/krew/go.mod hack/krew/go.sum
	$(call build,krew,$(GO) build -C hack/krew -ldflags '-s -w' -o $(BIN)/ sigs.k8s.io/krew/cmd/krew sigs.k8s.io/krew/cmd/validate-krew-manifest && touch $@)

# What real nodes of the sandbox run, once for each version: sandbox up --real-nodes.
.PHONY: build-node
build-node: ## Build what runs on real nodes of the sandbox into bin/node/: a kubelet, containerd, runc. It takes minutes.
	$(call build,node,$(KIT) build-node)

# Its tests are run against an installation, too.
.PHONY: build-e2e-test
build-e2e-test:
	$(call build,e2e.test,$(if $(RACE),CGO_ENABLED=1) $(GO) test -C test -c $(RACE) -o $(BIN)/e2e.test ./e2e)

.PHONY: demo
demo: build-sandbox build-tidekeeper build-kubectl-tide ## Show a node pool on a real control plane. DEMO=once ends by itself, PAGE=1 opens the page of its cluster.
	$(GO) build -C hack/demo -o $(BIN)/sandbox-demo . && $(BIN)/sandbox-demo --steps $(if $(filter once,$(DEMO)),--once) $(if $(PAGE),--page)

.PHONY: run
run: ## Run the manager from source. ARGS="--kubeconfig FILE".
	$(GO) run -ldflags '$(LDFLAGS)' ./cmd/tidekeeper --log-format=text $(ARGS)

.PHONY: clean
clean: ## Remove what was built.
	rm -rf $(BIN)
	$(KIT) clean

##@ Tests

.PHONY: test
test: build ## Run the tests that one runs before a push: unit and property tests, black-box tests of the manager, the plugin and the sandbox. Eight minutes once all is built.
	@$(RUN_SUITES) run --jobs=$(JOBS) fast

.PHONY: test-all
test-all: build ## Run all tests: also with the race detector, faults, other people's software, a browser, real nodes, an old release of Kubernetes, the small benchmark. WITHIN=1h skips what has not begun by then, and says so.
	@$(RUN_SUITES) run --jobs=$(JOBS) $(if $(WITHIN),--within=$(WITHIN)) all

.PHONY: suites
suites: ## List the suites of tests.
	@$(GO) run ./hack/suites list

.PHONY: suite
suite: build ## Run some suites, or tests of them. SUITE=e2e RUN='^TestPools$$'.
	@$(RUN_SUITES) run --jobs=$(JOBS) $(if $(RUN),--run='$(RUN)') $(or $(SUITE),$(error SUITE=…: 'make suites' lists them))

# Suites by name: make test-page.
NAMED := $(addprefix test-,unit e2e cli page install node neighbors argo monitoring sandbox tenants bench release)
.PHONY: $(NAMED)
$(NAMED): test-%:
	$(MAKE) --no-print-directory suite SUITE=$*
# Variables that some of them read: FULL=1 uses an installation by all black-box tests, SOAK=5m
# churns beside neighbors for so long.
test-install: export FULL := $(FULL)
test-neighbors: export SOAK := $(SOAK)

.PHONY: flakes
FLAKES ?= test/flakes.json
flakes: build ## Run suites again and again while BUSY=8 processes keep the processors busy, and print what failed how often. ROUNDS=20 SUITE='e2e cli' (all) FEWEST=2 (those of them with the fewest rounds so far) FOR=8h; rounds add up in FLAKES, with their table beside, and ROUNDS=0 prints them.
	@$(RUN_SUITES) flakes --jobs=$(JOBS) --rounds=$(or $(ROUNDS),20) --busy=$(or $(BUSY),8) $(if $(FOR),--for=$(FOR)) $(if $(FEWEST),--fewest=$(FEWEST)) $(if $(RUN),--run='$(RUN)') --record=$(FLAKES) $(or $(SUITE),all)

.PHONY: check
check: build ## Find most mistakes in little time: unit tests, lint of what has changed since BASE (main), a black-box test of each capability.
	GOLANGCI_LINT='$(GOLANGCI_LINT)' hack/lint-changed
	@$(RUN_SUITES) run --jobs=$(JOBS) unit sample

.PHONY: bench-page
bench-page: build ## Measure the page in a browser with 1,000 nodes, 20,000 pods and 2,000 restarts: half an hour or less. make test-page plays it small.
	PAGE_WORLD=large $(PROGRAMS) $(GO) test -C test -v -count=1 -timeout=60m -run='^TestLargeWorldInABrowser$$' ./page

.PHONY: screenshots
screenshots: build ## Take the screenshots of docs/dashboard.md again, of the world of the tests.
	SCREENSHOTS=$(CURDIR)/docs/images $(PROGRAMS) $(GO) test -C test -count=1 -timeout=10m -run='^TestPage$$' ./page

# What a release must do, by the black-box tests that depend on it, or with SLICE=1 by a sample
# of them. Only that is recorded, not RUN='^TestNodePool'.
.PHONY: test-kubernetes
RECORD ?= test/testdata/kubernetes
test-kubernetes: build build-kubernetes ## Run the black-box tests with another release of Kubernetes. KUBERNETES=1.34; SLICE=1 for a sample of them, RUN='^TestNodePool' for some.
	@SANDBOX_KUBERNETES=$(KUBERNETES) $(RUN_SUITES) run --jobs=1 $(if $(RUN),--run='$(RUN)',--record=$(abspath $(RECORD))/$(KUBERNETES)$(if $(SLICE),-slice).json \
		--kubernetes=$$(bash -c 'exec -a kube-apiserver $(BIN)/kubernetes-$(KUBERNETES) --version' | cut -d' ' -f2)) $(if $(SLICE),sample,e2e cli)

# The releases that can be built beside the one that the sandbox has, the oldest first.
RELEASES := $(sort $(basename $(notdir $(wildcard sandbox/kubernetes/versions/*.mod))))

.PHONY: test-releases
test-releases: ## Run the black-box tests with each release of Kubernetes that can be built: hours.
	for release in $(RELEASES); do $(MAKE) --no-print-directory test-kubernetes KUBERNETES=$$release || failed=1; done; $(MAKE) --no-print-directory generate-controllers; exit $${failed:-0}

.PHONY: fuzz
FUZZTIME ?= 10s
fuzz: ## Run every fuzz test for FUZZTIME.
	@{ grep -rlE '^func Fuzz' --include='*_test.go' . || true; } | while read -r file; do \
		for target in $$(sed -nE 's/^func (Fuzz[A-Za-z0-9_]*)\(.*/\1/p' "$$file"); do \
			(set -x; cd "$$(dirname "$$file")" && $(GO) test -run='^$$' -fuzz="^$$target\$$" -fuzztime=$(FUZZTIME) .) || exit 1; \
		done; done

.PHONY: faults
faults: build-sandbox build-tidekeeper build-argo-rollouts ## Play all faults and bad edits, of which make test-all plays a sample. SHARD=2/8 plays the second of eight parts.
	FAULTS=all SHARD=$(SHARD) SANDBOX_BIN=$(BIN)/sandbox TIDEKEEPER_BIN=$(BIN)/tidekeeper ARGO_BIN=$(BIN)/argo-rollouts $(GO) test -C test -v -count=1 -p=1 -timeout=330m $(if $(filter-out 1/%,$(SHARD)),./fault/explore ./fault/fuzz,./fault/...)

.PHONY: soak
SOAK ?= 1h
soak: build-sandbox build-tidekeeper ## Churn for SOAK, and see that the manager does not grow.
	SOAK=$(SOAK) SANDBOX_BIN=$(BIN)/sandbox TIDEKEEPER_BIN=$(BIN)/tidekeeper $(GO) test -C test -v -count=1 -timeout=100h -run='^TestSoak$$' ./fault/outage

.PHONY: bench-sandbox
bench-sandbox: ## Measure the sandbox.
	$(KIT) bench

.PHONY: bench-explore
bench-explore: ## Explore published operators with known mistakes, and print what was found. It takes ten minutes for each of twenty-two.
	$(KIT) score REPORT=$(abspath $(OUT)) ROWS='$(ROWS)'

.PHONY: found
found: ## Play saved findings of bench-explore again, each in one to five minutes. ROW=rabbitmq-1.6.0 for some, ROW=rabbitmq-1.6.0-648 for one.
	$(KIT) found ROW='$(ROW)'

.PHONY: bench-soundness
bench-soundness: ## Play small operators with a known mistake each, and their twins without it, and print what explore and fuzz found. BUSY=8: beside 8 busy processes, PAIRS='done-first label' for some.
	$(call build,soundness,$(KIT) build-soundness)
	$(if $(BUSY),$(GO) run ./hack/suites busy --busy=$(BUSY) --) $(KIT) soundness REPORT=$(abspath $(OUT)) PAIRS='$(PAIRS)'

.PHONY: bench-podcache
bench-podcache: ## Measure what a pod costs in the manager's cache, beside one as the API server sends it. SIZE=small takes seconds, medium minutes; the full one needs more than 6 GiB.
	GOGC=25 SIZE=$(or $(SIZE),full) $(GO) test -v -count=1 -timeout=30m -run='^TestPodCache$$' ./internal/manager

.PHONY: bench-room
bench-room: OUT = $(BIN)/bench/room
bench-room: build ## Compare answers about room with the scheduler's own plugins in random clusters, and a sample with kube-scheduler itself, and print how many were right, beside simpler arithmetic. CASES=10000 SAMPLE=300 SEED=1.
	CASES=$(or $(CASES),10000) SAMPLE=$(or $(SAMPLE),300) SEED=$(or $(SEED),1) OUT=$(abspath $(OUT)) $(PROGRAMS) $(GO) test -C test/room -v -count=1 -timeout=60m .

# The control plane collects its garbage more often, so that it fits beside the manager.
.PHONY: bench-hours
bench-hours: ## Explore a small operator FAULTS=500 faults long, and compare the use of the machine at the beginning and at the end.
	$(KIT) hours FAULTS=$(or $(FAULTS),500)

.PHONY: bench-tenants
bench-tenants: build ## Play all tricks of a hostile tenant at once, round after round, against a manager whose memory is limited, as root. DURATION=1h, SIZE=small, medium or full (5,000 nodes, 150,000 pods), LIMIT=512 (MiB).
	GOGC=40 DURATION=$(or $(DURATION),1h) SIZE=$(or $(SIZE),small) LIMIT=$(LIMIT) $(PROGRAMS) $(GO) test -C test -v -count=1 -parallel=100 -timeout=4h -run='^TestTricksAtOnce$$' ./tenants

# What is measured goes to OUT; make plots draws what is recorded in test/rotate/results.
.PHONY: bench-rotate
bench-rotate: OUT = $(BIN)/bench/rotate
bench-rotate: build ## Empty every node of a cluster, one after the other, by NodeMaintenances, kubectl drain and taints, and measure how long workloads are down. SIZE=small takes two minutes, full (50 nodes, 300 workloads) an hour.
	SIZE=$(or $(SIZE),full) OUT=$(abspath $(OUT)) $(PROGRAMS) $(GO) test -C test -v -count=1 -timeout=4h -run='^TestRotate$$' ./rotate

# What is measured and the profiles go to OUT; make plots draws what is recorded
# in test/scale/results.
.PHONY: bench
SCALE ?= small
OUT ?= $(BIN)/bench
bench: build ## Measure Tidekeeper beside bare clients and simple controllers. SCALE=small takes minutes, medium and full (5,000 nodes, 150,000 pods) much longer.
	SCALE=$(SCALE) OUT=$(abspath $(OUT)) $(PROGRAMS) $(GO) test -C test -v -count=1 -timeout=3h ./scale

.PHONY: plots
plots: ## Draw the plots of test/scale/performance.md, test/rotate/rotation.md and test/room/answers.md and write their tables, from what is recorded in the folders results beside them.
	cd hack/plot && $(GO) run . scale $(CURDIR)/test/scale/results $(CURDIR)/test/scale/performance.md
	cd hack/plot && $(GO) run . rotation $(CURDIR)/test/rotate/results $(CURDIR)/test/rotate/rotation.md
	cd hack/plot && $(GO) run . room $(CURDIR)/test/room/results $(CURDIR)/test/room/answers.md

##@ Pages

.PHONY: site
site: ## Render the pages into bin/site, with a search: open bin/site/README.html in a browser. It needs no server and no network.
	cd hack/site && $(GO) run . $(VERSION) $(CURDIR) $(BIN)/site

##@ Code

.PHONY: generate
generate: ## Regenerate what is generated: deep copies, apply configurations, CRDs, roles, dashboards, their copies in the chart, reference pages.
	$(KIT) generate
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
	@printf '%s\n' $(MODULES) | xargs -P 4 -I {} sh -c 'cd {} && $(GO) mod tidy -diff || { echo "{}/go.mod is not tidy: run go mod tidy there"; exit 1; }'
	@$(GO) run ./hack/compat
	@$(KIT) verify
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "Not formatted; run gofmt -w on:"; echo "$$unformatted"; exit 1; fi

# Once a version is released, what its users depend on is not written again.
.PHONY: baseline
baseline: ## Record what users of a version depend on, before it is released, in test/compat: make verify compares with the latest. VERSION=v0.1.0.
	$(GO) run ./hack/compat --write $(VERSION)

.PHONY: lint
lint: lint-words lint-pages ## Run the linters on all modules, also if one has findings.
	failed=; for module in . test test/room hack/demo hack/release; do (cd $$module && $(GOLANGCI_LINT) run --config $(CURDIR)/.golangci.yml ./...) || failed=1; done; $(KIT) lint || failed=1; test -z "$$failed"
	GOLANGCI_LINT='$(GOLANGCI_LINT)' $(GO) test -count=1 -run='^TestPureRule' ./hack/lint

.PHONY: lint-words
lint-words: ## Find words and phrases that this project does not use, as listed in hack/lint/words.go.
	$(GO) run ./hack/lint

# Every page, but for those that are generated.
PAGES = $(filter-out $(GENERATED_PAGES),$(shell git ls-files '*.md'))
GENERATED_PAGES := $(addprefix docs/reference/,api.md commands.md configuration.md controllers.md kubernetes.md metrics.md)

.PHONY: lint-pages
lint-pages: ## Check the spelling of the pages, their links and headings, and that the site can be rendered.
	$(TOOL) misspell -error $(PAGES)
	$(GO) test -count=1 ./docs
	cd hack/site && $(GO) test -count=1 ./...

##@ Supply chain

# What may be linked into what we ship.
LICENSES := Apache-2.0,BSD-2-Clause,BSD-3-Clause,ISC,MIT
GO_LICENSES = $(TOOL) go-licenses check --logtostderr=false --stderrthreshold=ERROR --ignore=tidekeeper.dev/tidekeeper

.PHONY: licenses
# go-licenses asks its own program for Go's folder.
licenses: export GOFLAGS := $(FLAGS)
licenses: ## Check the licences of everything that is linked into the binaries.
	$(GO_LICENSES) --allowed_licenses=$(LICENSES) ./cmd/...
	$(KIT) licenses

# Asks the Go vulnerability database, so it needs the network.
.PHONY: vulncheck
vulncheck: ## Look for known vulnerabilities that our code can reach. VULNDB=URL for another database.
	$(TOOL) govulncheck $(if $(VULNDB),-db $(VULNDB)) ./...
	cd test && $(TOOL) govulncheck $(if $(VULNDB),-db $(VULNDB)) ./...
	$(KIT) vulncheck

.PHONY: findings
findings: ## Write what 'make release FINDINGS=bin/findings.json' says of vulnerabilities. VULNDB=URL for another database.
	@mkdir -p $(BIN)
	$(TOOL) govulncheck -format=json $(if $(VULNDB),-db $(VULNDB)) ./cmd/... >$(BIN)/findings.json

.PHONY: reproducible
reproducible: ## Build the binaries twice, elsewhere and from an empty cache the second time, and compare.
	GO=$(GO) VERSION=$(VERSION) LDFLAGS='$(LDFLAGS)' hack/reproducible

# PROGRAM/OS/ARCHITECTURE of what a release has. The manager's are in the image, too.
ARCHIVES ?= $(foreach os,linux darwin windows,kubectl-tide/$(os)/amd64 kubectl-tide/$(os)/arm64) \
	tidekeeper/linux/amd64 tidekeeper/linux/arm64 sandbox/linux/amd64 sandbox/linux/arm64 tidekeeper-demo/linux/amd64 tidekeeper-demo/linux/arm64
# What else decides the bytes of a program is the same on each machine, whatever its user has set.
RELEASED_AS := GOFLAGS='-trimpath -buildvcs=false $(TOOLEXEC)' GOAMD64=v1 GOARM64=v8.0 GOEXPERIMENT= GOFIPS140=off
# build-for PROGRAM/OS/ARCHITECTURE,PROGRAM OS ARCHITECTURE is a line of a recipe that builds a program for a platform.
define build-for
export $(RELEASED_AS) GOOS=$(word 2,$(2)) GOARCH=$(word 3,$(2)); $(if $(filter sandbox/%,$(1)),mkdir -p $(BIN)/packing/$(1) && $(MAKE) --no-print-directory -C sandbox build OUT=$(BIN)/packing/$(1) RELEASED=$(VERSION),$(if $(filter tidekeeper-demo/%,$(1)),$(GO) build -C hack/demo -ldflags '-s -w' -o $(BIN)/packing/$(1)/sandbox-demo .,$(GO) build -ldflags '$(LDFLAGS)' -o $(BIN)/packing/$(1)/ ./cmd/$(word 1,$(2))))

endef

# pack FLAG runs the packer.
pack = $(BIN)/packer $(1) --version=$(VERSION) --built=$(BIN)/packing --out=$(abspath $(OUT)) --time=$$(git log -1 --format=%ct) --commit=$$(git rev-parse HEAD) \
	--image=$(IMAGE) --url=$(URL) $(if $(KEY),--key=$(KEY)) $(if $(FINDINGS),--findings=$(FINDINGS)) $(ARCHIVES)

# KEY signs the files: openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256.
.PHONY: release
release: OUT = $(BIN)/release-$(VERSION)
release: URL ?= https://tidekeeper.dev/releases/$(VERSION)
release: build-packer ## Make all files of a release, the same each time, and publish nothing. VERSION=v0.1.0 OUT=folder KEY=file.pem URL=https://… IMAGE=registry/name FINDINGS=file; ARCHIVES='sandbox/linux/amd64' for some.
	@$(call pack,--check)
	$(foreach build,$(ARCHIVES),$(call build-for,$(build),$(subst /, ,$(build))))
	$(call pack)

# Prints the names of both by digest. It authenticates as 'helm registry login' has set up.
.PHONY: push-release
push-release: OUT = $(BIN)/release-$(VERSION)
push-release: build-packer ## Push the image and the chart of a release. VERSION=v0.1.0 OUT=folder IMAGE=registry/name CHARTS=registry/folder KEY=file.pem.
	@$(BIN)/packer push --folder=$(abspath $(OUT)) --version=$(VERSION) --image=$(IMAGE) --charts=$(CHARTS) $(if $(KEY),--key=$(KEY))

.PHONY: build-packer
build-packer:
	@mkdir -p $(BIN)
	@$(GO) build -C hack/release -o $(BIN)/packer .

# 'helm install tidekeeper bin/image/tidekeeper-*.tgz' runs it then: that chart names it by its digest.
.PHONY: image
image: build-sandbox ## Build the image of this tree, and its chart, into bin/image, and load the image into the real nodes of the sandbox.
	$(MAKE) --no-print-directory release VERSION=$(VERSION) OUT=$(BIN)/image ARCHIVES=tidekeeper/linux/$(shell $(GO) env GOARCH)
	$(BIN)/sandbox nodes load-image tidekeeper:$(VERSION) $(BIN)/image/tidekeeper-$(VERSION)-image.tar

# What test/release and test/node read: the archives for this machine, and the arm64 ones that qemu runs, signed
# by a key of their own; and of a next version what an upgrade takes.
.PHONY: build-release
build-release:
	mkdir -p $(BIN)
	openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out $(BIN)/release-test.key 2>/dev/null
	openssl pkey -in $(BIN)/release-test.key -pubout -out $(BIN)/release-test.pub
	$(MAKE) --no-print-directory release VERSION=v0.1.0 OUT=$(BIN)/release-test KEY=$(BIN)/release-test.key ARCHIVES='$(sort $(foreach program,kubectl-tide tidekeeper sandbox tidekeeper-demo,$(program)/linux/$(shell $(GO) env GOARCH)) kubectl-tide/linux/arm64 tidekeeper/linux/arm64)'
	$(MAKE) --no-print-directory release VERSION=v0.1.1 OUT=$(BIN)/release-next ARCHIVES=tidekeeper/linux/$(shell $(GO) env GOARCH)

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
uninstall: delete-pools ## Delete node pools and maintenances, while a manager still cleans their nodes, then the CRDs.
	$(KUBECTL) delete --ignore-not-found -k config/crd

.PHONY: deploy
deploy: ## Install everything: CRDs, rights and the manager.
	$(KUBECTL) apply -k config/default

.PHONY: undeploy
undeploy: delete-pools ## Delete node pools and maintenances, while the manager still cleans their nodes, then everything.
	$(KUBECTL) delete --ignore-not-found -k config/default

# A pool goes when its nodes are clean, and a maintenance when they are uncordoned,
# which only a running manager can do. Without one this fails after a minute, and
# that is better than nodes that keep their taints forever.
.PHONY: delete-pools
delete-pools:
	@for kind in nodemaintenances nodepools; do if $(KUBECTL) get crd $$kind.tidekeeper.dev >/dev/null 2>&1; then $(KUBECTL) delete $$kind.tidekeeper.dev --all --timeout=60s || exit 1; fi; done
