// StreamEval (StreamingLLM, section 4.3): how far back in an endless text a model finds a line.
//
// Lines are written one after the other; every so often the model is asked for the one that stands
// a fixed distance back. A cache that has dropped that line scores nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "eval/stream.h"

namespace godwit::eval {

struct StreamQuery : StreamTurn {
  int64_t sample = 0;
  int64_t line = 0;             // that is asked for
  int64_t distance_lines = 0;   // from it to the last line before the query
  int64_t distance_tokens = 0;  // from its first token to the last one of the query
};

struct StreamEvalOptions {
  int64_t lines = 1000;                   // of each stream
  std::vector<int64_t> distances = {20};  // in lines; each has streams of its own
  int64_t every = 10;                     // lines from a query to the next; the first comes as soon
                                          // as there is a line at that distance
  int64_t samples = 1;                    // streams for each distance
  uint64_t seed = 0;                      // of the numbers, which are the same at all distances
  Stream::Options stream;

  // Whether an earlier run has answered this one: `fed` and `right` are then filled in.
  std::function<bool(StreamQuery& query)> recall;
  // From the calling thread; may throw. The total is an estimate until the last stream has begun.
  std::function<void(const StreamQuery& query)> on_query;
  std::function<void(int64_t done_tokens, int64_t total_tokens)> on_progress;
};

struct DistanceResult {
  int64_t distance_lines = 0;
  double distance_tokens = 0;  // mean
  int64_t queries = 0;
  int64_t right = 0;
};

struct StreamEvalResult {
  std::vector<DistanceResult> distances;  // as in the options
  KvReport kv;                            // after the last stream
  int64_t tokens = 0;                     // of all streams
  double elapsed_ms = 0;
};

// Throws Error(kInput) before any work when options make no sense, before a stream that does not
// fit into the session's context, and otherwise as Stream does.
StreamEvalResult MeasureStreamEval(const Reader& reader, const StreamCoder& coder,
                                   const StreamEvalOptions& options);

}  // namespace godwit::eval
