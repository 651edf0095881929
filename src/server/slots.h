// What the requests that are being answered have come to: lengths and times, nothing of a text.
// Thread-safe.
#pragma once

#include <cstdint>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "base/stopwatch.h"
#include "godwit/engine.h"

namespace godwit::server {

class Slots {
 public:
  explicit Slots(int64_t count) : slots_(static_cast<size_t>(count)) {}

  // The place of one request, for as long as it lives.
  class Taken {
   public:
    // id: the request's number. There must be a free one: there are as many as workers.
    Taken(Slots& slots, int64_t id);
    ~Taken();
    Taken(const Taken&) = delete;
    Taken& operator=(const Taken&) = delete;

    // What came of one of its answers, of which 0 tells how far their prompt is read.
    void Take(int answer, const Event& event);

   private:
    Slots& slots_;
    size_t at_;
  };

  // Since anything came of any of them.
  double still_ms() const;

  // A list, in llama.cpp's terms where it has them. context: the most tokens of a text.
  nlohmann::ordered_json Json(int64_t context) const;

 private:
  struct Slot {
    int64_t id = -1;  // of the request; -1: free
    Stopwatch watch = {};
    PromptProgress prompt = {};
    int64_t output_tokens = 0;
  };

  mutable std::mutex mutex_;  // of what follows
  Stopwatch moved_;
  std::vector<Slot> slots_;
};

}  // namespace godwit::server
