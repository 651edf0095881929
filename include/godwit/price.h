// The price of a request, told before it is made: Engine::PriceOf.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace godwit {

// The time and memory that a request would take if it began now and no other did. Costs are those
// of steps that the engine has measured, while it served requests or in a short probe.
struct RequestPrice {
  std::string kv;       // SessionOptions::kv
  std::string prefill;  // the way in which the context would be read; empty: as kv has it
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;  // prompt tokens that are not read again, in memory or on the disk
  int64_t disk_tokens = 0;    // of these, from LoadOptions::cache_dir
  int64_t kv_bytes = 0;       // of the cache when the prompt has been read, at most
  double first_token_ms = 0;  // to read the rest of the prompt, without time in a queue
  double token_ms = 0;        // of a token of the answer, at its beginning
  // Whether token_ms counts the gain of draft tokens (GenerateOptions::draft). They were then used
  // before; else the time is that without them.
  bool draft_measured = false;
  // Whether steps were measured as deep as a quarter of the request's. Else the times are farther
  // from what was measured.
  bool near_measured = true;
  int64_t running = 0, waiting = 0;  // other requests, which take time, too
};

// The parts of a prompt that begins with passages (Session::ReadPassages).
struct PassagePlaces {
  // The ends of the head and of each passage, in tokens of the prompt, ascending.
  std::vector<int64_t> ends;
  int64_t read_anew = 0;  // as for ReadPassages
};

// The place at which a prompt leaves the text in memory that begins like it for longest.
struct PrefixReport {
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;  // RequestPrice::cached_tokens
  int64_t alike_tokens = 0;   // with that text, cached or not
  int64_t other_tokens = 0;   // of that text that were read; 0: none begins alike
  // The next tokens of both, from alike_tokens on; of a few at most.
  std::vector<int32_t> mine, other;
  double lost_ms = 0;  // to read what is not cached, as far as that text goes
};

}  // namespace godwit
