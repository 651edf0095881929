// Files in front of a question, in one message. The page of the server writes them alike
// (attachments.js), so that what one has read of a file serves the other.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace godwit::chat {

// A file as it stands in a message. Several follow each other, and then the question.
std::string FileInMessage(std::string_view name, std::string_view text);

// Tokens of `prompt` from the last `question` in it on, which a template may have stripped.
// tokenize: without a frame. Nothing where the question does not stand there as it is.
std::optional<int64_t> TokensFrom(
    std::string_view question, std::string_view prompt,
    const std::function<std::vector<int32_t>(std::string_view text)>& tokenize);

}  // namespace godwit::chat
