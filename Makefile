# SPDX-License-Identifier: Apache-2.0
#
# A thin layer over Meson: the commands a person needs, each by one word. `make help` explains them.

BUILD   ?= build
PREFIX  ?= /usr/local
DESTDIR ?=
# Debian's own Python, Meson and compiler, whatever else is first in PATH, can be forced with e.g. MESON=/usr/bin/meson.
MESON   ?= meson
JOBS    ?= $(shell nproc)

# /usr keeps its configuration in /etc; any other prefix has its own.
SYSCONF = $(if $(filter /usr,$(PREFIX)),$(DESTDIR)/etc,$(DESTDIR)$(PREFIX)/etc)

.DEFAULT_GOAL := all
.NOTPARALLEL:
.PHONY: all help deps stage install build-tests benches test test-quick test-programs fuzz soak
.PHONY: bench bench-fairness bench-move bench-memory bench-oversubscribe results demo clean
.PHONY: format check-format

# What is installed, and nothing else.
all: $(BUILD)/build.ninja
	@ninja -C $(BUILD) -j $(JOBS) product

# A folder that was set up without what the tests need has none.
.PHONY: with-tests
with-tests: $(BUILD)/build.ninja
	@grep -q '"name": "tests", "value": "enabled"' $(BUILD)/meson-info/intro-buildoptions.json || \
	    { $(MESON) configure $(BUILD) -Dtests=enabled && ninja -C $(BUILD) build.ninja; }

build-tests: with-tests
	@ninja -C $(BUILD) -j $(JOBS) product meson-test-prereq

benches: with-tests
	@ninja -C $(BUILD) -j $(JOBS) benches

# A folder that was set up by hand may have another prefix.
.PHONY: rooted
rooted: $(BUILD)/build.ninja
	@grep -q '"name": "prefix", "value": "/"' $(BUILD)/meson-info/intro-buildoptions.json || \
	    $(MESON) configure $(BUILD) -Dprefix=/ -Dlibdir=lib -Dlibexecdir=libexec

# The prefix is /: what is built finds its parts relative to itself, so one build serves `stage` and any PREFIX.
$(BUILD)/build.ninja:
	@command -v $(MESON) >/dev/null || { echo "make: meson is missing: run 'make deps' first" >&2; exit 1; }
	@$(MESON) setup $(BUILD) --prefix=/ --libdir=lib --libexecdir=libexec $(SETUP)

help:
	@echo 'make                  build what is installed into $(BUILD)/; no tests'
	@echo 'make deps             install the packages that are missing (apt; nothing to do is quick); others ask on a terminal'
	@echo 'make stage            leave a tree in $(BUILD)/stage that runs without installing; then for instance:'
	@echo '                        $(BUILD)/stage/bin/gantryd --socket /tmp/g.sock &'
	@echo '                        $(BUILD)/stage/bin/gantry run --connect unix:/tmp/g.sock -- clinfo'
	@echo '                      or without `gantry run`, any program:'
	@echo '                        OCL_ICD_VENDORS=$(CURDIR)/$(BUILD)/stage/etc/OpenCL/vendors GANTRY_CONNECT=unix:/tmp/g.sock clinfo'
	@echo 'make install          install under PREFIX=$(PREFIX) (DESTDIR=... for packages)'
	@echo 'make demo             two real programs share one device: the quick start; installs what is missing'
	@echo 'make build-tests      build the tests, too; make test and meson test do so by themselves'
	@echo 'make test             everything: the suites, then again under ASan+UBSan, then threads under TSan'
	@echo 'make test-quick       unit tests and structure: less than a minute once it is built'
	@echo 'make test-programs    the real programs, natively and through Gantry; PROGRAM=ffmpeg-unsharp for one'
	@echo 'make soak             kill processes at KILLS=500 random points under load, migrate programs MIGRATIONS=1000 times by each route, then scribble for SCRIBBLE_SECONDS=600, and end programs ENDS=1000 times; SEED=1'
	@echo 'make discrete-long    the differential suite, migrations and the real programs on an emulated discrete GPU'
	@echo 'make fuzz             every decoder with libFuzzer, FUZZ_SECONDS=60 each; TARGET=frame for one'
	@echo 'make bench            measure, into docs/results; BENCH="--quick --sections ring" for a part (quick: into $(BUILD)/bench/results)'
	@echo 'make bench-fairness   the papers'"'"' experiments on shares of the device, likewise; FAIRNESS="--quick --only fig8" for a part'
	@echo 'make bench-move       the papers'"'"' figures of migrations, likewise; MOVES="--quick --only speed" for a part'
	@echo 'make bench-memory     DymGPU'"'"'s figures of memory shared by more vGPUs than fit, in virtual time; MEMORY="--quick --only 9a" for a part'
	@echo 'make bench-oversubscribe  programs that exceed a device'"'"'s memory together;' \
		'OVERSUBSCRIBE="--quick --only fits" for a part'
	@echo 'make results          write docs/results/*.md and the list in docs/benchmarks.md again from the JSON files'
	@echo 'make clean            remove all build folders'
	@echo
	@echo 'One suite: meson test -C $(BUILD) --suite SUITE; one test: meson test -C $(BUILD) NAME -v. See docs/testing.md.'

