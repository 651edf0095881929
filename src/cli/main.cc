// godwit, the program: the one place where errors meet the user of the command line.

#include <exception>
#include <filesystem>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "base/quote.h"
#include "cli/exit_code.h"
#include "cli/hints.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/output.h"
#include "cli/verbs.h"

namespace {

int Fail(int code, std::string_view message) {
  godwit::cli::WriteStatus("godwit: " + std::string(message) + "\n");
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace godwit::cli;
  PrepareStreams();
  HandleSignals();
  try {
    return RunVerb(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const ClosedPipe&) {
    return ExitCode(godwit::ErrorKind::kIo);
  } catch (const godwit::Error& error) {
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
