// godwit-lab, the program. godwit becomes it for its verbs; to the user it is godwit.

#include <string>
#include <vector>

#include "base/error.h"
#include "base/quote.h"
#include "cli/program.h"
#include "console/exit_code.h"
#include "console/pages.h"
#include "console/terminal/output.h"
#include "lab/commands.h"

namespace {

using godwit::console::Command;

constexpr Command kCommands[] = {
    {"logits", godwit::lab::Logits},
    {"perplexity", godwit::lab::Perplexity},
    {"eval tasks", godwit::lab::EvalTasks},
    {"eval stream", godwit::lab::EvalStream},
    {"eval passkey", godwit::lab::EvalPasskey},
    {"eval needle", godwit::lab::EvalNeedle},
    {"eval kv-retrieval", godwit::lab::EvalKvRetrieval},
    {"eval lines", godwit::lab::EvalLines},
    {"eval babilong", godwit::lab::EvalBabilong},
    {"eval ruler", godwit::lab::EvalRuler},
    {"eval passages", godwit::lab::EvalPassages},
    {"eval recall", godwit::lab::EvalRecall},
    {"eval attention", godwit::lab::EvalAttention},
    {"eval quant", godwit::lab::EvalQuant},
    {"eval text", godwit::lab::EvalText},
    {"bench", godwit::lab::Bench},
    {"probe", godwit::lab::Probe},
    {"quantize", godwit::lab::Quantize},
    {"train-heads", godwit::lab::TrainHeads},
    {"inspect", godwit::lab::InspectActivations},
};

int RunVerb(std::span<const std::string> arguments) {
  const std::string name = arguments.empty() ? "" : arguments.front();
  if (name == godwit::console::kPagesRequest) {
    godwit::console::WriteOutput(godwit::console::PagesOfThisProgramJson());
    return godwit::console::kExitOk;
  }
  const Command eval = {"eval", godwit::lab::Eval};
  const Command* command = name == eval.name ? &eval : godwit::console::FindCommand(name);
  if (command == nullptr) {
    godwit::Throw(godwit::ErrorKind::kInput,
                  "{} is no verb of godwit-lab; start godwit, which finds the verbs of both",
                  godwit::Quote(name));
  }
  godwit::cli::RefuseUselessRanks(name);
  return godwit::console::RunCommand(*command, arguments.subspan(1));
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  godwit::console::PrepareStreams();
  return godwit::cli::ReportErrors([&] {
    godwit::cli::TakeSignalsAndRanks();
    godwit::console::SetProgram(kCommands, argv[0]);
    return RunVerb(arguments);
  });
}
