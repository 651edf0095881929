// Tools: the tools that a request offers, and the choice among them, in the shape of OpenAI's API.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "godwit/engine.h"

namespace godwit::chat {

struct Tools {
  // The list of the request, which the template sees; empty: no tools.
  nlohmann::ordered_json list = nlohmann::ordered_json::array();

  bool Has(std::string_view name) const;
  // Whether a tool's parameter is a string by the tool's schema, or missing in it.
  bool IsText(std::string_view name, std::string_view parameter) const;
};

// Parses "tools": [{"type": "function", "function": {"name", "description", "parameters",
// "strict"}}]. Throws Error(kInput) for anything else, and for more than 128.
Tools ParseTools(const nlohmann::ordered_json& value);

// Applies "tool_choice". "auto" changes nothing; "none" removes the tools. "required", or {"type":
// "function", "function": {"name": "..."}} for one tool, restricts the output to calls by the
// schemas of their parameters (generate.json_schema). parallel: more than one call. Throws
// Error(kInput) for anything else.
void TakeToolChoice(const nlohmann::ordered_json& choice, bool parallel, Tools& tools,
                    GenerateOptions& generate);

}  // namespace godwit::chat
