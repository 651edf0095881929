#include "chat/fixed_fields.h"

#include <algorithm>

#include "base/error.h"
#include "base/json_found.h"
#include "base/quote.h"

namespace godwit::chat {
namespace {

using Json = nlohmann::ordered_json;

constexpr FixedField kFixedFields[] = {
    {"store", "[false]", "nothing is stored"},
    {"service_tier", R"(["auto", "default"])", "there is one tier for all requests"},
    {"modalities", R"([["text"]])", "the model writes text only"},
    {"cache_prompt", "[true]", "cached text is always reused"},
    {"prompt_cache_retention", R"(["in_memory", "in-memory"])",
     "requests cannot choose how long text stays cached"},
    {"min_tokens", "[0]", "the model decides where a text ends; \"ignore_eos\" makes it go on"},
    {"best_of", "[1]", "answers are not compared; \"n\" gives several answers"},
    {"use_beam_search", "[false]", "beam search is not supported"},
    {"verbosity", R"(["medium"])", "it has no effect on the model"},
};

}  // namespace

std::span<const FixedField> FixedFields() { return kFixedFields; }

bool IsFixed(std::span<const FixedField> fields, std::string_view name, const Json& value,
             bool lenient) {
  const auto field = std::ranges::find(fields, name, &FixedField::name);
  if (field == fields.end()) return false;
  const Json values = Json::parse(field->values);
  if (lenient || value.is_null() || std::ranges::find(values, value) != values.end()) return true;
  Throw(ErrorKind::kInput, "{}: expected {} or nothing, found {}: {}; --lenient ignores it",
        Quote(name), values.front().dump(), FoundUnquoted(nlohmann::json(value)), field->why);
}

}  // namespace godwit::chat
