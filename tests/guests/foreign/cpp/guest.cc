// A guest in C++: libc++ with its strings, maps and streams, over the functions of ABI 0.2.1.

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#define IMPORT(name) extern "C" __attribute__((import_module("env"), import_name(#name))) uint32_t name
#define EXPORT(name) extern "C" __attribute__((export_name(#name)))

IMPORT(proxy_get_buffer_bytes)(uint32_t kind, size_t start, size_t size, char **data, size_t *length);
IMPORT(proxy_set_buffer_bytes)(uint32_t kind, size_t start, size_t size, const char *data, size_t length);
IMPORT(proxy_get_header_map_value)(uint32_t map, const char *name, size_t length, char **value, size_t *size);
IMPORT(proxy_replace_header_map_value)(uint32_t map, const char *name, size_t length, const char *value, size_t size);
IMPORT(proxy_remove_header_map_value)(uint32_t map, const char *name, size_t length);
IMPORT(proxy_http_call)(const char *cluster, size_t cluster_size, const char *headers, size_t headers_size, const char *body,
                        size_t body_size, const char *trailers, size_t trailers_size, uint32_t milliseconds, uint32_t *token);
IMPORT(proxy_send_local_response)(uint32_t status, const char *details, size_t details_size, const char *body, size_t body_size,
                                  const char *headers, size_t headers_size, int32_t grpc_status);
IMPORT(proxy_continue_stream)(uint32_t stream);
IMPORT(proxy_set_effective_context)(uint32_t context);

namespace {

enum { kContinue = 0, kPause = 1 };
enum { kRequestHeaders = 0, kResponseHeaders = 2, kCallHeaders = 6 };
enum { kRequestBody = 0, kCallBody = 4, kConfiguration = 7 };

struct Stream {
  std::string path, who;
};
std::map<uint32_t, Stream> streams;
std::map<uint32_t, uint32_t> stream_of_call;

// Takes over what the host allocated.
std::string taken(char *data, size_t size) {
  std::string text(data, size);
  free(data);
  return text;
}

std::string header(uint32_t map, const std::string &name) {
  char *value = nullptr;
  size_t size = 0;
  return proxy_get_header_map_value(map, name.data(), name.size(), &value, &size) == 0 ? taken(value, size) : "nobody";
}

void set_header(uint32_t map, const std::string &name, const std::string &value) {
  proxy_replace_header_map_value(map, name.data(), name.size(), value.data(), value.size());
}

std::string buffer(uint32_t kind, size_t size) {
  char *data = nullptr;
  size_t length = 0;
  return proxy_get_buffer_bytes(kind, 0, size, &data, &length) == 0 ? taken(data, length) : "";
}

// Header pairs as the ABI wants them: the count, the sizes, then the text with zeros.
std::string pairs(const std::vector<std::pair<std::string, std::string>> &headers) {
  std::string sizes, text;
  auto number = [&](uint32_t value) { sizes.append(reinterpret_cast<char *>(&value), 4); };
  number(headers.size());
  for (const auto &[name, value] : headers) {
    number(name.size());
    number(value.size());
    text += name + '\0' + value + '\0';
  }
  return sizes + text;
}

} // namespace

EXPORT(proxy_abi_version_0_2_1) void proxy_abi_version_0_2_1() {}

EXPORT(proxy_on_configure) uint32_t proxy_on_configure(uint32_t, uint32_t size) {
  std::cout << "| configured: " << buffer(kConfiguration, size) << std::endl;
  return 1;
}

EXPORT(proxy_on_context_create) void proxy_on_context_create(uint32_t context, uint32_t parent) {
  if (parent != 0) {
    streams[context];
  }
}

EXPORT(proxy_on_request_headers) uint32_t proxy_on_request_headers(uint32_t context, uint32_t, uint32_t) {
  Stream &stream = streams.at(context);
  stream = {header(kRequestHeaders, ":path"), header(kRequestHeaders, "x-who")};
  std::cout << "| " << stream.path << " from " << stream.who << ", " << streams.size() << " at a time" << std::endl;
  if (stream.path == "/refuse") {
    const std::string body = "refused in C++\n", headers = pairs({{"x-guest", "cpp"}});
    proxy_send_local_response(403, "", 0, body.data(), body.size(), headers.data(), headers.size(), -1);
    return kPause;
  }
  if (stream.path == "/abort") {
    std::cerr << "| about to abort" << std::endl;
    std::abort();
  }
  set_header(kRequestHeaders, "x-guest", "cpp");
  proxy_remove_header_map_value(kRequestHeaders, "content-length", 14);
  const std::string headers = pairs({{":method", "GET"}, {":path", "/ask?" + stream.who}, {":authority", "up"}});
  uint32_t token = 0;
  uint32_t status = proxy_http_call("up", 2, headers.data(), headers.size(), "", 0, "", 0, 1000, &token);
  stream_of_call[token] = context;
  return status == 0 ? kPause : kContinue;
}

EXPORT(proxy_on_http_call_response)
void proxy_on_http_call_response(uint32_t, uint32_t token, uint32_t, uint32_t size, uint32_t) {
  auto call = stream_of_call.extract(token);
  std::ostringstream answer;
  answer << header(kCallHeaders, ":status") << " " << buffer(kCallBody, size);
  std::cout << "| the callout says " << answer.str() << std::endl;
  proxy_set_effective_context(call.mapped());
  set_header(kRequestHeaders, "x-answer", answer.str());
  proxy_continue_stream(0);
}

EXPORT(proxy_on_request_body) uint32_t proxy_on_request_body(uint32_t, uint32_t size, uint32_t end) {
  if (end == 0) {
    return kPause;
  }
  std::ostringstream body;
  body << "{\"in\": \"" << buffer(kRequestBody, size) << "\", \"bytes\": " << size << ", \"half\": " << size / 2.0 << "}";
  const std::string text = body.str();
  proxy_set_buffer_bytes(kRequestBody, 0, size, text.data(), text.size());
  return kContinue;
}

EXPORT(proxy_on_response_headers) uint32_t proxy_on_response_headers(uint32_t, uint32_t, uint32_t) {
  set_header(kResponseHeaders, "x-guest", "cpp");
  return kContinue;
}

EXPORT(proxy_on_log) void proxy_on_log(uint32_t context) {
  std::cout << "| done with " << streams.at(context).path << ": " << header(kResponseHeaders, ":status") << std::endl;
}

EXPORT(proxy_on_delete) void proxy_on_delete(uint32_t context) { streams.erase(context); }
