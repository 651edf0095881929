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
    {"service_tier", R"(["auto", "default"])", "all requests are of one"},
    {"modalities", R"([["text"]])", "the model writes text and nothing else"},
    {"cache_prompt", "[true]", "a text that was read already is not read again"},
    {"prompt_cache_retention", R"(["in_memory", "in-memory"])",
     "how long what was read is kept is not for requests to say"},
    {"min_tokens", "[0]", "a text ends where the model ends it, or never with \"ignore_eos\""},
    {"best_of", "[1]", "answers are not compared; \"n\" gives several"},
    {"use_beam_search", "[false]", "there is no search by beams"},
    {"verbosity", R"(["medium"])", "the model is told nothing of it"},
};

}  // namespace

std::span<const FixedField> FixedFields() { return kFixedFields; }

bool IsFixed(std::span<const FixedField> fields, std::string_view name, const Json& value,
             bool lenient) {
  const auto field = std::ranges::find(fields, name, &FixedField::name);
  if (field == fields.end()) return false;
  const Json values = Json::parse(field->values);
  if (lenient || value.is_null() || std::ranges::find(values, value) != values.end()) return true;
  Throw(ErrorKind::kInput, "{}: expected {} or nothing, found {}: {}; --lenient passes over it",
        Quote(name), values.front().dump(), FoundUnquoted(nlohmann::json(value)), field->why);
}

}  // namespace godwit::chat
