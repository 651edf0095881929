// The options for packed copies in LoadOptions.
#pragma once

#include "base/error.h"
#include "checkpoint/packed_copy.h"
#include "godwit/engine.h"

namespace godwit {

// Throws Error(kInput) if a copy is to be made and none to be used.
inline PackedOptions PackedOptionsOf(const LoadOptions& options) {
  const bool none = options.packed == "none";
  if (none && options.pack) {
    Throw(ErrorKind::kInput, "making a packed copy and using none exclude each other");
  }
  return {.use = !none,
          .make = options.pack,
          .file = none ? "" : options.packed,
          .folder = options.packed_dir};
}

}  // namespace godwit
