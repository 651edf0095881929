// Questions about documents, as SQuAD (Rajpurkar et al., 2018) and HotpotQA (Yang et al., 2018)
// publish them.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace godwit::eval {

struct QaQuestion {
  std::string question;
  std::vector<std::string> answers;  // one or more, each right
  std::vector<size_t> documents;     // needed for the answer
  std::vector<size_t> related;       // others of the same article
};

struct QaDocuments {
  std::vector<std::string> documents;  // all different
  std::vector<QaQuestion> questions;   // one or more
};

// SQuAD's dev-v2.0.json, or squad.json, in a folder. A document is a paragraph. Questions without
// an answer are left out.
inline constexpr const char* kSquadFiles = "squad.json or dev-v2.0.json of SQuAD";
QaDocuments ReadSquad(const std::filesystem::path& folder);

// HotpotQA's hotpot_dev_distractor_v1.json, or hotpotqa.json, in a folder. A document is a title
// and the sentences of a paragraph; each question needs all of its ten.
inline constexpr const char* kHotpotQaFiles =
    "hotpotqa.json or hotpot_dev_distractor_v1.json of HotpotQA";
QaDocuments ReadHotpotQa(const std::filesystem::path& folder);

// Both functions throw Error(kIo), and Error(kFormat) that names the broken place.

}  // namespace godwit::eval
