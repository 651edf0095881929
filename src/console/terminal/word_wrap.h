// WordWrap: breaks lines of a text that arrives in pieces between words, at the edge of a terminal.
//
// A word is held back until it has ended, or certainly stands on the next line. The last word of a
// text therefore comes with Flush. Lines may break at any character that is two columns wide, as in
// Chinese and Japanese. Lines between ``` and ``` stay as they are: they are code.
#pragma once

#include <string>
#include <string_view>

namespace godwit::console {

class WordWrap {
 public:
  // The text to write now. text: valid UTF-8 in pieces that end with a character. columns: the
  // terminal's, at least 1; may change between calls.
  std::string Push(std::string_view text, int columns);
  // The text that was held back.
  std::string Flush(int columns);

 private:
  void EndWord(int columns, std::string& out);
  void WriteWord(int columns, std::string& out);

  int column_ = 0;      // where the written text ends
  std::string blanks_;  // blanks before the word, which vanish at a line break
  int blank_columns_ = 0;
  std::string word_;
  int word_columns_ = 0;
  bool word_begun_ = false;  // its first part is written
  bool line_begins_ = true;  // the line has only blanks so far
  bool code_ = false;
};

}  // namespace godwit::console
