#include "console/terminal/line_editor.h"

#include <histedit.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cwchar>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/quote.h"
#include "console/terminal/interrupt.h"
#include "console/terminal/output.h"
#include "console/terminal/output_file.h"

namespace godwit::console {
namespace {

// Escape sequences that ask a terminal to bracket pasted text.
constexpr std::string_view kAskForBrackets = "\033[?2004h";
constexpr std::string_view kNoMoreBrackets = "\033[?2004l";
constexpr std::string_view kPasteBegins = "[200~";  // behind an escape character
constexpr std::string_view kPasteEnds = "[201~";

constexpr int kHistoryLines = 1000;

// Whether the file is regular or missing: not a device or a pipe.
bool IsHistoryFile(const std::filesystem::path& path) {
  std::error_code ignored;
  return !std::filesystem::exists(path, ignored) || std::filesystem::is_regular_file(path, ignored);
}

}  // namespace

class LineEditor::Impl {
 public:
  explicit Impl(std::string history_file);
  ~Impl();

  Line Read(const std::string& prompt);

 private:
  static Impl& Of(EditLine* editor);
  static char* Prompt(EditLine* editor) { return Of(editor).prompt_.data(); }
  static int ReadChar(EditLine* editor, wchar_t* out) { return Of(editor).ReadChar(out); }

  // 1: a character, 0: end of the input, -1: Ctrl-C.
  int ReadChar(wchar_t* out);
  int ReadByte(char* out);
  // Takes an escape sequence that brackets a paste. Any other sequence is left to be read again.
  void TakePasteBrackets();
  void Remember(const std::string& line);
  void SaveHistory();
  // False if the line is to be given up.
  bool HandleSignal(int signal);
  void LeaveEditing();
  // rows: the cursor's distance below the beginning of the line.
  void Redraw(int rows);
  int RowsAboveCursor() const;

  EditLine* editor_;
  History* history_;
  std::string history_file_;
  std::string prompt_;
  std::string unread_;  // bytes to read before the terminal's
  bool asked_ = false;  // for brackets
  bool pasting_ = false;
  bool interrupted_ = false;
  std::string abandoned_;  // the line at Ctrl-C
  SignalNotes signals_;
};

LineEditor::Impl::Impl(std::string history_file) : history_file_(std::move(history_file)) {
  // libedit reads and shows characters of the locale, while models speak UTF-8 in any case.
  UseUtf8Locale();

  history_ = history_init();
  editor_ = el_init("godwit", stdin, stderr, stderr);
  if (history_ == nullptr || editor_ == nullptr) {
    Throw(ErrorKind::kIo, "cannot set up the terminal for line editing");
  }
  HistEvent event;
  history(history_, &event, H_SETSIZE, kHistoryLines);
  history(history_, &event, H_SETUNIQUE, 1);
  if (!IsHistoryFile(history_file_)) history_file_.clear();
  if (!history_file_.empty()) history(history_, &event, H_LOAD, history_file_.c_str());

  el_set(editor_, EL_CLIENTDATA, this);
  el_set(editor_, EL_PROMPT, &Impl::Prompt);
  el_set(editor_, EL_GETCFN, static_cast<int (*)(EditLine*, wchar_t*)>(&Impl::ReadChar));
  el_set(editor_, EL_HIST, history, history_);
  el_set(editor_, EL_EDITOR, "emacs");
  el_set(editor_, EL_BIND, "^R", "em-inc-search-prev", nullptr);
  el_set(editor_, EL_BIND, "^I", "ed-insert", nullptr);  // otherwise pasted code loses its tabs
  el_source(editor_, nullptr);
}

LineEditor::Impl::~Impl() {
  history_end(history_);
  el_end(editor_);
}

// Saves the history after every line, since the program may end in any way. libedit would empty the
// file before it fills it, and lose it on a full disk.
void LineEditor::Impl::SaveHistory() {
  if (history_file_.empty()) return;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
  HistEvent event;
  if (file == nullptr || history(history_, &event, H_SAVE_FP, file.get()) < 0) return;
  std::string lines(std::max(0L, std::ftell(file.get())), '\0');
  std::rewind(file.get());
  if (std::fread(lines.data(), 1, lines.size(), file.get()) != lines.size()) return;
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(history_file_).parent_path(), ignored);
  try {
    WriteFile(history_file_, lines, /*mode=*/0600);
  } catch (const Error& error) {
    WriteStatus(std::string("godwit: warning: typed lines are not kept for the next run: ") +
                error.what() + "\n");
    history_file_.clear();
  }
}

LineEditor::Impl& LineEditor::Impl::Of(EditLine* editor) {
  void* self = nullptr;
  el_get(editor, EL_CLIENTDATA, &self);
  return *static_cast<Impl*>(self);
}

Line LineEditor::Impl::Read(const std::string& prompt) {
  // A Ctrl-C before the prompt appeared meant something else.
  while (signals_.Take() != 0) continue;
  signals_.NoteAll(true);
  prompt_ = prompt;
  interrupted_ = false;
  abandoned_.clear();
  asked_ = false;
  int length = 0;
  const char* text = el_gets(editor_, &length);
  WriteControl(kNoMoreBrackets);
  signals_.NoteAll(false);
  while (const int signal = signals_.Take()) {  // came too late for the editor
    if (signal != SIGINT && signal != SIGWINCH) raise(signal);
  }

  if (interrupted_) {
    pasting_ = false;
    WriteStatus("\n");
    return {.kind = Line::Kind::kInterrupted, .text = abandoned_};
  }
  if (text == nullptr || length <= 0) {
    WriteStatus("\n");
    return {.kind = Line::Kind::kEnd, .text = ""};
  }
  Line line{.text = std::string(text, length)};
  if (line.text.ends_with('\n')) line.text.pop_back();
  line.pasted = pasting_;
  Remember(line.text);
  return line;
}

