// Checks for targets of the process that runs tokenizers, templates and schemas.
#pragma once

#include <string>
#include <string_view>

#include "tests/fuzz/targets.h"

namespace godwit::fuzz {

// Checks that a message does not show the libraries' internals. `input` may have such words itself.
inline void CheckMessage(const std::string& message, std::string_view input) {
  for (const char* inside :
       {"panicked", "unwrap", ".rs:", "untagged", "expected struct", "usize"}) {
    Require(message.find(inside) == message.npos || input.find(inside) != input.npos,
            "messages are in plain words");
  }
  Require(message.size() < 16'384, "messages are short");
}

template <typename Action>
void Survives(std::string_view input, Action action) {
  try {
    action();
  } catch (const Error& error) {
    Require(error.kind() == ErrorKind::kFormat || error.kind() == ErrorKind::kInput ||
                error.kind() == ErrorKind::kMemory,
            "a refusal is a kFormat, a kInput or a kMemory");
    CheckMessage(error.what(), input);
  }
}

}  // namespace godwit::fuzz
