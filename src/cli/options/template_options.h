// Flags of verbs that write a chat in a model's own template.
#pragma once

#include <string>
#include <string_view>

#include "cli/options/model_options.h"

namespace godwit::cli {

// variables: for Engine::ApplyChatTemplate.
void AddTemplateFlags(console::CommandLine& line, ModelOptions& model, std::string& variables);

// The template flag that was given, or nullptr: for verbs that can do without a template.
const char* GivenTemplateFlag(const ModelOptions& model, const std::string& variables);

// Whether the model has a chat template. Throws, before the weights are read, what using a broken
// one or an unknown name would throw.
bool HasChatTemplate(const ModelOptions& model);

// Throws Error(kUnsupported) if the model has no chat template. need, instead: parts of the
// message, such as "--chat needs", and an alternative.
void RequireChatTemplate(const ModelOptions& model, std::string_view need,
                         std::string_view instead);

}  // namespace godwit::cli