void LineEditor::Impl::Remember(const std::string& line) {
  if (line.find_first_not_of(" \t") == std::string::npos) return;
  HistEvent event;
  history(history_, &event, H_ENTER, line.c_str());
  SaveHistory();
}

// Handles a signal. libedit's own handlers (EL_SIGNAL) work once for each line, and do what a
// signal handler may not.
bool LineEditor::Impl::HandleSignal(int signal) {
  if (signal == SIGINT) {
    const LineInfo* line = el_line(editor_);
    abandoned_.assign(line->buffer, line->lastchar);
    return false;
  }
  if (signal == SIGWINCH) {
    Redraw(RowsAboveCursor());
  } else if (signal == SIGTSTP) {
    LeaveEditing();
    raise(SIGSTOP);
    el_set(editor_, EL_PREP_TERM, 1);
    WriteControl(kAskForBrackets);
    Redraw(0);
  } else {
    LeaveEditing();
    signals_.NoteAll(false);
    raise(signal);
  }
  return true;
}

void LineEditor::Impl::LeaveEditing() {
  WriteControl(kNoMoreBrackets);
  WriteStatus("\n");
  el_set(editor_, EL_PREP_TERM, 0);
}

void LineEditor::Impl::Redraw(int rows) {
  el_resize(editor_);
  WriteControl(rows > 0 ? fmt::format("\033[{}A\r\033[J", rows) : "\r\033[J");
  el_set(editor_, EL_REFRESH);
}

// The rows between the cursor and the line's beginning. Terminals wrap a line anew when their width
// changes.
int LineEditor::Impl::RowsAboveCursor() const {
  const LineInfo* line = el_line(editor_);
  const std::string before(line->buffer, line->cursor);
  std::wstring wide(before.size(), L'\0');
  const size_t length = std::mbstowcs(wide.data(), before.c_str(), wide.size());
  const int width = length == static_cast<size_t>(-1) ? 0 : wcswidth(wide.data(), length);
  return (static_cast<int>(prompt_.size()) + std::max(0, width)) / StatusColumns();
}

int LineEditor::Impl::ReadByte(char* out) {
  if (!unread_.empty()) {
    *out = unread_.front();
    unread_.erase(0, 1);
    return 1;
  }
  // The terminal is set up for editing here, but not yet when libedit shows the prompt.
  if (!std::exchange(asked_, true)) WriteControl(kAskForBrackets);
  while (true) {
    pollfd files[] = {{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0},
                      {.fd = signals_.file(), .events = POLLIN, .revents = 0}};
    if (poll(files, std::size(files), /*timeout=*/-1) < 0) continue;  // a signal
    if (const int signal = signals_.Take()) {
      interrupted_ = !HandleSignal(signal);
      if (interrupted_) return -1;
      continue;
    }
    const ssize_t got = read(STDIN_FILENO, out, 1);
    if (got >= 0) return static_cast<int>(got);
    if (errno != EINTR) return 0;
  }
}

void LineEditor::Impl::TakePasteBrackets() {
  std::string sequence;
  const auto may_be = [&](std::string_view bracket) { return bracket.starts_with(sequence); };
  // A sequence's bytes arrive together, while a lone Escape is followed by nothing.
  constexpr int kTogetherMs = 20;
  while (may_be(kPasteBegins) || may_be(kPasteEnds)) {
    if (sequence == kPasteBegins || sequence == kPasteEnds) {
      pasting_ = sequence == kPasteBegins;
      return;
    }
    pollfd terminal{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    char byte;
    if (unread_.empty() && poll(&terminal, 1, kTogetherMs) != 1) break;
    if (ReadByte(&byte) != 1) break;
    sequence += byte;
  }
  unread_ = "\033" + sequence + unread_;
}

int LineEditor::Impl::ReadChar(wchar_t* out) {
  mbstate_t state{};
  while (true) {
    char byte;
    const bool fresh = unread_.empty();
    const int got = interrupted_ ? -1 : ReadByte(&byte);
    if (got != 1) return got;
    if (byte == '\033' && fresh) {
      TakePasteBrackets();
      if (unread_.empty()) continue;
      unread_.erase(0, 1);
    }
    if (pasting_ && byte == '\r') byte = '\n';
    const size_t length = mbrtowc(out, &byte, 1, &state);
    if (length == static_cast<size_t>(-2)) continue;  // the character is not complete
    if (length == static_cast<size_t>(-1)) {
      state = {};
      continue;
    }
    return 1;
  }
}

LineEditor::LineEditor(std::string history_file)
    : impl_(std::make_unique<Impl>(std::move(history_file))) {}

LineEditor::~LineEditor() = default;

Line LineEditor::Read(const std::string& prompt) { return impl_->Read(prompt); }

void CheckHistoryFile(const std::string& path) {
  constexpr std::string_view kBegin = "_HiStOrY_V2_\n";  // as libedit writes it
  if (!IsHistoryFile(path)) return;
  std::ifstream file(path, std::ios::binary);
  std::string begin(kBegin.size(), '\0');
  file.read(begin.data(), std::ssize(begin));
  if (file.gcount() == 0 || begin == kBegin) return;
  Throw(ErrorKind::kInput, "--history: expected a file of typed lines, found other content in {}",
        Quote(path));
}

std::string DefaultHistoryFile() {
  const char* state = std::getenv("XDG_STATE_HOME");
  if (state != nullptr && *state == '/') return std::string(state) + "/godwit/history";
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home != '/') return "";
  return std::string(home) + "/.local/state/godwit/history";
}

}  // namespace godwit::console
