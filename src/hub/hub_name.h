// Names of models on the Hugging Face hub: "org/name", followed by ":Q4_K_M" to choose one of
// several GGUF models.
#pragma once

#include <string>
#include <string_view>

namespace godwit::hub {

struct HubName {
  std::string repository;  // "org/name", or any other text before the colon
  std::string quant;       // empty: none
};

// Splits any text at a colon behind the last slash.
HubName SplitHubName(const std::string& name);

// Whether the text is "org/name", in the letters that the hub allows; not "./name" or "/name".
bool IsHubName(std::string_view repository);

// The name as a shell takes it: "org/name:Q4_K_M".
std::string Spelling(const std::string& repository, const std::string& quant);

}  // namespace godwit::hub
