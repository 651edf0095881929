// LineEditor: lines typed at a terminal, with editing and history (libedit; ~/.editrc is obeyed).
//
// Prompts and typed text appear on standard error. Pasted text may have several lines. There is one
// object per process.
#pragma once

#include <memory>
#include <string>

#include "console/terminal/line_source.h"

namespace godwit::console {

class LineEditor : public LineSource {
 public:
  // history_file: read now, written with every line, readable by its owner only. There is no
  // history if it is empty or names no regular file (/dev/null).
  explicit LineEditor(std::string history_file);
  ~LineEditor() override;

  Line Read(const std::string& prompt) override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Throws Error(kInput), before a model is loaded, for a file with anything but typed lines, which
// would be replaced.
void CheckHistoryFile(const std::string& path);

// The default: $XDG_STATE_HOME/godwit/history, else ~/.local/state/godwit/history; empty without a
// home.
std::string DefaultHistoryFile();

}  // namespace godwit::console
