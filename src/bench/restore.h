// The time to save a text, and to go on from it, beside the speed of the disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "bench/suite.h"
#include "model/decoder.h"

namespace godwit::bench {

struct RestoreResult {
  int64_t tokens = 0;
  int64_t bytes = 0;            // of the text's files
  int64_t replayed_tokens = 0;  // read again behind the last saved state of recurrent layers
  // Seconds, medians of all rounds.
  double save = 0;  // until the text is on the disk
  double disk = 0;  // reading its files in order, none of them in the system's cache
  // From the first look into the folder until the logits of the next token, with the part of the
  // text that the policy shows.
  double first_token_cold = 0;    // no file in the system's cache
  double first_token_warm = 0;    // all files in the system's cache
  double first_token_memory = 0;  // from a cache in memory
  // Until the text is there, with replayed tokens but unread keys; no file is in the system's
  // cache.
  double open = 0;
  // Until all keys and values are verified.
  double restore_cold = 0;
  double restore_warm = 0;
  bool logits_agree = true;  // whether every way and round had the same logits
};

// Measures texts with as many tokens as the depths of the cases, filled by a sample (kv_fill.h).
// They lie in a new folder in `folder`, which is removed. on_step: called after each of
// SuiteOptions::rounds. Throws Error.
std::vector<RestoreResult> MeasureRestore(const Decoder& model, const SuiteOptions& options,
                                          const std::filesystem::path& folder,
                                          const std::function<void(int64_t, int64_t)>& on_step);

}  // namespace godwit::bench
