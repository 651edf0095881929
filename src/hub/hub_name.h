// Names of models on the Hugging Face hub: "org/name", and behind it ":Q4_K_M" for one of several
// GGUF models.
#pragma once

#include <string>
#include <string_view>

namespace godwit::hub {

struct HubName {
  std::string repository;  // "org/name", or what else stands before the colon
  std::string quant;       // empty: none
};

// Of any text; a colon counts that is behind the last slash.
HubName SplitHubName(const std::string& name);

// Whether it is "org/name", in the letters that the hub allows; not "./name" or "/name".
bool IsHubName(std::string_view repository);

// "org/name:Q4_K_M", as a shell takes it.
std::string Spelling(const std::string& repository, const std::string& quant);

}  // namespace godwit::hub
