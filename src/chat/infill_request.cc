#include "chat/infill_request.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/quote.h"
#include "chat/json_fields.h"

namespace godwit::chat {
namespace {

using Json = nlohmann::ordered_json;

std::string TextOf(const Json& body, const char* name) {
  const Json value = body.value(name, Json());
  if (value.is_null()) return "";
  if (!value.is_string()) RefuseField(name, "text", value);
  return value;
}

FillIn::File FileOf(const Json& value) {
  FillIn::File file;
  for (const auto& [name, text] : {std::pair("filename", &file.name), {"text", &file.text}}) {
    const Json found = value.is_object() ? value.value(name, Json()) : Json();
    if (!found.is_string() || value.size() != 2) {
      RefuseField("input_extra", R"(files {"filename": "...", "text": "..."})", value);
    }
    *text = found;
  }
  return file;
}

constexpr std::string_view kOwn[] = {"input_prefix", "input_suffix", "input_extra", "prompt"};
// Fields of other requests that infill answers do not support.
constexpr std::string_view kNotOfInfill[] = {
    "explain_cache", "first_token_within_s", "messages",       "suffix",  "echo", "n",
    "logprobs",      "top_logprobs",         "stream_options", "passages"};

bool IsOneOf(std::string_view name, std::span<const std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

CompletionRequest ParseInfillRequest(const Json& body, const CompletionDefaults& defaults) {
  if (!body.is_object()) Throw(ErrorKind::kInput, "expected a request that is an object");
  FillIn fill{.before = "", .behind = TextOf(body, "input_suffix")};
  fill.begun = TextOf(body, "prompt");
  const Json files = body.value("input_extra", Json::array());
  if (!files.is_array() && !files.is_null()) {
    RefuseField("input_extra", "a list of files", files);
  }
  for (const Json& file : files) fill.files.push_back(FileOf(file));
  Json text{{"prompt", TextOf(body, "input_prefix")}};
  for (const auto& [name, value] : body.items()) {
    if (IsOneOf(name, kOwn)) {
      continue;
    } else if (name == "n_predict") {
      // -1 means as many as fit.
      if (value != -1) text["max_tokens"] = value;
    } else if (!IsOneOf(name, kNotOfInfill)) {
      text[name] = value;
    } else if (!defaults.lenient && !value.is_null()) {
      Throw(ErrorKind::kInput, "unknown field {}; --lenient ignores it", Quote(name));
    }
  }
  return ParseCompletionRequest(text, defaults, std::move(fill));
}

}  // namespace godwit::chat
