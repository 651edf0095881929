// godwit inspect --kv: what cache policies do, in words, and what they cost in bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/options/command_line.h"
#include "cli/options/model_options.h"

namespace godwit::cli {

struct KvExplanationOptions {
  std::vector<std::string> kvs;
  SessionOptions session;  // kv_type
  std::vector<int64_t> contexts;
  std::optional<std::string> shape;
};

void AddKvExplanationFlags(CommandLine& line, KvExplanationOptions& options);

// Refuses what is meant for --kv without it.
void CheckKvExplanation(const KvExplanationOptions& options);

// Of the model, or of options.shape; reads no weights.
void ExplainKv(ModelOptions& model, const KvExplanationOptions& options, bool json);

}  // namespace godwit::cli
