// The stories of bAbI (Weston et al., 2015): facts, and questions with one right answer.
//
//   1 John travelled to the hallway.
//   2 Mary journeyed to the bathroom.
//   3 Where is John? <tab>hallway<tab>1
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace godwit::eval {

struct BabiQuestion {
  std::vector<std::string> facts;  // of the story so far, without other questions
  std::vector<size_t> supporting;  // the facts that the answer needs
  std::string question;
  std::string answer;
};

// folder/qa1_..._train.txt, or, if there is none, folder/qa1_..._test.txt. Throws Error(kIo).
std::filesystem::path BabiFile(const std::filesystem::path& folder, std::string_view task);

// Every question of a file by itself. Throws Error(kIo), and Error(kFormat) with file and line.
std::vector<BabiQuestion> ReadBabi(const std::filesystem::path& file);

}  // namespace godwit::eval
