// The build of this program, as `godwit --version` tells it. CMake writes the source
// (cmake/build_facts.cmake).
#pragma once

#include <string>
#include <string_view>

namespace godwit::cli {

struct BuildFacts {
  std::string_view commit;      // "e299e8505c43", "e299e8505c43 with changes", "unknown"
  std::string_view compiler;    // "GNU 12.2.0"
  std::string_view build_type;  // "Release"
};

extern const BuildFacts kBuildFacts;

// The text of `godwit --version`: "godwit 1.2.3" on the first line, then the build and the
// instruction sets of the build and of this machine.
std::string VersionText();

}  // namespace godwit::cli
