// SharedLibrary: a library that is loaded while the program runs, so that programs start without
// it.
#pragma once

#include <dlfcn.h>

#include <string>
#include <string_view>

#include "base/error.h"

namespace godwit {

// The library is never closed: its threads and tables last as long as the process.
class SharedLibrary {
 public:
  // need: what lacks without the library, and what brings it. Throws Error(kind), with `need` and
  // the reason, if the library does not load.
  SharedLibrary(const char* file, ErrorKind kind, std::string_view need)
      : file_(file), library_(dlopen(file, RTLD_NOW | RTLD_LOCAL)) {
    if (library_ != nullptr) return;
    const char* const why = dlerror();
    Throw(kind, "{}: {}", need, why == nullptr ? "it does not load" : why);
  }

  // expected: the versions that have the function, for people. Throws Error(kUnsupported) if there
  // is no such function.
  template <typename Function>
  void Find(Function*& function, const char* name, std::string_view expected) const {
    function = reinterpret_cast<Function*>(dlsym(library_, name));
    if (function != nullptr) return;
    Throw(ErrorKind::kUnsupported, "{} has no {}: expected {}", file_, name, expected);
  }

 private:
  std::string file_;
  void* library_;
};

}  // namespace godwit
