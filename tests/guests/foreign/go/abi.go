package main

import (
	"encoding/binary"
	"unsafe"
)

const (
	actionContinue = 0
	actionPause    = 1

	requestHeaders  = 0
	responseHeaders = 2
	callHeaders     = 6

	requestBody   = 0
	callBody      = 4
	configuration = 7
)

//go:wasmimport env proxy_get_buffer_bytes
func proxyGetBufferBytes(kind, start, size uint32, data, length *uint32) uint32

//go:wasmimport env proxy_set_buffer_bytes
func proxySetBufferBytes(kind, start, size uint32, data unsafe.Pointer, length uint32) uint32

//go:wasmimport env proxy_get_header_map_value
func proxyGetHeaderMapValue(kind uint32, name unsafe.Pointer, length uint32, value, size *uint32) uint32

//go:wasmimport env proxy_replace_header_map_value
func proxyReplaceHeaderMapValue(kind uint32, name unsafe.Pointer, length uint32, value unsafe.Pointer, size uint32) uint32

//go:wasmimport env proxy_remove_header_map_value
func proxyRemoveHeaderMapValue(kind uint32, name unsafe.Pointer, length uint32) uint32

//go:wasmimport env proxy_http_call
func proxyHTTPCall(cluster unsafe.Pointer, clusterSize uint32, headers unsafe.Pointer, headersSize uint32, body unsafe.Pointer,
	bodySize uint32, trailers unsafe.Pointer, trailersSize uint32, milliseconds uint32, token *uint32) uint32

//go:wasmimport env proxy_send_local_response
func proxySendLocalResponse(status uint32, details unsafe.Pointer, detailsSize uint32, body unsafe.Pointer, bodySize uint32,
	headers unsafe.Pointer, headersSize uint32, grpcStatus int32) uint32

//go:wasmimport env proxy_continue_stream
func proxyContinueStream(stream uint32) uint32

//go:wasmimport env proxy_set_effective_context
func proxySetEffectiveContext(context uint32) uint32

// allocated holds what the host asked room for, so that the collector leaves it alone until the guest takes it.
var allocated = map[uint32][]byte{}

//go:wasmexport proxy_on_memory_allocate
func onMemoryAllocate(size uint32) uint32 {
	room := make([]byte, max(size, 1))
	address := uint32(uintptr(unsafe.Pointer(&room[0])))
	allocated[address] = room
	return address
}

func taken(address, size uint32) string {
	room := allocated[address]
	delete(allocated, address)
	return string(room[:size])
}

func pointer(text string) (unsafe.Pointer, uint32) {
	return unsafe.Pointer(unsafe.StringData(text)), uint32(len(text))
}

func header(kind uint32, name string) string {
	var address, size uint32
	start, length := pointer(name)
	if proxyGetHeaderMapValue(kind, start, length, &address, &size) != 0 {
		return "nobody"
	}
	return taken(address, size)
}

func setHeader(kind uint32, name, value string) {
	nameStart, nameLength := pointer(name)
	valueStart, valueLength := pointer(value)
	proxyReplaceHeaderMapValue(kind, nameStart, nameLength, valueStart, valueLength)
}

func removeHeader(kind uint32, name string) {
	start, length := pointer(name)
	proxyRemoveHeaderMapValue(kind, start, length)
}

func buffer(kind, size uint32) string {
	var address, length uint32
	if proxyGetBufferBytes(kind, 0, size, &address, &length) != 0 {
		return ""
	}
	return taken(address, length)
}

func setBuffer(kind, size uint32, text string) {
	start, length := pointer(text)
	proxySetBufferBytes(kind, 0, size, start, length)
}

// pairs writes headers as the ABI wants them: the count, the sizes, then the text with zeros.
func pairs(headers ...[2]string) string {
	sizes := binary.LittleEndian.AppendUint32(nil, uint32(len(headers)))
	var text []byte
	for _, header := range headers {
		for _, part := range header {
			sizes = binary.LittleEndian.AppendUint32(sizes, uint32(len(part)))
			text = append(append(text, part...), 0)
		}
	}
	return string(append(sizes, text...))
}

func call(cluster, headers string, milliseconds uint32) (token uint32, ok bool) {
	clusterStart, clusterLength := pointer(cluster)
	headersStart, headersLength := pointer(headers)
	status := proxyHTTPCall(clusterStart, clusterLength, headersStart, headersLength, nil, 0, nil, 0, milliseconds, &token)
	return token, status == 0
}

func reply(status uint32, headers, body string) {
	bodyStart, bodyLength := pointer(body)
	headersStart, headersLength := pointer(headers)
	proxySendLocalResponse(status, nil, 0, bodyStart, bodyLength, headersStart, headersLength, -1)
}
