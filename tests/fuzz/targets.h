// Targets of the fuzzer. Each function takes any bytes and returns normally, whether they are
// accepted or refused with Error(kFormat) or Error(kUnsupported). It aborts on everything else: a
// wrong result, another exception. Aborting is the interface here: a fuzzer, and the replay test,
// learn of a finding by it.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string_view>

#include "base/error.h"

namespace godwit::fuzz {

void FuzzSafetensors(std::span<const uint8_t> input);
void FuzzGguf(std::span<const uint8_t> input);
void FuzzConfig(std::span<const uint8_t> input);
void FuzzTokenizerConfig(std::span<const uint8_t> input);
void FuzzGenerationConfig(std::span<const uint8_t> input);
void FuzzTasks(std::span<const uint8_t> input);
void FuzzSnapshot(std::span<const uint8_t> input);
void FuzzPacked(std::span<const uint8_t> input);
void FuzzPackedRows(std::span<const uint8_t> input);
void FuzzCompletionRequest(std::span<const uint8_t> input);
void FuzzHttp(std::span<const uint8_t> input);
void FuzzTemplate(std::span<const uint8_t> input);
void FuzzJsonSchema(std::span<const uint8_t> input);
void FuzzToolCalls(std::span<const uint8_t> input);
void FuzzSentencePiece(std::span<const uint8_t> input);

// Targets of replay_text.cc: replayed, but not fuzzed.
void ReplayTokenizer(std::span<const uint8_t> input);
void ReplayTemplate(std::span<const uint8_t> input);

inline void Require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "fuzz: violated: %s\n", what);
  std::abort();
}

// Whether `action` returned. False: it threw an Error of kFormat or kUnsupported.
template <typename Action>
bool Accepts(Action action) {
  try {
    action();
    return true;
  } catch (const Error& error) {
    Require(error.kind() == ErrorKind::kFormat || error.kind() == ErrorKind::kUnsupported,
            "a refusal is a kFormat or a kUnsupported");
    Require(std::string_view(error.what()).size() < 16'384, "messages are short");
    return false;
  }
}

inline std::string_view AsText(std::span<const uint8_t> input) {
  return {reinterpret_cast<const char*>(input.data()), input.size()};
}

}  // namespace godwit::fuzz
