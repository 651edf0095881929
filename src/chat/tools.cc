#include "chat/tools.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "base/quote.h"
#include "chat/json_fields.h"

namespace godwit::chat {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxTools = 128, kMaxNameBytes = 64;  // OpenAI's limits

void CheckName(const Json& name) {
  const auto may_be = [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '-'; };
  const bool good = name.is_string() && !name.get_ref<const std::string&>().empty() &&
                    name.get_ref<const std::string&>().size() <= kMaxNameBytes &&
                    std::ranges::all_of(name.get_ref<const std::string&>(), may_be);
  if (!good) {
    Refuse(R"("name": up to 64 letters, digits, dashes and underscores of ASCII)", name);
  }
}

// Whether a value is {"type": "function", "function": {...}}: a tool, or one by its name.
bool IsFunction(const Json& value) {
  return value.is_object() && value.value("type", Json()) == "function" &&
         value.value("function", Json()).is_object();
}

void CheckTool(const Json& tool) {
  if (!IsFunction(tool)) Refuse(R"(tools {"type": "function", "function": {"name": "..."}})", tool);
  const Json& function = tool["function"];
  CheckName(function.value("name", Json()));
  for (const auto& [key, part] : function.items()) {
    if (key == "parameters") {
      if (!part.is_object() && !part.is_null()) Refuse("\"parameters\" that are a schema", part);
    } else if (key == "description") {
      if (!part.is_string() && !part.is_null()) Refuse("a \"description\" that is text", part);
    } else if (key != "name" && key != "strict") {
      Throw(ErrorKind::kInput, "unknown field {} of a function", Quote(key));
    }
  }
}

// Rewrites a schema's references "#/..." to itself for a schema that contains it at `place`.
void MoveTo(std::string_view place, Json& schema) {
  if (schema.is_object()) {
    const auto ref = schema.find("$ref");
    if (ref != schema.end() && ref->is_string() &&
        ref->get_ref<const std::string&>().starts_with('#')) {
      *ref = fmt::format("#{}{}", place, ref->get_ref<const std::string&>().substr(1));
    }
  }
  if (schema.is_structured()) {
    for (Json& part : schema) MoveTo(place, part);
  }
}

Json SchemaOf(const Json& tool, std::string_view place) {
  const Json& function = tool["function"];
  Json arguments = function.value("parameters", Json());
  if (arguments.is_null()) arguments = {{"type", "object"}, {"properties", Json::object()}};
  MoveTo(fmt::format("{}/properties/arguments", place), arguments);
  return {{"type", "object"},
          {"properties", {{"name", {{"const", function["name"]}}}, {"arguments", arguments}}},
          {"required", {"name", "arguments"}},
          {"additionalProperties", false}};
}

// The value of a key. Null: there is none.
const Json* Find(const Json& object, std::string_view key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

const Json* FunctionOf(const Json& tools, std::string_view name) {
  for (const Json& tool : tools) {
    const Json& function = tool["function"];
    if (function["name"].get_ref<const std::string&>() == name) return &function;
  }
  return nullptr;
}

}  // namespace

bool Tools::Has(std::string_view name) const { return FunctionOf(list, name) != nullptr; }

bool Tools::IsText(std::string_view name, std::string_view parameter) const {
  const Json* const function = FunctionOf(list, name);
  const Json* const parameters = function == nullptr ? nullptr : Find(*function, "parameters");
  const Json* const properties = parameters == nullptr ? nullptr : Find(*parameters, "properties");
  const Json* const schema = properties == nullptr ? nullptr : Find(*properties, parameter);
  if (schema == nullptr) return true;
  if (const Json* const type = Find(*schema, "type")) {
    return *type == "string" ||
           (type->is_array() && std::ranges::find(*type, Json("string")) != type->end());
  }
  const Json* const values = Find(*schema, "enum");
  return values != nullptr && values->is_array() &&
         std::ranges::all_of(*values, [](const Json& value) { return value.is_string(); });
}

Tools ParseTools(const Json& value) {
  if (!value.is_array()) Refuse("a list of tools", value);
  if (value.size() > kMaxTools) {
    Throw(ErrorKind::kInput, "expected {} tools at most, found {}", kMaxTools, value.size());
  }
  std::ranges::for_each(value, CheckTool);
  return {.list = value};
}

void TakeToolChoice(const Json& choice, bool parallel, Tools& tools, GenerateOptions& generate) {
  if (choice.is_null() || choice == "auto") return;
  if (choice == "none") {
    tools.list = Json::array();
    return;
  }
  if (tools.list.empty()) Throw(ErrorKind::kInput, "it needs \"tools\"");
  if (choice == "required") {
    Json any = Json::array();
    for (const Json& tool : tools.list) {
      any.push_back(SchemaOf(tool, fmt::format("/items/anyOf/{}", any.size())));
    }
    Json schema{{"type", "array"}, {"minItems", 1}, {"items", {{"anyOf", any}}}};
    if (!parallel) schema["maxItems"] = 1;
    generate.json_schema = DumpJson(schema);
    return;
  }
  if (!IsFunction(choice)) {
    Refuse(R"("auto", "none", "required" or {"type": "function", "function": {"name": "..."}})",
           choice);
  }
  const Json name = choice["function"].value("name", Json());
  const auto named = std::ranges::find_if(
      tools.list, [&](const Json& tool) { return tool["function"]["name"] == name; });
  if (named == tools.list.end()) Refuse("the name of one of the tools", name);
  generate.json_schema = DumpJson(SchemaOf(*named, ""));
}

}  // namespace godwit::chat
