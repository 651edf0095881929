// StreamEval (StreamingLLM, section 4.3): how far back in an endless text a model finds a line.
//
// Lines are written one after the other. Every so often the model is asked for the line at a fixed
// distance back. A cache that has dropped this line scores nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "eval/stream.h"

namespace godwit::eval {

struct StreamQuery : StreamTurn {
  int64_t sample = 0;
  int64_t line = 0;             // the line that is asked for
  int64_t distance_lines = 0;   // from the line to the last one before the query
  int64_t distance_tokens = 0;  // from the line's first token to the query's last
};

struct StreamEvalOptions {
  int64_t lines = 1000;                   // of each stream
  std::vector<int64_t> distances = {20};  // in lines; each has streams of its own
  // The lines from a query to the next; the first comes as soon as a line has that distance.
  int64_t every = 10;
  int64_t samples = 1;  // streams for each distance
  uint64_t seed = 0;    // of the numbers, which are the same at all distances
  Stream::Options stream;

  // Whether an earlier run has answered this query: `fed` and `right` are then filled in.
  std::function<bool(StreamQuery& query)> recall;
  // The callbacks run on the calling thread and may throw. The total is an estimate until the last
  // stream has begun.
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
  std::vector<DistanceResult> distances;  // in the order of the options
  KvReport kv;                            // after the last stream
  int64_t tokens = 0;                     // of all streams
  double elapsed_ms = 0;
};

// Throws Error(kInput) before any work if options make no sense, and before a stream that does not
// fit into the session's context. Otherwise throws as Stream does.
StreamEvalResult MeasureStreamEval(const Reader& reader, const StreamCoder& coder,
                                   const StreamEvalOptions& options);

}  // namespace godwit::eval
