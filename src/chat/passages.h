// Passages of a prompt that are read once for all prompts (Session::ReadPassages).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace godwit::chat {

// A prompt cut at its passages, each part tokenized alone, so that a passage has the same tokens in
// every prompt.
struct PassagePrompt {
  std::vector<int32_t> head;
  std::vector<std::vector<int32_t>> passages;
  std::vector<int32_t> rest;  // behind the last passage
};

// All tokens, one part behind the other.
struct JoinedPassages {
  std::vector<int32_t> tokens;
  std::vector<int64_t> ends;  // of the head and of each passage, in tokens
};
JoinedPassages Join(const PassagePrompt& prompt);

// passages: parts of `prompt`, in order. tokenize: adds no BOS or other leading tokens. Throws
// Error(kUnsupported) if a passage does not stand in the prompt unchanged, as where a template
// rewrites messages, or nothing stands before the first one.
PassagePrompt CutAtPassages(
    std::string_view prompt, std::span<const std::string> passages,
    const std::function<std::vector<int32_t>(std::string_view text)>& tokenize);

}  // namespace godwit::chat
