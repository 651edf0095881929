// FillIn: a text with a hole, which a model that was trained to can fill.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace godwit {

struct FillIn {
  std::string before;
  std::string behind;
  // Others that the text belongs to, such as those of a program.
  struct File {
    std::string name;
    std::string text;
  };
  std::vector<File> files = {};
  std::string begun = {};  // what stands in the hole already
};

struct FillPrompt {
  std::vector<int32_t> tokens;    // what the model is to continue
  std::vector<std::string> ends;  // tokens that end what it fills in, as the vocabulary spells them
};

}  // namespace godwit
