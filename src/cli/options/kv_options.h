// The flags that decide what is kept of a text, and how.
#pragma once

#include <string>
#include <vector>

#include "console/options/command_line.h"
#include "godwit/engine.h"
#include "model/spec.h"

namespace godwit::cli {

// Where caches lie: LoadOptions::kv_memory_bytes, kv_file, kv_file_bytes.
struct KvMemory {
  int64_t bytes = 0;
  std::string file;
  int64_t file_bytes = 0;
};
void AddKvMemoryFlags(console::CommandLine& line, KvMemory& memory);

// With those. takes_recompute: whether --kv may also be what measures without a cache
// (recompute_spec.h).
void AddKvFlags(console::CommandLine& line, SessionOptions& options, KvMemory& memory,
                bool takes_recompute = false);
// Likewise, where --kv may be repeated: each is one to compare. None: that of the options.
void AddComparedKvFlags(console::CommandLine& line, SessionOptions& options, KvMemory& memory,
                        std::vector<std::string>& kvs, bool takes_recompute = false);
// Of those, the ones that do not depend on the length of a text: --kv, --kv-type, --ubatch-size.
void AddKvCacheFlags(console::CommandLine& line, SessionOptions& options,
                     bool takes_recompute = false);
// Likewise, where --kv may be repeated.
void AddComparedKvCacheFlags(console::CommandLine& line, SessionOptions& options,
                             std::vector<std::string>& kvs);

// Only --kv, as often as one likes, and --kv-type: for a verb that explains them.
void AddExplainedKvFlags(console::CommandLine& line, SessionOptions& options,
                         std::vector<std::string>& kvs);

// How the context of a prompt is read.
void AddPrefillFlag(console::CommandLine& line, SessionOptions& options);
// And where its question begins, for verbs that answer one.
// fallback: what the question is where nothing is said, for people; empty: query_tokens says.
void AddPrefillFlags(console::CommandLine& line, SessionOptions& options, int64_t& query_tokens,
                     std::string fallback = {});

// Throws Error(kInput) for --query-tokens where none of these tells a question from what stands
// before it.
void RequireUseOfQueryTokens(std::span<const std::string> prefills,
                             std::span<const std::string> kvs);

// How many tokens are kept at most, or read anew. Throws what Engine::NewSession would throw, but
// before the weights are loaded.
int64_t CheckKvOptions(const DecoderSpec& spec, const SessionOptions& options);

// How many texts at once have room for 4,096 tokens each, or for as many as they keep at most: 1 to
// 32. More than that read the weights hardly less often.
int64_t TextsAtOnce(const Engine& engine, const SessionOptions& options);

}  // namespace godwit::cli
