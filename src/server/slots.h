// Slots: lengths and times of the requests that are being answered, without any text. Thread-safe.
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
  explicit Slots(int64_t count) : slots_(count) {}

  // Taken: the slot of one request, for its lifetime.
  class Taken {
   public:
    // id: the request's number. A slot must be free: there are as many as workers.
    Taken(Slots& slots, int64_t id);
    ~Taken();
    Taken(const Taken&) = delete;
    Taken& operator=(const Taken&) = delete;

    // Counts an event of one of the request's answers. Answer 0 reports the progress of their
    // prompt.
    void Take(int answer, const Event& event);

   private:
    Slots& slots_;
    size_t at_;
  };

  // The time since the last event of any request.
  double stalled_ms() const;

  // The slots as a list, in llama.cpp's terms where it has them. context: the most tokens of a
  // text.
  nlohmann::ordered_json Json(int64_t context) const;

 private:
  struct Slot {
    int64_t id = -1;  // the request's number; -1: free
    Stopwatch watch = {};
    PromptProgress prompt = {};
    int64_t output_tokens = 0;
  };

  mutable std::mutex mutex_;  // guards the members below
  Stopwatch moved_;
  std::vector<Slot> slots_;
};

}  // namespace godwit::server
