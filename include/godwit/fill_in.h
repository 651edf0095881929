// FillIn: a text with a hole, for models that were trained to fill it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace godwit {

struct FillIn {
  std::string before;
  std::string behind;
  // The other files that the text belongs with, such as those of a program.
  struct File {
    std::string name;
    std::string text;
  };
  std::vector<File> files = {};
  std::string begun = {};  // text that stands in the hole already
};

struct FillPrompt {
  std::vector<int32_t> tokens;    // the prompt that the model continues
  std::vector<std::string> ends;  // tokens that end the filling, as the vocabulary spells them
};

}  // namespace godwit
