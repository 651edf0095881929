#include "console/options/text_input.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/error.h"
#include "base/quote.h"
#include "base/utf8.h"
#include "console/options/escape.h"
#include "console/terminal/output.h"

namespace godwit::console {
namespace {

constexpr size_t kMaxBytes = size_t{1} << 30;

[[noreturn]] void RefuseFile(const std::string& name, int error) {
  Throw(ErrorKind::kIo, "cannot read {}: {}", name, std::generic_category().message(error));
}

std::string ReadToEnd(int file, const std::string& name) {
  std::string text;
  // Growing holds a text twice. A pipe has no size, and some files say 0.
  struct stat status;
  if (fstat(file, &status) == 0 && S_ISREG(status.st_mode)) {
    text.reserve(std::min(static_cast<size_t>(status.st_size), kMaxBytes) + (2 << 16));
  }
  size_t used = 0;
  while (true) {
    if (text.size() - used < 1 << 16) {
      size_t grown = 2 * text.size() + (1 << 16);
      if (text.capacity() >= used + (1 << 16)) grown = std::min(grown, text.capacity());
      text.resize(grown);
    }
    const ssize_t got = read(file, text.data() + used, text.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) RefuseFile(name, errno);
    if (got == 0) break;
    used += static_cast<size_t>(got);
    if (used > kMaxBytes) {
      Throw(ErrorKind::kInput, "{} has more than 1 GiB, the most that is read at once", name);
    }
  }
  text.resize(used);
  return text;
}

std::string Utf8(std::string text, const std::string& name, bool lossy) {
  const std::optional<size_t> invalid = FirstInvalidUtf8(text);
  if (!invalid) return text;
  if (lossy) return ReplaceInvalidUtf8(text);
  Throw(
      ErrorKind::kInput,
      "{} is not UTF-8: found byte 0x{:02x} at offset {}; --lossy takes U+FFFD in place of what is "
      "not",
      name, static_cast<uint8_t>(text[*invalid]), *invalid);
}

}  // namespace

void AddTextFlags(CommandLine& line, TextInput& input, const std::string& what) {
  line.Add({.names = "-p,--prompt", .value = "TEXT", .help = what}, input.prompt);
  line.Add({.names = "-f,--file",
            .value = "FILE",
            .help = "the same from a file, every byte of it (-: standard input)",
            .fallback = "standard input, unless it is a terminal"},
           input.file);
  line.Add({.names = "-e,--escape", .value = "", .help = "\\n, \\t, \\x41 ... in -p are escapes"},
           input.escape);
  AddLossyFlag(line, input.lossy);
  line.Exclusive({"--prompt", "--file"});
}

void AddLossyFlag(CommandLine& line, bool& lossy) {
  line.Add({.names = "--lossy",
            .value = "",
            .help = "take a text that is not UTF-8, with U+FFFD in place of what is not"},
           lossy);
}

// Not only regular files: `-f <(command)` is a pipe.
std::string ReadInputFile(const std::string& path, bool lossy) {
  if (path == "-") return Utf8(ReadToEnd(STDIN_FILENO, "standard input"), "standard input", lossy);
  const std::string name = QuoteUnlessPlain(path);
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) RefuseFile(name, errno);
  struct Closer {
    int file;
    ~Closer() { close(file); }
  } closer{file};
  return Utf8(ReadToEnd(file, name), name, lossy);
}

std::optional<std::string> ReadText(const TextInput& input) {
  if (input.file) return ReadInputFile(*input.file, input.lossy);
  if (!input.prompt) return std::nullopt;
  return Utf8(input.escape ? ProcessEscapes(*input.prompt) : *input.prompt, "-p", input.lossy);
}

std::string RequireText(const TextInput& input) {
  auto text = ReadText(input);
  if (text) return *std::move(text);
  if (InputIsTerminal()) {
    Throw(ErrorKind::kInput, "a text is needed: give it with -p TEXT or -f FILE, or pipe it in");
  }
  text = ReadInputFile("-", input.lossy);
  if (text->empty()) {
    Throw(ErrorKind::kInput,
          "a text is needed: give it with -p TEXT or -f FILE (standard input is empty)");
  }
  return *std::move(text);
}

std::string RequirePrompt(const TextInput& input) {
  std::string text = RequireText(input);
  if (text.empty()) Throw(ErrorKind::kInput, "the prompt is empty: there is nothing to continue");
  return text;
}

}  // namespace godwit::console
