#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <string_view>
#include <vector>

#include "cli/build_facts.h"
#include "console/terminal/table.h"
#include "godwit/version.h"
#include "kernels/dispatch.h"

namespace godwit::cli {

std::string VersionText() {
  std::vector<std::string_view> of_build, of_machine;
  for (const kernels::Isa& isa : kernels::AllIsas()) {
    of_build.push_back(isa.name);
    if (isa.supported()) of_machine.push_back(isa.name);
  }
  return "godwit " GODWIT_VERSION "\n" +
         console::Facts()
             .Add("commit", kBuildFacts.commit)
             .Add("compiler", kBuildFacts.compiler)
             .Add("build type", kBuildFacts.build_type)
             .Add("instruction sets", fmt::format("{}", fmt::join(of_build, ", ")))
             .Add("this machine", fmt::format("{}; best is {}", fmt::join(of_machine, ", "),
                                              kernels::BestIsa().name))
             .Take();
}

}  // namespace godwit::cli
