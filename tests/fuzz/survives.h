// For targets of the process that runs tokenizers, templates and schemas.
#pragma once

#include <string>

#include "tests/fuzz/targets.h"

namespace godwit::fuzz {

// Whatever the libraries say, their insides stay inside.
inline void CheckMessage(const std::string& message) {
  for (const char* inside :
       {"panicked", "unwrap", ".rs:", "untagged", "expected struct", "usize"}) {
    Require(message.find(inside) == std::string::npos, "messages are in plain words");
  }
  Require(message.size() < 16'384, "messages are short");
}

template <typename Action>
void Survives(Action action) {
  try {
    action();
  } catch (const Error& error) {
    Require(error.kind() == ErrorKind::kFormat || error.kind() == ErrorKind::kInput ||
                error.kind() == ErrorKind::kMemory,
            "a refusal is a kFormat, a kInput or a kMemory");
    CheckMessage(error.what());
  }
}

}  // namespace godwit::fuzz
