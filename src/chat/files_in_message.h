// Files in front of a question, in one message. The server's page writes them in the same form
// (attachments.js), so that the cached text of one serves the other.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace godwit::chat {

// The text of a file within a message. Several files follow each other, then comes the question.
std::string FileInMessage(std::string_view name, std::string_view text);

// The number of tokens of `prompt` from the last occurrence of the question on, which a template
// may have stripped. tokenize: adds no BOS or other leading tokens. Nullopt: the question does not
// occur unchanged.
std::optional<int64_t> TokensFrom(
    std::string_view question, std::string_view prompt,
    const std::function<std::vector<int32_t>(std::string_view text)>& tokenize);

}  // namespace godwit::chat
