// A file of requests, one on each line, in the form of OpenAI's batches:
//
//   {"custom_id": "a", "method": "POST", "url": "/v1/completions", "body": {"prompt": "Once"}}
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/line_reader.h"
#include "chat/completion_request.h"

namespace godwit::cli {

// The most bytes of a request: more than a text of a million tokens, or their ids, takes.
constexpr size_t kMaxRequestBytes = size_t{64} << 20;

struct BatchRequest {
  std::string custom_id;
  chat::CompletionRequest completion;
};

// Parses a line. where: "line 12". Throws Error(kFormat) that begins with it.
BatchRequest ParseBatchRequest(std::string_view line, std::string_view where,
                               const chat::CompletionDefaults& defaults = {});

// Whether the line has no request.
bool IsBlank(std::string_view line);

// A fingerprint of a request's bytes, which its result carries.
uint64_t Fingerprint(std::string_view line);

struct RequestPlace {
  int64_t line;  // from 1 on
  uint64_t fingerprint;
};

struct RequestIndex {
  std::string path;
  std::unordered_map<std::string, RequestPlace> by_custom_id;
  int64_t lines = 0;
  bool has_chats = false;
};

// Checks all requests, and keeps their names. Throws Error(kFormat) with everything that is wrong,
// and Error(kIo). Shows progress.
RequestIndex CheckRequests(const std::string& path);

}  // namespace godwit::cli
