// A guest in Go: its runtime with scheduler and collector, fmt, time and maps, over the functions of ABI 0.2.1.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

type stream struct {
	path, who string
	began     time.Time
}

var (
	streams      = map[uint32]*stream{}
	streamOfCall = map[uint32]uint32{}
)

func main() {}

//go:wasmexport proxy_abi_version_0_2_1
func abiVersion() {}

//go:wasmexport proxy_on_configure
func onConfigure(_, size uint32) uint32 {
	fmt.Printf("| configured: %s (%d processor)\n", buffer(configuration, size), runtime.NumCPU())
	return 1
}

//go:wasmexport proxy_on_context_create
func onContextCreate(context, parent uint32) {
	if parent != 0 {
		streams[context] = &stream{began: time.Now()}
	}
}

//go:wasmexport proxy_on_request_headers
func onRequestHeaders(context, _, _ uint32) uint32 {
	stream := streams[context]
	stream.path, stream.who = header(requestHeaders, ":path"), header(requestHeaders, "x-who")
	fmt.Printf("| %s from %s, %d at a time\n", stream.path, stream.who, len(streams))
	switch stream.path {
	case "/refuse":
		reply(403, pairs([2]string{"x-guest", "go"}), "refused in Go\n")
		return actionPause
	case "/panic":
		fmt.Fprintln(os.Stderr, "| about to panic")
		panic("as asked")
	}
	setHeader(requestHeaders, "x-guest", "go")
	removeHeader(requestHeaders, "content-length")
	headers := pairs([2]string{":method", "GET"}, [2]string{":path", "/ask?" + stream.who}, [2]string{":authority", "up"})
	token, ok := call("up", headers, 1000)
	if !ok {
		return actionContinue
	}
	streamOfCall[token] = context
	return actionPause
}

//go:wasmexport proxy_on_http_call_response
func onHTTPCallResponse(_, token, _, size, _ uint32) {
	context := streamOfCall[token]
	delete(streamOfCall, token)
	answer := header(callHeaders, ":status") + " " + buffer(callBody, size)
	fmt.Printf("| the callout says %s\n", answer)
	proxySetEffectiveContext(context)
	setHeader(requestHeaders, "x-answer", answer)
	proxyContinueStream(0)
}

//go:wasmexport proxy_on_request_body
func onRequestBody(_, size, end uint32) uint32 {
	if end == 0 {
		return actionPause
	}
	// Other goroutines run while the host waits in this callback.
	words := make(chan string)
	go func() {
		defer close(words)
		for _, word := range strings.Fields(buffer(requestBody, size)) {
			words <- strings.ToUpper(word)
		}
	}()
	counts := map[string]int{}
	for word := range words {
		counts[word]++
	}
	setBuffer(requestBody, size, fmt.Sprint(counts))
	return actionContinue
}

//go:wasmexport proxy_on_response_headers
func onResponseHeaders(_, _, _ uint32) uint32 {
	setHeader(responseHeaders, "x-guest", "go")
	return actionContinue
}

//go:wasmexport proxy_on_log
func onLog(context uint32) {
	stream := streams[context]
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	took := time.Since(stream.began)
	fmt.Printf("| done with %s: %s (took time: %t, after 2023: %t, collected: %t)\n", stream.path, header(responseHeaders, ":status"),
		took > 0 && took < time.Minute, stream.began.Year() > 2023, memory.NumGC > 0)
}

//go:wasmexport proxy_on_delete
func onDelete(context uint32) {
	delete(streams, context)
}
