// What is answered while the model is loaded.
#pragma once

#include <atomic>
#include <cstdint>

#include "server/http_server.h"

namespace godwit::server {

// Thread-safe.
class Loading {
 public:
  // Of the model's bytes so many are there.
  void Note(int64_t done_bytes, int64_t total_bytes);

  // From 0 to 0.99: the rest is what follows the last byte.
  double progress() const { return percent_ / 100.0; }

  // 503 at every path: {"status": "loading", "progress": 0.42, "error": {...}}, and when to come
  // back.
  void Answer(HttpReply& reply) const;

 private:
  std::atomic<int> percent_ = 0;
};

}  // namespace godwit::server
