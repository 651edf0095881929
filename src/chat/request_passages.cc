#include "chat/request_passages.h"

#include "base/error.h"
#include "chat/json_fields.h"

namespace godwit::chat {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kUsualAnew = 32;  // as in EPIC (arXiv 2410.15332)
constexpr int64_t kMostAnew = int64_t{1} << 40;

bool IsUsersWithParts(const Json& message) {
  return message.is_object() && message.value("role", Json()) == "user" &&
         message.value("content", Json()).is_array() && message["content"].size() > 1;
}

}  // namespace

std::optional<RequestPassages> ParsePassages(const Json& value) {
  constexpr const char* kExpected = R"(true, false or {"read_anew": N} with a whole number)";
  if (value == false) return std::nullopt;
  if (value == true) return RequestPassages{.texts = {}, .read_anew = kUsualAnew};
  const bool has_number = value.is_object() && value.size() == 1 && value.contains("read_anew") &&
                          value["read_anew"].is_number_unsigned() &&
                          value["read_anew"].get<uint64_t>() <= kMostAnew;
  if (!has_number) Refuse(kExpected, value);
  return RequestPassages{.texts = {}, .read_anew = value["read_anew"].get<int64_t>()};
}

std::vector<std::string> PassagesIn(const Json& messages) {
  for (const Json& message : messages) {
    if (!IsUsersWithParts(message)) continue;
    const Json& parts = message["content"];
    std::vector<std::string> passages;
    for (const Json& part : parts) {
      if (&part == &parts.back()) break;
      passages.push_back(part.at("text").get_ref<const std::string&>() + '\n');
    }
    return passages;
  }
  Throw(ErrorKind::kInput,
        "\"passages\": expected a user's message whose content is a list of text parts, the "
        "passages and then the question");
}

}  // namespace godwit::chat
