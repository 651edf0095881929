// Loading: the answer to requests while the model is loaded. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>

#include "server/http_server.h"

namespace godwit::server {

class Loading {
 public:
  // Notes how many of the model's bytes are loaded.
  void Note(int64_t done_bytes, int64_t total_bytes);

  // The progress from 0 to 0.99: work remains after the last byte.
  double progress() const { return percent_ / 100.0; }

  // Answers 503 at every path, with the time after which to ask again: {"status": "loading",
  // "progress": 0.42, "error": {...}}.
  void Answer(HttpReply& reply) const;

 private:
  std::atomic<int> percent_ = 0;
};

}  // namespace godwit::server
