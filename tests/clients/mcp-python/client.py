"""Speaks to an MCP server through the official Python SDK, and prints as JSON lines what the library shows of it.

    client.py auto|legacy URL list
    client.py auto|legacy URL call TOOL ARGUMENTS [--progress] [--cancel-after COUNT]

Runs with both majors of the SDK: 2.x asks `server/discover` first (`auto`) or shakes hands (`legacy`), 1.x only knows the latter.
A call is cancelled in the library's own way, by leaving its cancel scope, once so many progress notifications have come (0: half
a second after it was sent). Every client in tests/clients/mcp-* prints the same lines.
"""

import argparse
import contextlib
import json
import sys

import anyio
import mcp

try:
    from mcp.shared.exceptions import MCPError
except ImportError:
    from mcp.shared.exceptions import McpError as MCPError


# How long a client stays connected after it has cancelled, so that a case sees what the library does about it.
LINGER_SECONDS = 1


def tell(event, **fields):
    print(json.dumps({"event": event, **fields}), flush=True)


@contextlib.asynccontextmanager
async def connected(lifecycle, url):
    """A session, the version that it has agreed on and what the server calls itself."""
    if hasattr(mcp, "Client"):
        async with mcp.Client(url, mode=lifecycle) as client:
            yield client, client.protocol_version, client.server_info
    elif lifecycle != "legacy":
        sys.exit("client.py: this major of the SDK only speaks legacy")
    else:
        from mcp.client.streamable_http import streamable_http_client

        async with streamable_http_client(url) as (reading, writing, _session_id):
            async with mcp.ClientSession(reading, writing) as session:
                answer = await session.initialize()
                yield session, answer.protocolVersion, answer.serverInfo


def plain(value):
    """A value of the library as the JSON that it stands for."""
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)


async def call(session, tool, arguments, progress, cancel_after):
    with anyio.CancelScope() as scope:
        seen = 0

        async def on_progress(done, total, message):
            nonlocal seen
            seen += 1
            tell("progress", progress=done, total=total, message=message)
            if seen == cancel_after:
                scope.cancel()

        async def cancel_soon():
            await anyio.sleep(0.5)
            scope.cancel()

        async with anyio.create_task_group() as tasks:
            if cancel_after == 0:
                tasks.start_soon(cancel_soon)
            result = plain(await session.call_tool(tool, arguments, progress_callback=on_progress if progress else None))
            tell("result", result=result)
            tasks.cancel_scope.cancel()
    if scope.cancelled_caught:
        tell("cancelled")
        await anyio.sleep(LINGER_SECONDS)


async def run(options):
    async with connected(options.lifecycle, options.url) as (session, version, server):
        tell("connected", version=version, server=plain(server) if server else None)
        if options.command == "list":
            tell("tools", tools=plain(await session.list_tools())["tools"])
        else:
            await call(session, options.tool, json.loads(options.arguments), options.progress, options.cancel_after)
    tell("closed")


def innermost(error):
    """The error that a nest of task groups has wrapped."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("lifecycle", choices=["auto", "legacy"])
    parser.add_argument("url")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list")
    calling = commands.add_parser("call")
    calling.add_argument("tool")
    calling.add_argument("arguments")
    calling.add_argument("--progress", action="store_true")
    calling.add_argument("--cancel-after", type=int)
    try:
        anyio.run(run, parser.parse_args())
    except Exception as error:
        error = innermost(error)
        code = error.error.code if isinstance(error, MCPError) else None
        tell("error", code=code, kind=type(error).__name__, message=str(error))


main()
