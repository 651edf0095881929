#include "cli/options/text_input.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/error.h"
#include "cli/options/escape.h"
#include "cli/terminal/output.h"

namespace godwit::cli {
namespace {

constexpr size_t kMaxBytes = size_t{1} << 30;

[[noreturn]] void RefuseFile(const std::string& name, int error) {
  Throw(ErrorKind::kIo, "cannot read {}: {}", name, std::generic_category().message(error));
}

std::string ReadToEnd(int file, const std::string& name) {
  std::string text;
  size_t used = 0;
  while (true) {
    if (text.size() - used < 1 << 16) text.resize(2 * text.size() + (1 << 16));
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
  line.Exclusive({"--prompt", "--file"});
}

// Not only regular files: `-f <(command)` is a pipe.
std::string ReadInputFile(const std::string& path) {
  if (path == "-") return ReadToEnd(STDIN_FILENO, "standard input");
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) RefuseFile(path, errno);
  struct Closer {
    int file;
    ~Closer() { close(file); }
  } closer{file};
  return ReadToEnd(file, path);
}

std::optional<std::string> ReadText(const TextInput& input) {
  if (input.file) return ReadInputFile(*input.file);
  if (input.prompt && input.escape) return ProcessEscapes(*input.prompt);
  return input.prompt;
}

std::string RequireText(const TextInput& input) {
  auto text = ReadText(input);
  if (text) return *std::move(text);
  if (InputIsTerminal()) {
    Throw(ErrorKind::kInput, "a text is needed: give it with -p TEXT or -f FILE, or pipe it in");
  }
  text = ReadInputFile("-");
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

}  // namespace godwit::cli
