// A guest in AssemblyScript: the SDK of its package, with WASI beneath its console, clock, random numbers and abort.

export * from "@gcoredev/proxy-wasm-sdk-as/assembly/proxy";
import {
  BaseContext,
  BufferTypeValues,
  Context,
  FilterDataStatusValues,
  FilterHeadersStatusValues,
  RootContext,
  WasmResultValues,
  get_buffer_bytes,
  makeHeaderPair,
  registerRootContext,
  send_local_response,
  set_buffer_bytes,
  stream_context,
  GrpcStatusValues,
} from "@gcoredev/proxy-wasm-sdk-as/assembly";

const began = Date.now();
let streams = 0;

class Root extends RootContext {
  onConfigure(size: u32): bool {
    const good = super.onConfigure(size);
    const chance = Math.random();
    console.log(`| configured: ${this.getConfiguration()} (after 2023: ${began > 1704067200000}, chance: ${chance >= 0 && chance < 1})`);
    return good;
  }

  createContext(context: u32): Context {
    streams += 1;
    return new Stream(context, this);
  }
}

class Stream extends Context {
  path: string = "";
  who: string = "";

  constructor(context: u32, root: RootContext) {
    super(context, root);
  }

  onRequestHeaders(_count: u32, _end: bool): FilterHeadersStatusValues {
    const headers = stream_context.headers.request;
    this.path = headers.get(":path");
    const who = headers.get("x-who");
    this.who = who.length > 0 ? who : "nobody";
    console.log(`| ${this.path} from ${this.who}, ${streams} at a time`);
    if (this.path == "/refuse") {
      const body = String.UTF8.encode("refused in AssemblyScript\n");
      send_local_response(403, "", body, [makeHeaderPair("x-guest", "assemblyscript")], GrpcStatusValues.InvalidCode);
      return FilterHeadersStatusValues.StopIteration;
    }
    if (this.path == "/abort") {
      console.error("| about to abort");
      assert(false, "as asked");
    }
    headers.replace("x-guest", "assemblyscript");
    headers.remove("content-length");
    const ask = [makeHeaderPair(":method", "GET"), makeHeaderPair(":path", `/ask?${this.who}`), makeHeaderPair(":authority", "up")];
    const sent = this.root_context.httpCall("up", ask, new ArrayBuffer(0), [], 1000, this, (origin, _headers, size, _trailers) => {
      const status = stream_context.headers.http_callback.get(":status");
      const answer = `${status} ${String.UTF8.decode(get_buffer_bytes(BufferTypeValues.HttpCallResponseBody, 0, <u32>size))}`;
      console.log(`| the callout says ${answer}`);
      stream_context.headers.request.replace("x-answer", answer);
      origin.continueRequest();
    });
    return sent == WasmResultValues.Ok ? FilterHeadersStatusValues.StopIteration : FilterHeadersStatusValues.Continue;
  }

  onRequestBody(size: usize, end: bool): FilterDataStatusValues {
    if (!end) {
      return FilterDataStatusValues.StopIterationAndBuffer;
    }
    const body = String.UTF8.decode(get_buffer_bytes(BufferTypeValues.HttpRequestBody, 0, <u32>size));
    const text = body.split(" ").reverse().join(" ");
    set_buffer_bytes(BufferTypeValues.HttpRequestBody, 0, <u32>size, String.UTF8.encode(text));
    return FilterDataStatusValues.Continue;
  }

  onResponseHeaders(_count: u32, _end: bool): FilterHeadersStatusValues {
    stream_context.headers.response.replace("x-guest", "assemblyscript");
    return FilterHeadersStatusValues.Continue;
  }

  onLog(): void {
    console.log(`| done with ${this.path}: ${stream_context.headers.response.get(":status")}`);
  }

  onDelete(): void {
    streams -= 1;
  }
}

registerRootContext((context: u32) => new Root(context), "root");
