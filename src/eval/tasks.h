// The tasks of `godwit eval tasks`, each with its questions, in the words of EleutherAI's
// lm-evaluation-harness without examples (zero-shot). docs/evaluation.md shows every prompt.
//
// The rows are those of MosaicML's llm-foundry, which has the same data sets as one .jsonl file
// each. Where its words differ from the harness's, the harness's are restored. Rows of HellaSwag,
// GLUE and MMLU are as they were published.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "eval/jsonl_row.h"
#include "eval/question.h"

namespace godwit::eval {

enum class Scoring {
  kChoice,            // acc: the most probable choice
  kNormalizedChoice,  // also acc_norm: the most probable choice per character
  kLastWord,          // acc: the choice is the greedy answer; perplexity of the choice
};

struct Task {
  std::string_view name;
  Scoring scoring;
  Question (*ask)(const JsonlRow& row);  // throws Error(kFormat)
};

std::span<const Task> AllTasks();

// The task of a name. Throws Error(kInput) that lists the tasks there are.
const Task& FindTask(std::string_view name);

// folder/piqa.jsonl
std::filesystem::path TaskFile(const std::filesystem::path& folder, const Task& task);

// All rows of a file, in order, without blank lines. Throws Error(kIo), and Error(kFormat) for the
// first broken row, a file without rows or of more than 256 MiB.
std::vector<Question> ReadQuestions(const std::filesystem::path& file, const Task& task);

}  // namespace godwit::eval
