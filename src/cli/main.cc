// godwit, the program.

#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/lab_program.h"
#include "cli/program.h"
#include "console/exit_code.h"
#include "console/pages.h"
#include "console/terminal/output.h"

namespace {

using godwit::console::Command;

constexpr Command kCommands[] = {
    {"run", godwit::cli::Run},
    {"plan", godwit::cli::Plan},
    {"chat", godwit::cli::Chat},
    {"batch", godwit::cli::Batch},
    {"serve", godwit::cli::Serve},
    {"pull", godwit::cli::Pull},
    {"cache", godwit::cli::Cache},
    {"tokenize", godwit::cli::Tokenize},
    {"pack", godwit::cli::Pack},
    {"inspect", godwit::cli::Inspect},
    {"doctor", godwit::cli::Doctor},
    {"man", godwit::console::Man},
    {"completions", godwit::console::Completions},
};

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  godwit::console::PrepareStreams();
  return godwit::cli::ReportErrors([&] {
    // This comes first: a signal finds either no handler of this program, or those of the other
    // program.
    if (godwit::cli::IsForLab(arguments)) godwit::cli::ExecLab(arguments);
    godwit::cli::TakeSignalsAndRanks();
    godwit::console::SetProgram(kCommands, godwit::cli::LabProgram());
    return godwit::cli::RunVerb(arguments);
  });
}
