// The flags of verbs that write a chat in a model's own template.
#pragma once

#include <string>
#include <string_view>

#include "cli/options/model_options.h"

namespace godwit::cli {

// variables: of Engine::ApplyChatTemplate.
void AddTemplateFlags(console::CommandLine& line, ModelOptions& model, std::string& variables);

// That one of these flags which was given, or nullptr: for verbs that can do without a template.
const char* GivenTemplateFlag(const ModelOptions& model, const std::string& variables);

// Whether the model has a chat template. Throws what using it would throw at once, for a broken one
// or an unknown name, but before the weights are read.
bool HasChatTemplate(const ModelOptions& model);

// Throws Error(kUnsupported) where it has none: what needs it ("--chat needs"), and what could be
// done instead.
void RequireChatTemplate(const ModelOptions& model, std::string_view need,
                         std::string_view instead);

}  // namespace godwit::cli
