#include "console/options/text_input.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

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
  // Growing the text would hold it twice, so its size is taken first. A pipe has none, and some
  // files say 0.
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
    if (got < 0 && errno == EAGAIN) {
      // Another program that shares the stream may have made it non-blocking.
      pollfd stream{.fd = file, .events = POLLIN, .revents = 0};
      (void)poll(&stream, 1, /*timeout=*/-1);
      continue;
    }
    if (got < 0) RefuseFile(name, errno);
    if (got == 0) break;
    used += static_cast<size_t>(got);
    if (used > kMaxBytes) {
      Throw(ErrorKind::kInput, "{} is larger than 1 GiB, the most that can be read at once", name);
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
      "{} is not UTF-8: found byte 0x{:02x} at offset {}; --lossy replaces invalid bytes by U+FFFD",
      name, static_cast<uint8_t>(text[*invalid]), *invalid);
}

void AddFlags(CommandLine& line, TextInput& input, const std::string& prompt_help,
              const std::string& file_help) {
  line.Add({.names = "-p,--prompt", .value = "TEXT", .help = prompt_help}, input.prompt);
  line.Add({.names = "-f,--file",
            .value = "FILE",
            .help = file_help + " (-: standard input); several files, a folder or a pattern are "
                                "read one after the other",
            .fallback = "standard input, unless it is a terminal",
            .takes_list = true},
           input.files);
  line.Add({.names = "-e,--escape",
            .value = "",
            .help = "read \\n, \\t, \\x41 and the like in -p as escapes"},
           input.escape);
  AddLossyFlag(line, input.lossy);
  line.Needs("--escape", {"--prompt"});
}

std::string PromptOf(const TextInput& input) {
  if (!input.prompt) return "";
  return Utf8(input.escape ? ProcessEscapes(*input.prompt) : *input.prompt, "-p", input.lossy);
}

// Whether standard input has text beside -p or -f. A program started without any has a closed one.
bool HasPipe() {
  const int flags = fcntl(STDIN_FILENO, F_GETFL);
  return flags != -1 && (flags & O_ACCMODE) != O_WRONLY && !InputIsTerminal();
}

// Whether another program, such as a shell's loop, has begun to read the file. Its rest then
// belongs to that program.
bool IsBegunByOthers() {
  struct stat status;
  if (fstat(STDIN_FILENO, &status) != 0 || !S_ISREG(status.st_mode)) return false;
  const off_t at = lseek(STDIN_FILENO, 0, SEEK_CUR);
  if (at <= 0) return false;
  if (at < status.st_size) {
    WriteNotice(
        "godwit: standard input is a file that another program has begun to read, such as a loop "
        "of the shell: ignoring its rest; -f - reads it\n");
  }
  return true;
}

// Tells the user that the program waits for a pipe: with a text given, a wait is unexpected.
void SayIfPipeIsSlow() {
  constexpr int kSlowMs = 2000;
  pollfd stream{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  if (poll(&stream, 1, kSlowMs) != 0) return;
  WriteNotice(
      "godwit: waiting for the end of standard input, which is part of the text; </dev/null leaves "
      "it out\n");
}

GivenTexts ReadTexts(const TextInput& input, bool takes_pipe) {
  GivenTexts texts{.files = ReadInputFiles(input.files, input.lossy), .prompt = PromptOf(input)};
  const bool has_others = !input.files.empty() || input.prompt;
  if (!has_others && InputIsTerminal()) {
    Throw(ErrorKind::kInput, "a text is needed: give it with -p TEXT or -f FILE, or pipe it in");
  }
  const bool is_named = std::ranges::find(input.files, "-") != input.files.end();
  if (has_others && (!takes_pipe || is_named || !HasPipe())) return texts;
  if (has_others && IsBegunByOthers()) return texts;
  if (has_others) SayIfPipeIsSlow();
  std::string text = ReadInputFile("-", input.lossy);
  if (!text.empty()) {
    texts.files.push_back({kStandardInput, std::move(text)});
  } else if (!has_others) {
    Throw(ErrorKind::kInput,
          "a text is needed: give it with -p TEXT or -f FILE (standard input is empty)");
  }
  return texts;
}

[[noreturn]] void RefuseEmptyPrompt() {
  Throw(ErrorKind::kInput, "the prompt is empty: there is nothing to continue");
}

}  // namespace

void AddTextFlags(CommandLine& line, TextInput& input, const std::string& what) {
  AddFlags(line, input, what, "read the text from a file, every byte of it");
  line.Exclusive({"--prompt", "--file"});
}

void AddTextAndQuestionFlags(CommandLine& line, TextInput& input, const std::string& what) {
  AddFlags(
      line, input, what + "; after -f or piped text, the question about it",
      "read the text from a file, every byte of it; with -p, the text that the question is about");
}

void AddLossyFlag(CommandLine& line, bool& lossy) {
  line.Add({.names = "--lossy",
            .value = "",
            .help = "accept text that is not UTF-8, with U+FFFD in place of invalid bytes"},
           lossy);
}

// The contents of any file, not only a regular one: `-f <(command)` is a pipe.
std::string ReadFileBytes(const std::string& path) {
  if (path == "-") return ReadToEnd(STDIN_FILENO, kStandardInput);
  const std::string name = QuoteUnlessPlain(path);
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) RefuseFile(name, errno);
  struct Closer {
    int file;
    ~Closer() { close(file); }
  } closer{file};
  return ReadToEnd(file, name);
}

std::string ReadInputFile(const std::string& path, bool lossy) {
  return Utf8(ReadFileBytes(path), path == "-" ? kStandardInput : QuoteUnlessPlain(path), lossy);
}

std::string RequireText(const TextInput& input) {
  GivenTexts texts = ReadTexts(input, /*takes_pipe=*/false);
  if (texts.files.empty()) return std::move(texts.prompt);
  std::string text = std::move(texts.files.front().text);
  for (const NamedText& file : std::span(texts.files).subspan(1)) text += file.text;
  return text + texts.prompt;
}

std::string RequirePrompt(const TextInput& input) {
  std::string text = RequireText(input);
  if (text.empty()) RefuseEmptyPrompt();
  return text;
}

GivenTexts RequireTexts(const TextInput& input, bool takes_pipe) {
  GivenTexts texts = ReadTexts(input, takes_pipe);
  const bool has_text =
      std::ranges::any_of(texts.files, [](const NamedText& file) { return !file.text.empty(); });
  if (!has_text && texts.prompt.empty()) RefuseEmptyPrompt();
  return texts;
}

}  // namespace godwit::console
