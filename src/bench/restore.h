// What it takes to save a text, and to go on from it, beside what the disk can do.
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
  int64_t bytes = 0;  // of its files
  // Seconds, medians of all rounds.
  double save = 0;  // until it is on the disk
  double disk = 0;  // reading those files in order, none of them in the system's cache
  // From the first look into the folder until the logits of the next token: of these, as the policy
  // shows the text.
  double first_token_cold = 0;    // none of the files in the system's cache
  double first_token_warm = 0;    // all of them there
  double first_token_memory = 0;  // from a cache in memory
  // Until the text is there, with nothing of it looked at yet; none of the files in the cache.
  double open = 0;
  // Until all keys and values are proved.
  double restore_cold = 0;
  double restore_warm = 0;
  bool logits_agree = true;  // of all of these
};

// Of texts with the tokens of the cases' depths, filled by a sample (kv_fill.h), in a folder that
// it makes in `folder` and removes. on_step: after each of SuiteOptions::rounds. Throws Error.
std::vector<RestoreResult> MeasureRestore(const Decoder& model, const SuiteOptions& options,
                                          const std::filesystem::path& folder,
                                          const std::function<void(int64_t, int64_t)>& on_step);

}  // namespace godwit::bench
