# The one entry point: make test. See CONTRIBUTING.md.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build
.PHONY: build test tools format vet lint layout unit race cross interop otel fmt fuzz soak mutants bench bench-report bench-layers docs screenshots module clean

# make module PATH=... sets PATH, the shell's search path, to the module's path. So PATH is
# copied to MODULE, and the rules get back the search path with which make was started.
ifeq ($(origin PATH),command line)
MODULE := $(PATH)
SEARCH := $(shell /usr/bin/tr '\0' '\n' </proc/$$PPID/environ | /bin/sed -n 's/^PATH=//p')
override PATH := $(or $(SEARCH),/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin)
endif

# Without cgo, as in the released program. Only the race detector needs cgo.
export CGO_ENABLED := 0

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

# Packages with goroutines or locks, which also run under the race detector; the slowest
# ones first.
RACE := $(addprefix ./internal/,store server tree) ./cmd/... ./embed ./recipe ./zk/... \
	$(addprefix ./internal/,admin/... audit bench guard local metrics peer sasl/kerberos scrape secure shadow/... shell terminal)

# The number of packages, and of interop tests, that run at the same time. They wait for
# sessions and events more than they compute.
PACKAGES := 4
PARALLEL := 4

# The time limit for one package's tests on a busy machine.
LIMIT := 40m

# The packages whose tests draw random inputs. make test draws the same ones in each run, so that its result
# does not depend on luck; plain go test, and make soak, draw fresh ones.
RANDOM = $(shell go list -f '{{.ImportPath}} {{.TestImports}} {{.XTestImports}}' ./... | grep -F pgregory.net/rapid | cut -d ' ' -f 1)

# $(call tests,FLAGS,PACKAGES) tests the packages. vet is not repeated: the target vet has checked everything.
define tests
go test $(1) -vet=off -p $(PACKAGES) -timeout $(LIMIT) $(filter-out $(RANDOM),$(2))
go test $(1) -vet=off -p $(PACKAGES) -timeout $(LIMIT) $(filter $(RANDOM),$(2)) -rapid.seed=1
endef

# $(call systems,LIMIT) runs the tests of interop. Their results are not cached: go test does not know what the started
# programs read. Nothing else runs beside the tests of blackbox: on a busy machine, servers elect a leader for
# another reason than the one under test.
define systems
cd interop && go test -vet=off -count=1 -timeout $(1) -parallel $(PARALLEL) ./blackbox
cd interop && go test -vet=off -count=1 -timeout $(1) -parallel $(PARALLEL) $$(go list ./... | grep -v '/blackbox$$')
endef

FUZZTIME ?= 200000x
SOAK     ?= 10
SEEDS    ?= 1h
CORES    ?= $(shell nproc)
COMPARE  ?=
BUDGET   ?= 10m

build:
	go build -trimpath -o bellwether ./cmd/bellwether

test: tools format vet lint layout unit race cross otel interop

# Installs what the tests need besides Go, git and make.
tools:
	interop/install-tools.sh

format:
	@bad=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); \
	if [ -n "$$bad" ]; then echo "gofmt: make fmt would change:"; echo "$$bad"; exit 1; fi

fmt:
	gofmt -w $$(git ls-files -co --exclude-standard '*.go')

vet:
	go vet ./...
	cd interop && go vet ./...
	cd otel && go vet ./...

lint:
	go run $(STATICCHECK) ./...
	cd interop && go run $(STATICCHECK) ./...
	cd otel && go run $(STATICCHECK) ./...

layout:
	go test -vet=off -count=1 .

unit:
	$(call tests,,$(shell go list ./...))

race: export CGO_ENABLED := 1
race:
	$(call tests,-race,$(shell go list $(RACE)))

# Builds the whole program for the operating systems of servers, and the libraries also for Windows.
cross:
	for target in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64; do \
		echo "build for $$target"; \
		GOOS=$${target%/*} GOARCH=$${target#*/} go build ./...; \
	done
	GOOS=windows GOARCH=amd64 go build ./wire ./zk ./recipe

interop:
	$(call systems,$(LIMIT))

otel:
	cd otel && go test -vet=off -timeout $(LIMIT) ./...