deps:
	@tools/deps.sh build test bench

stage: rooted all
	@rm -rf $(BUILD)/stage.new
	@DESTDIR=$(abspath $(BUILD))/stage.new GANTRY_ICD_LIBDIR=$(abspath $(BUILD))/stage/lib \
	    $(MESON) install -C $(BUILD) --no-rebuild --quiet
	@rm -rf $(BUILD)/stage && mv $(BUILD)/stage.new $(BUILD)/stage
	@echo "staged in $(BUILD)/stage"

install: rooted all
	@DESTDIR=$(abspath $(DESTDIR)$(PREFIX)) GANTRY_ICD_LIBDIR=$(PREFIX)/lib $(MESON) install -C $(BUILD) --no-rebuild --quiet
	@if [ '$(SYSCONF)' != '$(DESTDIR)$(PREFIX)/etc' ]; then \
	    mkdir -p $(SYSCONF)/OpenCL/vendors && \
	    mv $(DESTDIR)$(PREFIX)/etc/OpenCL/vendors/gantry.icd $(SYSCONF)/OpenCL/vendors/ && \
	    rmdir -p --ignore-fail-on-non-empty $(DESTDIR)$(PREFIX)/etc/OpenCL/vendors; fi
	@echo "installed under $(DESTDIR)$(PREFIX); the ICD file is $(SYSCONF)/OpenCL/vendors/gantry.icd"
	@[ -n '$(DESTDIR)' ] || [ '$(SYSCONF)' = /etc ] || echo "loaders look in /etc/OpenCL/vendors only: link it there, or set OCL_ICD_VENDORS=$(SYSCONF)/OpenCL/vendors"

test:
	@tools/deps.sh --ask build test
	@python3 tools/run-tests.py --build $(BUILD) all

test-quick: all
	@python3 tools/run-tests.py --build $(BUILD) quick

test-programs: stage build-tests
	@/usr/bin/python3 tests/programs/runner.py --stage $(BUILD)/stage $(PROGRAM)

KILLS           ?= 500
SEED            ?= 1
MIGRATIONS      ?= 1000
SCRIBBLE_SECONDS ?= 600
ENDS ?= 1000

soak:
	@tools/deps.sh --ask build test
	@$(MAKE) --no-print-directory stage build-tests
	@python3 -B tests/faults/campaign.py --build $(BUILD) --kills $(KILLS) --seed $(SEED)
	@python3 -B tests/faults/crowd.py --build $(BUILD)
	@$(MESON) test -C $(BUILD) --no-rebuild --num-processes 1 --suite soak
	@for route in local mode unix tcp stop; do \
	    python3 -B tests/migrated/stress_test.py $(BUILD)/stage $(BUILD)/tests/migrated/stress $$route --migrations $(MIGRATIONS) && \
	    python3 -B tests/migrated/differential_test.py $(BUILD)/stage $(BUILD)/tests/differential/difftest $$route && \
	    python3 -B tests/migrated/edges_test.py $(BUILD)/stage $(BUILD)/tests/edges/edges $$route || exit 1; done
	@SCRIBBLE_SECONDS=$(SCRIBBLE_SECONDS) python3 -B tests/attacks/attacks.py --build $(BUILD) --seed $(SEED) scribbled
	@python3 -B tests/direct/ends_test.py $(BUILD)/stage $(BUILD)/tests/direct/ends $(BUILD)/tests/direct/libleaving-icd.so \
	    Ends.test_at_any_moment --runs $(ENDS) --seed $(SEED)

