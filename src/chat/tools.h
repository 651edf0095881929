// Tools that a request offers, and which of them is to be called, in the shape of OpenAI's API.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "godwit/engine.h"

namespace godwit::chat {

struct Tools {
  // As the request has them, of which the template is told; an empty list: of none.
  nlohmann::ordered_json list = nlohmann::ordered_json::array();

  bool Has(std::string_view name) const;
  // Whether a parameter of a tool is a text by its schema, or is none of the schema's.
  bool IsText(std::string_view name, std::string_view parameter) const;
};

// "tools": [{"type": "function", "function": {"name", "description", "parameters", "strict"}}].
// Throws Error(kInput) for anything else, and for more than 128.
Tools ParseTools(const nlohmann::ordered_json& value);

// "tool_choice": "auto"; "none": the model is told of no tool; "required", or {"type": "function",
// "function": {"name": "..."}}: it says nothing but calls, of that tool, by the schemas of their
// parameters (generate.json_schema). parallel: more than one. Throws Error(kInput) for anything
// else.
void TakeToolChoice(const nlohmann::ordered_json& choice, bool parallel, Tools& tools,
                    GenerateOptions& generate);

}  // namespace godwit::chat
