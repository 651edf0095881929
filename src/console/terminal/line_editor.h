// LineEditor: lines typed at a terminal, with editing and history (libedit; ~/.editrc is obeyed).
//
// Prompts and what is typed appear on standard error. Pasted text may have several lines. One
// object per process.
#pragma once

#include <memory>
#include <string>

#include "console/terminal/line_source.h"

namespace godwit::console {

class LineEditor : public LineSource {
 public:
  // history_file: read now, written with every line, readable by its owner only; empty, or what is
  // no regular file (/dev/null): none.
  explicit LineEditor(std::string history_file);
  ~LineEditor() override;

  Line Read(const std::string& prompt) override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Before a model is loaded. Throws Error(kInput) for a file that holds something else than typed
// lines, which would be replaced.
void CheckHistoryFile(const std::string& path);

// $XDG_STATE_HOME/godwit/history, else ~/.local/state/godwit/history; empty without a home.
std::string DefaultHistoryFile();

}  // namespace godwit::console
