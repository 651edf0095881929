// godwit, the program: the one place where errors meet the user of the command line.

#include <chrono>
#include <exception>
#include <filesystem>
#include <new>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/quote.h"
#include "cli/exit_code.h"
#include "cli/hints.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/output.h"
#include "cli/verbs.h"
#include "dist/mpi.h"

namespace {

int Fail(int code, std::string_view message) {
  const int rank = godwit::MpiRank();
  const std::string who = rank == 0 ? "" : "rank " + std::to_string(rank) + ": ";
  godwit::cli::WriteStatus("godwit: " + who + std::string(message) + "\n");
  return code;
}

// Rank 0 says what all ranks find alike, and why another one has left, if it hears it; and mpirun
// ends all when it ends. Who is still there some time after its error was not heard: a rank that
// has not joined the others yet, or while rank 0 was busy.
int FailBesideRankZero(const godwit::Error& error) {
  const int code = godwit::cli::ExitCode(error.kind());
  const bool is_known = error.data().code == godwit::ErrorCode::kOtherRank ||
                        error.kind() == godwit::ErrorKind::kCancelled;
  if (is_known) return code;
  std::this_thread::sleep_for(std::chrono::seconds(5));
  return Fail(code, godwit::cli::WithHint(error));
}

}  // namespace

int main(int argc, char** argv) {
  using namespace godwit::cli;
  PrepareStreams();
  HandleSignals();
  if (godwit::MpiRank() != 0) LeaveTalkToRankZero();
  try {
    return RunVerb(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const ClosedPipe&) {
    return ExitCode(godwit::ErrorKind::kIo);
  } catch (const godwit::Error& error) {
    if (godwit::MpiRank() != 0) return FailBesideRankZero(error);
    return Fail(ExitCode(error.kind()), WithHint(error));
  } catch (const std::filesystem::filesystem_error& error) {
    // A path that cannot even be looked at: too long, not permitted, a circle of links.
    return Fail(ExitCode(godwit::ErrorKind::kIo),
                godwit::Quote(error.path1().native()) + ": " + error.code().message());
  } catch (const std::bad_alloc&) {
    return Fail(ExitCode(godwit::ErrorKind::kMemory), "out of memory");
  } catch (const std::exception& error) {
    return Fail(kExitInternalError, std::string("internal error: ") + error.what());
  }
}
