// WordWrap: breaks lines of a text that arrives in pieces between words, at the edge of a terminal.
//
// A word is held back until it has ended, or is seen to stand on the next line: so the last one of
// a text comes with Flush. Characters that are two columns wide may be parted anywhere, as in
// Chinese and Japanese. Lines between ``` and ``` stay as they are: they are code.
#pragma once

#include <string>
#include <string_view>

namespace godwit::console {

class WordWrap {
 public:
  // What to write now. text: valid UTF-8 in pieces that end with a character; columns: of the
  // terminal, at least 1; may change meanwhile.
  std::string Push(std::string_view text, int columns);
  // What was held back.
  std::string Flush(int columns);

 private:
  void EndWord(int columns, std::string& out);
  void WriteWord(int columns, std::string& out);

  int column_ = 0;      // where what was written ends
  std::string blanks_;  // before the word; they vanish where a line is broken
  int blank_columns_ = 0;
  std::string word_;
  int word_columns_ = 0;
  bool word_begun_ = false;  // the first part of it is written
  bool line_begins_ = true;  // nothing but blanks so far
  bool code_ = false;
};

}  // namespace godwit::console
