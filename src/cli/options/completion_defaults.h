// The flags of a verb that answers requests for completions: what holds where one says nothing.
#pragma once

#include <cstdint>
#include <string>

#include "chat/completion_request.h"
#include "cli/options/command_line.h"
#include "cli/options/model_options.h"
#include "cli/options/sampling_options.h"

namespace godwit::cli {

struct CompletionFlags {
  std::string template_variables = "{}";  // a JSON object
  SamplingFlags sampling;
  SessionOptions session;
  int64_t query_tokens = 0;  // 0: as chat::PromptOf has it
};

// With those of the caches, and of the model's template.
void AddCompletionFlags(CommandLine& line, ModelOptions& model, CompletionFlags& flags);

// As that of the sampling flags, before a model is loaded.
GenerateOptions MakeGenerateOptions(const CompletionFlags& flags);

// generate: of MakeGenerateOptions. Throws and warns as TakeModelDefaults does.
chat::CompletionDefaults MakeCompletionDefaults(const CompletionFlags& flags,
                                                GenerateOptions generate,
                                                const SamplerDefaults& model);

}  // namespace godwit::cli
