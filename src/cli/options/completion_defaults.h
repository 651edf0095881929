// The flags of a verb that answers requests for completions: what holds where one says nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chat/completion_request.h"
#include "cli/options/model_options.h"
#include "cli/options/sampling_options.h"
#include "console/options/command_line.h"

namespace godwit::cli {

struct CompletionFlags {
  std::string template_variables = "{}";  // a JSON object
  SamplingFlags sampling;
  SessionOptions session;
  int64_t query_tokens = 0;  // 0: as chat::PromptOf has it
  // Besides the session's own: what a request may name.
  std::vector<std::string> kv_choices, prefill_choices;
  bool lenient = false;
  int64_t timeout_s = 0;  // 0: none
};

// With those of the caches, and of the model's template.
void AddCompletionFlags(console::CommandLine& line, ModelOptions& model, CompletionFlags& flags);

// As LoadEngine of an open folder, which refuses beforehand what no request could choose, too.
Engine LoadEngine(const ModelFolder& folder, const ModelOptions& model,
                  const CompletionFlags& flags);

// As that of the sampling flags, before a model is loaded.
GenerateOptions MakeGenerateOptions(const CompletionFlags& flags);

// generate: of MakeGenerateOptions. Throws and warns as TakeModelDefaults does.
chat::CompletionDefaults MakeCompletionDefaults(const CompletionFlags& flags,
                                                GenerateOptions generate,
                                                const SamplerDefaults& model);

}  // namespace godwit::cli
