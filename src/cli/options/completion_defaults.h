// What the flags say where a request for a completion says nothing.
#pragma once

#include <string>

#include "chat/completion_request.h"
#include "cli/options/sampling_options.h"

namespace godwit::cli {

// generate: as MakeGenerateOptions made it. template_variables: a JSON object. Throws and warns as
// TakeModelDefaults does.
chat::CompletionDefaults MakeCompletionDefaults(const SamplingFlags& flags,
                                                GenerateOptions generate,
                                                const std::string& template_variables,
                                                const SamplerDefaults& model);

}  // namespace godwit::cli
