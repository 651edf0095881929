#include "text/config_document.h"

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/quote.h"

namespace godwit {

using nlohmann::json;

namespace {

constexpr size_t kMaxConfigBytes = size_t{64} << 20;

}  // namespace

const json& ConfigDocument::At(const char* key) const {
  static const json null;
  const auto found = root.find(key);
  return found == root.end() ? null : *found;
}

std::optional<std::string> ConfigDocument::TokenText(const char* key) const {
  const json& value = At(key);
  if (value.is_null()) return std::nullopt;
  if (value.is_string()) return value.get<std::string>();
  if (value.is_object() && value.contains("content") && value["content"].is_string()) {
    return value["content"].get<std::string>();
  }
  Bad(key, "a string or an object with a string \"content\"", value);
}

std::optional<bool> ConfigDocument::Flag(const char* key) const {
  const json& value = At(key);
  if (value.is_null()) return std::nullopt;
  if (!value.is_boolean()) Bad(key, "true or false", value);
  return value.get<bool>();
}

void ConfigDocument::Bad(std::string_view key, std::string_view expected, const json& found) const {
  Throw(ErrorKind::kFormat, "{}: {} must be {}, found {}", name, Quote(key), expected,
        Quote(DumpJson(found)));
}

ConfigDocument ReadConfigDocument(const std::filesystem::path& folder, const char* name) {
  ConfigDocument document{(folder / name).string()};
  if (!IsListed(folder / name)) return document;
  document.root = ParseJson(ReadTextFile(folder / name, kMaxConfigBytes), document.name,
                            {.pythons_infinity = true});
  if (!document.root.is_object()) {
    Throw(ErrorKind::kFormat, "{}: expected a JSON object", document.name);
  }
  return document;
}

}  // namespace godwit