DISCRETE_ICD = $(BUILD)/tests/discrete/libdiscrete-icd.so
DISCRETE_DIFFERENTIAL = python3 -B tests/differential/gantry_test.py $(BUILD)/stage $(BUILD)/tests/differential/difftest discrete $(DISCRETE_ICD)

.PHONY: discrete-long
discrete-long:
	@tools/deps.sh --ask build test
	@$(MAKE) --no-print-directory stage build-tests
	@$(DISCRETE_DIFFERENTIAL) remote
	@$(DISCRETE_DIFFERENTIAL) passthrough
	@$(DISCRETE_DIFFERENTIAL) remote async,bus=8G,latency=20us
	@$(DISCRETE_DIFFERENTIAL) remote late=5ms,retain
	@for route in local mode unix tcp stop; do GANTRY_TEST_DISCRETE=$(abspath $(DISCRETE_ICD)) \
	    python3 -B tests/migrated/differential_test.py $(BUILD)/stage $(BUILD)/tests/differential/difftest $$route || exit 1; done
	@/usr/bin/python3 -B tests/programs/runner.py --stage $(BUILD)/stage --discrete $(DISCRETE_ICD)

FUZZ_SECONDS ?= 60

$(BUILD)-fuzz/build.ninja:
	@CC=clang $(MESON) setup $(BUILD)-fuzz -Dtests=enabled -Dfuzz=true -Db_lundef=false

fuzz:
	@tools/deps.sh --ask build test fuzz
	@$(MAKE) --no-print-directory $(BUILD)-fuzz/build.ninja
	@ninja -C $(BUILD)-fuzz -j $(JOBS) fuzzers
	@python3 tools/fuzz.py --build $(BUILD)-fuzz --seconds $(FUZZ_SECONDS) $(TARGET)

bench:
	@tools/deps.sh --ask build bench
	@$(MAKE) --no-print-directory stage benches
	@bench/run.py --build $(BUILD) $(BENCH)

bench-fairness:
	@tools/deps.sh --ask build figures
	@$(MAKE) --no-print-directory stage benches
	@bench/fairness/run.py --build $(BUILD) $(FAIRNESS)

bench-move:
	@tools/deps.sh --ask build bench
	@$(MAKE) --no-print-directory stage benches
	@bench/moves/run.py --build $(BUILD) $(MOVES)

bench-memory:
	@tools/deps.sh --ask build figures
	@$(MAKE) --no-print-directory stage
	@bench/memory/run.py --build $(BUILD) $(MEMORY)

bench-oversubscribe:
	@tools/deps.sh --ask build bench
	@$(MAKE) --no-print-directory stage benches
	@bench/memory/oversubscribe.py --build $(BUILD) $(OVERSUBSCRIBE)

results:
	@bench/results.py

demo:
	@echo 'demo: 1. install with apt what is missing to build Gantry and to run the demo'
	@echo '      2. build Gantry, without its tests, into $(BUILD)/; nothing of it is installed'
	@echo '      3. run ffmpeg and clpeak at the same time on one OpenCL device'
	@tools/deps.sh --ask build demo
	@$(MAKE) --no-print-directory stage
	@tools/demo.sh $(BUILD)/stage

format:
	@git ls-files 'src/*.[ch]' 'tests/*.[ch]' 'bench/*.[ch]' | xargs clang-format -i

check-format:
	@git ls-files 'src/*.[ch]' 'tests/*.[ch]' 'bench/*.[ch]' | xargs clang-format --dry-run -Werror

clean:
	@rm -rf $(BUILD) $(BUILD)-asan $(BUILD)-tsan $(BUILD)-fuzz
