// Speaks to an MCP server through the official TypeScript SDK, and prints as JSON lines what the library shows of it.
//
//     client.cjs 1|2 auto|legacy URL list
//     client.cjs 1|2 auto|legacy URL call TOOL ARGUMENTS [--progress] [--cancel-after COUNT]
//
// The first word is the SDK's major: 2 asks `server/discover` first (`auto`) or shakes hands (`legacy`), 1 only knows the latter.
// A call is cancelled in the library's own way, with its abort signal, once so many progress notifications have come (0: half a
// second after it was sent). Every client in tests/clients/mcp-* prints the same lines. The packages are found through NODE_PATH.

'use strict';

const { setTimeout } = require('node:timers/promises');
const { parseArgs } = require('node:util');

/** How long a client stays connected after it has cancelled, so that a case sees what the library does about it. */
const LINGER_MS = 1_000;

const tell = (event, fields) => console.log(JSON.stringify({ event, ...fields }));

/** The client and the transport of one major of the SDK. */
function sdk(major, lifecycle) {
  const about = { name: 'mcp-typescript', version: '0.1.0' };
  if (major === '2') {
    const { Client, StreamableHTTPClientTransport } = require('@modelcontextprotocol/client');
    return { client: new Client(about, { versionNegotiation: { mode: lifecycle } }), Transport: StreamableHTTPClientTransport };
  }
  if (major !== '1' || lifecycle !== 'legacy') {
    throw new Error('give 2, or 1 with legacy');
  }
  const { Client } = require('@modelcontextprotocol/sdk/client/index.js');
  const { StreamableHTTPClientTransport } = require('@modelcontextprotocol/sdk/client/streamableHttp.js');
  return { client: new Client(about), Transport: StreamableHTTPClientTransport };
}

async function call(major, client, tool, toolArguments, { progress, 'cancel-after': cancelAfter }) {
  const aborting = new AbortController();
  const limit = cancelAfter === undefined ? undefined : Number(cancelAfter);
  const options = { signal: aborting.signal, timeout: 310_000 };
  let seen = 0;
  if (progress) {
    options.onprogress = (notification) => {
      tell('progress', notification);
      seen += 1;
      if (seen === limit) aborting.abort('no longer needed');
    };
  }
  if (limit === 0) setTimeout(500).then(() => aborting.abort('no longer needed'));
  const request = { name: tool, arguments: toolArguments };
  const calling = major === '2' ? client.callTool(request, options) : client.callTool(request, undefined, options);
  try {
    tell('result', { result: await calling });
  } catch (error) {
    if (!aborting.signal.aborted) throw error;
    tell('cancelled');
    await setTimeout(LINGER_MS);
  }
}

async function main() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { progress: { type: 'boolean', default: false }, 'cancel-after': { type: 'string' } },
  });
  const [major, lifecycle, url, command, tool, toolArguments] = positionals;
  const { client, Transport } = sdk(major, lifecycle);
  // What goes wrong outside of any request: a stream that broke, an answer to nothing.
  client.onerror = (error) => tell('noticed', { kind: error.constructor.name, message: error.message });
  const transport = new Transport(new URL(url));
  await client.connect(transport);
  tell('connected', { version: transport.protocolVersion, server: client.getServerVersion() });
  if (command === 'list') {
    tell('tools', { tools: (await client.listTools()).tools });
  } else {
    await call(major, client, tool, JSON.parse(toolArguments), values);
  }
  await client.close();
  tell('closed');
}

main().catch((error) => {
  const code = Number.isInteger(error.code) ? error.code : null;
  tell('error', { code, kind: error.constructor.name, message: error.message });
  process.exit(0);
});
