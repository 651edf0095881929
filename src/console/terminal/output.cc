#include "console/terminal/output.h"

#include <fcntl.h>
#include <langinfo.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <clocale>
#include <csignal>
#include <system_error>

#include "base/error.h"
#include "base/quote.h"

namespace godwit::console {
namespace {

std::atomic<bool> silent{false};

int Columns(int terminal) {
  winsize size{};
  const bool known = ioctl(terminal, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

}  // namespace

void PrepareStreams() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) != -1) continue;
    // open takes the lowest free number, which is this stream's. The wrong direction keeps reads or
    // writes failing.
    (void)open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

void LeaveTalkToRankZero() {
  const int nowhere = open("/dev/null", O_WRONLY);
  dup2(nowhere, STDOUT_FILENO);
  close(nowhere);
  SilenceNotices();
}

void WriteAll(int file, std::span<const std::byte> bytes, const std::string& name) {
  while (!bytes.empty()) {
    const ssize_t written = write(file, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes = bytes.subspan(written);
    } else if (errno == EPIPE) {
      throw ClosedPipe();
    } else if (errno == EAGAIN) {
      // Another program that shares the stream may have made it non-blocking.
      pollfd stream{.fd = file, .events = POLLOUT, .revents = 0};
      (void)poll(&stream, 1, /*timeout=*/-1);
    } else if (errno != EINTR) {
      Throw(ErrorKind::kIo, "cannot write to {}: {}", name, std::generic_category().message(errno));
    }
  }
}

void WriteOutput(std::string_view text) {
  std::string printable;
  if (OutputIsTerminal()) text = printable = Printable(text);
  WriteAll(STDOUT_FILENO, std::as_bytes(std::span(text)), "standard output");
}

void WriteStatus(std::string_view text) { WriteControl(Printable(text)); }

void WriteControl(std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
    if (written < 0 && errno != EINTR) return;
    if (written > 0) text.remove_prefix(static_cast<size_t>(written));
  }
}

void SilenceNotices() noexcept { silent = true; }

bool NoticesAreSilent() noexcept { return silent; }

void WriteNotice(std::string_view text) {
  if (!silent) WriteStatus(text);
}

bool InputIsTerminal() { return isatty(STDIN_FILENO) == 1; }
bool OutputIsTerminal() { return isatty(STDOUT_FILENO) == 1; }
bool StatusIsTerminal() { return isatty(STDERR_FILENO) == 1; }

bool NoticesGoToTerminal() { return !silent && StatusIsTerminal(); }

size_t TableColumns() {
  return OutputIsTerminal() ? static_cast<size_t>(OutputColumns()) : SIZE_MAX;
}

int OutputColumns() { return Columns(STDOUT_FILENO); }
int StatusColumns() { return Columns(STDERR_FILENO); }

void UseUtf8Locale() {
  std::setlocale(LC_CTYPE, "");
  if (std::string_view(nl_langinfo(CODESET)) != "UTF-8") std::setlocale(LC_CTYPE, "C.UTF-8");
}

}  // namespace godwit::console
