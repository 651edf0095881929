// JsonlRow: one line of a .jsonl file. Its fields are checked before they are used.
//
// All functions throw Error(kFormat) that names file and line, what was expected and what was
// found.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace godwit::eval {

class JsonlRow {
 public:
  // where: "folder/piqa.jsonl:12". The line is a JSON object; keys that no function asks for are
  // ignored.
  JsonlRow(std::string_view line, std::string where);

  const std::string& where() const { return where_; }

  // A text that is more than blanks.
  std::string Text(const char* key) const;

  // A text that may be empty.
  std::string AnyText(const char* key) const;

  // A list of 2 to 100 texts, each more than blanks.
  std::vector<std::string> Texts(const char* key) const;

  // An integer from 0 to count - 1.
  size_t Index(const char* key, size_t count) const;

  // Throws that a field does not hold what was `expected`, in words. For checks beyond a field's
  // type.
  [[noreturn]] void Refuse(const char* key, std::string_view expected,
                           std::string_view found) const;

 private:
  const nlohmann::json& Field(const char* key) const;
  std::string AsText(const nlohmann::json& value, const char* key) const;

  nlohmann::json json_;
  std::string where_;
};

}  // namespace godwit::eval
