# MCP clients and the official conformance suite, made by others. They come as pinned packages of the Python index and of npm into
# .tools/, and from crates.io into target/mcp-rust/. Included by the Makefile.

CLIENTS := tests/clients
MCP_PYTHON := $(TOOLS)/mcp-python
MCP_NODE := $(TOOLS)/mcp-node
MCP_RUST_TARGET := $(TARGET_DIR)/mcp-rust
TEST_ENVIRONMENT += MCP_RUST="$(MCP_RUST_TARGET)/debug/mcp-rust"

# As for the other stamps: one whose tool is gone goes too.
$(shell test -d $(MCP_PYTHON)/1/mcp -a -d $(MCP_PYTHON)/2/mcp || rm -f $(TOOLS)/mcp-python.stamp; \
  test -d $(MCP_NODE)/node_modules/@modelcontextprotocol/conformance || rm -f $(TOOLS)/mcp-node.stamp)

clients: $(TOOLS)/mcp-python.stamp $(TOOLS)/mcp-node.stamp mcp-rust

mcp-rust: $(TOOLS)/rust.stamp
	@echo "==> Building the MCP client in Rust (the first time about half a minute)"
	cd $(CLIENTS)/mcp-rust && CARGO_TARGET_DIR="$(MCP_RUST_TARGET)" $(CARGO) build --locked

# Two folders that a Python's path names, instead of two environments: the two majors have the same module names, and share the rest.
$(TOOLS)/mcp-python.stamp: $(CLIENTS)/mcp-python/requirements.txt $(CLIENTS)/mcp-python/requirements-1.txt $(TOOLS)/venv.stamp
	@echo "==> Fetching the MCP SDK for Python, both majors (about 11 MB)"
	@rm -rf $(MCP_PYTHON)
	@{ $(PIP_INSTALL) --target $(MCP_PYTHON)/2 -r $< && $(PIP_INSTALL) --no-deps --target $(MCP_PYTHON)/1 -r $(word 2,$^); } \
	  || { echo "error: cannot fetch the MCP SDK from the Python package index; hint: check the network" >&2; exit 1; }
	@touch $@

# What is optional is for the inspector's web page and for its store of secrets.
$(TOOLS)/mcp-node.stamp: $(CLIENTS)/mcp-typescript/package.json $(CLIENTS)/mcp-typescript/package-lock.json $(TOOLS)/node.stamp
	@echo "==> Fetching the MCP SDK for TypeScript, the conformance suite and the inspector (about 58 MB)"
	@mkdir -p $(MCP_NODE) && cp $(CLIENTS)/mcp-typescript/package*.json $(MCP_NODE)/
	@(cd $(MCP_NODE) && ../npm ci --ignore-scripts --omit=optional --no-audit --no-fund --no-update-notifier) \
	  || { echo "error: cannot fetch what the MCP cases need from the npm registry; hint: check the network" >&2; exit 1; }
	@touch $@