# Runs each fuzz target for FUZZTIME inputs. A time is possible too, but go test may report
# its end as a failure: context deadline exceeded.
fuzz:
	@for package in $$(go list ./...); do \
		for target in $$(go test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
			echo "fuzz $$package $$target"; \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$package; \
		done; \
	done

# The long tests: every test SOAK times; fresh seeds of the simulator, of its faults that no seed draws
# by itself, and of the orders of goroutines, each for SEEDS on each core; a million simulated
# handovers; the fuzz targets; and the mutants. The interop tests run without the race detector,
# because go-zookeeper has data races. SOAK=50 FUZZTIME=100000000x takes a night; the mutants
# take longer.
#
# Each step that has passed leaves a file in .soak. make soak skips it until the source changes, so a
# run that was interrupted can be continued.
soak: tools
	$(MAKE) $(foreach round,$(shell seq $(SOAK)),.soak/race/$(round) .soak/interop/$(round))
	$(MAKE) -j $(CORES) --output-sync .soak/handovers $(foreach core,$(shell seq $(CORES)),.soak/seeds/$(core) .soak/faults/$(core) .soak/orders/$(core))
	$(MAKE) .soak/fuzz
	$(MAKE) mutants
	rm -rf .soak

# What the steps of soak test.
SOURCES = $(shell git ls-files -co --exclude-standard '*.go' '*.mod' Makefile)

# $(passed) records that a step of soak has passed.
passed = @mkdir -p $(@D) && touch $@

.soak/race/%: export CGO_ENABLED := 1
.soak/race/%: $(SOURCES)
	go test -race -count=1 -timeout 4h ./...
	$(passed)

.soak/interop/%: $(SOURCES)
	$(call systems,4h)
	$(passed)

.soak/seeds/%: $(SOURCES)
	go test ./internal/sim -run TestFreshSeeds -for $(SEEDS) -timeout 0
	$(passed)

.soak/faults/%: $(SOURCES)
	go test ./internal/sim -run TestAskedFaults -asked $(SEEDS) -timeout 0
	$(passed)

.soak/orders/%: $(SOURCES)
	go test ./internal/interleave -run TestOrders -for $(SEEDS) -timeout 0
	$(passed)

.soak/handovers: $(SOURCES)
	go test ./internal/sim -run TestHandovers -handovers 1000000 -timeout 4h
	$(passed)

.soak/fuzz: $(SOURCES)
	$(MAKE) fuzz
	$(passed)

# Judges all mutants of the core that are not judged yet for the present source, and writes the
# scores into docs/testing.md. BUDGET is the processor time for one mutant in the simulator.
mutants:
	go run ./cmd/bellwether-mutants --budget $(BUDGET) --cache $(CURDIR)/.mutants
	go run ./cmd/bellwether-mutants --table

# The Go benchmarks, then a comparison of both servers on this machine.
bench: tools
	go test -run '^$$' -bench . -benchmem ./...
	cd interop && go run ./compare $(COMPARE)

# Measures Apache ZooKeeper, Bellwether and etcd side by side, in alternating pairs, and writes
# docs/performance.md and its charts. ROWS=read,write selects rows. CURVES is in how many of the pairs the
# curves are measured, which show how costs grow with numbers. A run that was interrupted goes on
# with the next measurement: the results are in .bench-report, which make clean deletes.
PAIRS    ?= 5
DURATION ?= 10s
WARMUP   ?= 5s
ROWS     ?=
CURVES   ?= $(PAIRS)
bench-report: tools
	interop/install-tools.sh etcd
	mkdir -p .bench-report
	cd interop && PATH="$$PATH:/usr/local/lib/bellwether-interop" go run ./report -pairs $(PAIRS) -duration $(DURATION) \
		-warmup $(WARMUP) -curve-pairs $(CURVES) -rows '$(ROWS)' -results $(CURDIR)/.bench-report/results.jsonl -docs $(CURDIR)/docs

# Compares the Go benchmarks of each layer at two commits: make bench-layers FROM=v1 TO=HEAD. LAYERS, BENCH and COUNT
# select packages, benchmarks, and how often each one runs. The two commits take turns.
BENCHSTAT := golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da
FROM   ?= HEAD~1
TO     ?= HEAD
BENCH  ?= .
COUNT  ?= 10
LAYERS ?= ./wire ./internal/tree ./internal/zab ./internal/store ./internal/server ./zk
bench-layers:
	@dir=$$(mktemp -d); trap 'for side in from to; do git worktree remove --force $$dir/$$side 2>/dev/null || true; done; rm -rf '"$$dir" EXIT; \
	git worktree add -q --detach $$dir/from '$(FROM)'; git worktree add -q --detach $$dir/to '$(TO)'; \
	for round in $$(seq $(COUNT)); do \
		for side in from to; do \
			(cd $$dir/$$side && go test -vet=off -run '^$$' -bench '$(BENCH)' -benchmem -p 1 $(LAYERS)) >>$$dir/$$side.txt; \
		done; \
		echo "round $$round of $(COUNT)" >&2; \
	done; \
	go run $(BENCHSTAT) '$(FROM)'=$$dir/from.txt '$(TO)'=$$dir/to.txt

# Makes the screenshots of the documentation with Chromium.
screenshots: tools
	cd interop && go test ./page -vet=off -count=1 -run TestScreenshots -screenshots "$(CURDIR)/docs/images"

# Generates docs/configuration.md from the table of keys.
docs:
	go test ./internal/config -run TestDocument -update

# make module PATH=example.com/you/bellwether renames the module.
module:
	@if [ -z "$(MODULE)" ]; then echo "usage: make module PATH=example.com/you/bellwether"; exit 2; fi
	@old=$$(go list -m); \
	pattern='^([[:space:]]*(import[[:space:]]+)?([[:alnum:]_.]+[[:space:]]+)?")'"$$old"'(["/])'; \
	git ls-files -co --exclude-standard '*.go' '*.md' '*.tmpl' | xargs sed -i -E "s#$$pattern#\\1$(MODULE)\\4#"; \
	go mod edit -module "$(MODULE)"; \
	sed -i -E "s#^((module|require|replace)?[[:space:]]*)$$old([ /])#\\1$(MODULE)\\3#" interop/go.mod otel/go.mod; \
	$(MAKE) -s --no-print-directory fmt; \
	echo "module $$old is now $(MODULE)"

clean:
	rm -rf bellwether dist .bench-report .mutants .soak interop/node/node_modules
