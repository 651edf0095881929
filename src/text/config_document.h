// A JSON file of a model folder, and what stands in it, with messages that name the file and the
// key.
//
// Internal to src/text.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace godwit {

struct ConfigDocument {
  std::string name;  // of the file
  nlohmann::json root = nlohmann::json::object();

  // Null where the key is missing or null.
  const nlohmann::json& At(const char* key) const;

  // A token is a string or a serialised AddedToken; nullopt where At is null.
  std::optional<std::string> TokenText(const char* key) const;

  std::optional<bool> Flag(const char* key) const;

  // Throws Error(kFormat).
  [[noreturn]] void Bad(std::string_view key, std::string_view expected,
                        const nlohmann::json& found) const;
};

// An absent file is an empty object. Throws Error(kFormat) for one that holds no object, and
// Error(kIo).
ConfigDocument ReadConfigDocument(const std::filesystem::path& folder, const char* name);

}  // namespace godwit
