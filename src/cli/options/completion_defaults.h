// Flags of a verb that answers completion requests: the defaults for fields that a request leaves
// out.
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
  int64_t query_tokens = 0;  // 0: chat::PromptOf decides
  // Further values, beside the session's own, that a request may name.
  std::vector<std::string> kv_choices, prefill_choices;
  bool lenient = false;
  int64_t timeout_s = 0;  // 0: none
};

// Adds these flags and those of the caches and the model's template.
void AddCompletionFlags(console::CommandLine& line, ModelOptions& model, CompletionFlags& flags);

// Throws what LoadEngine would throw for choices that no request could use.
void CheckCompletionFlags(const ModelFolder& folder, const CompletionFlags& flags);

// LoadEngine of an open folder, which first refuses choices that no request could use, too.
Engine LoadEngine(const ModelFolder& folder, const ModelOptions& model,
                  const CompletionFlags& flags);

// The options of the sampling flags, made before a model is loaded.
GenerateOptions MakeGenerateOptions(const CompletionFlags& flags);

// generate: from MakeGenerateOptions. Throws and warns as TakeModelDefaults does.
chat::CompletionDefaults MakeCompletionDefaults(const CompletionFlags& flags,
                                                GenerateOptions generate,
                                                const SamplerDefaults& model);

}  // namespace godwit::cli
