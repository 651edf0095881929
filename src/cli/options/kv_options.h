// Flags for the part of a text that is kept, and its storage.
#pragma once

#include <string>
#include <vector>

#include "console/options/command_line.h"
#include "godwit/engine.h"
#include "model/spec.h"

namespace godwit::cli {

// The memory and file of KV caches: LoadOptions::kv_memory_bytes, kv_file, kv_file_bytes.
struct KvMemory {
  int64_t bytes = 0;
  std::string file;
  int64_t file_bytes = 0;
};
void AddKvMemoryFlags(console::CommandLine& line, KvMemory& memory);

// Adds the KV flags and AddKvMemoryFlags. takes_recompute: whether --kv may also be the oracle
// without a cache (recompute_spec.h).
void AddKvFlags(console::CommandLine& line, SessionOptions& options, KvMemory& memory,
                bool takes_recompute = false);
// AddKvFlags with a repeatable --kv: each value is one to compare. Without --kv, the options' own
// counts.
void AddComparedKvFlags(console::CommandLine& line, SessionOptions& options, KvMemory& memory,
                        std::vector<std::string>& kvs, bool takes_recompute = false);
// Adds only the flags that do not depend on a text's length: --kv, --kv-type, --ubatch-size.
void AddKvCacheFlags(console::CommandLine& line, SessionOptions& options,
                     bool takes_recompute = false);
// AddKvCacheFlags with a repeatable --kv.
void AddComparedKvCacheFlags(console::CommandLine& line, SessionOptions& options,
                             std::vector<std::string>& kvs);

// Adds only a repeatable --kv and --kv-type, for a verb that explains them.
void AddExplainedKvFlags(console::CommandLine& line, SessionOptions& options,
                         std::vector<std::string>& kvs);

// Adds --prefill: the way to read the context of a prompt.
void AddPrefillFlag(console::CommandLine& line, SessionOptions& options);
// Adds --prefill and --query-tokens, for verbs that answer a question. fallback: the default
// question, for people; empty: query_tokens says.
void AddPrefillFlags(console::CommandLine& line, SessionOptions& options, int64_t& query_tokens,
                     std::string fallback = {});

// Throws Error(kInput) for --query-tokens if none of these treats a question differently from the
// text before it.
void RequireUseOfQueryTokens(std::span<const std::string> prefills,
                             std::span<const std::string> kvs);

// The most tokens that are kept, or read anew. Throws what Engine::NewSession would throw, but
// before the weights are loaded.
int64_t CheckKvOptions(const DecoderSpec& spec, const SessionOptions& options);

// The number of texts whose caches fit at once, for 4,096 tokens each or for the most that they
// keep: 1 to 32. More texts would read the weights hardly less often.
int64_t TextsAtOnce(const Engine& engine, const SessionOptions& options);

}  // namespace godwit::cli
