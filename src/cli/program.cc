#include "cli/program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <exception>
#include <filesystem>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/quote.h"
#include "cli/hints.h"
#include "console/exit_code.h"
#include "console/terminal/interrupt.h"
#include "console/terminal/output.h"
#include "console/verbs.h"
#include "dist/mpi.h"

namespace godwit::cli {
namespace {

int Fail(int code, std::string_view message) {
  const int rank = MpiRank();
  const std::string who = rank == 0 ? "" : "rank " + std::to_string(rank) + ": ";
  console::WriteStatus("godwit: " + who + std::string(message) + "\n");
  return code;
}

// Ends a rank other than 0. Rank 0 reports errors that all ranks find, and why another rank left,
// if it hears so. mpirun then ends all ranks. A rank that still runs after a while was not heard:
// it had not joined the others yet, or rank 0 was busy.
int FailBesideRankZero(const Error& error) {
  const int code = console::ExitCode(error.kind());
  const bool is_known =
      error.data().code == ErrorCode::kOtherRank || error.kind() == ErrorKind::kCancelled;
  if (is_known) return code;
  std::this_thread::sleep_for(std::chrono::seconds(5));
  return Fail(code, WithHint(error));
}

}  // namespace

int ReportErrors(FunctionRef<int()> run) {
  using console::ExitCode;
  try {
    return run();
  } catch (const console::ClosedPipe&) {
    return ExitCode(ErrorKind::kIo);
  } catch (const Error& error) {
    if (MpiRank() != 0) return FailBesideRankZero(error);
    return Fail(ExitCode(error.kind()), WithHint(error));
  } catch (const std::filesystem::filesystem_error& error) {
    // A path that cannot even be examined: too long, not permitted, or a circle of links.
    return Fail(ExitCode(ErrorKind::kIo),
                Quote(error.path1().native()) + ": " + error.code().message());
  } catch (const std::bad_alloc&) {
    return Fail(ExitCode(ErrorKind::kMemory), "out of memory");
  } catch (const std::exception& error) {
    return Fail(console::kExitInternalError, std::string("internal error: ") + error.what());
  }
}

void TakeSignalsAndRanks() {
  console::HandleSignals();
  if (MpiRank() != 0) console::LeaveTalkToRankZero();
}

void RefuseUselessRanks(std::string_view verb) {
  if (MpiSize() == 1 || console::FindVerb(verb)->over_ranks) return;
  std::vector<std::string_view> others;
  for (const console::Verb& one : console::AllVerbs()) {
    if (one.over_ranks) others.push_back(one.name);
  }
  Throw(ErrorKind::kUnsupported,
        "{} ranks were started, and godwit {} uses one: run it without mpirun; several ranks are "
        "for {}",
        MpiSize(), verb, fmt::join(others, ", "));
}

}  // namespace godwit::cli
