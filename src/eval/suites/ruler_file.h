// Samples that RULER's own generator has written, a JSON object on a line for each:
//
//   {"index": 0, "input": "Some special magic ...", "outputs": ["1234567"], "length": 4001,
//    "answer_prefix": " The special magic number ..."}
//
// The prompt is the input and, if there is one, the prefix; in a chat the prefix stands behind the
// template. "index", which the original overwrites in some tasks, and "length", in the tokens of
// another tokenizer, are ignored.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

#include "eval/suites/sample.h"

namespace godwit::eval {

// folder/TASK/validation.jsonl, or else folder/TASK.jsonl, if one is there.
std::optional<std::filesystem::path> RulerFile(const std::filesystem::path& folder,
                                               std::string_view task);

// The first `samples` of inputs.task, read into memory. Throws Error(kIo), Error(kFormat) with file
// and line, and Error(kInput) if there are fewer. A sample that takes more tokens than its place
// allows is refused with its line and numbers.
SampleMaker OpenRulerFile(const std::filesystem::path& folder, int64_t samples,
                          const SuiteInputs& inputs, const PieceMaker& pieces);

}  // namespace godwit::eval
