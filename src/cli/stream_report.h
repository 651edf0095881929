// What `godwit eval stream` prints, writes and draws.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "eval/stream_arc.h"
#include "eval/stream_eval.h"

namespace godwit::cli {

// Of one ARC file.
struct ArcRun {
  std::string task;
  eval::StreamArcResult result;
};

// A table for people.
std::string StreamEvalText(const eval::StreamEvalResult& result);
std::string StreamArcText(std::span<const ArcRun> runs);

// What was measured, to stand behind what was asked for.
void PutStreamEval(nlohmann::ordered_json& json, const eval::StreamEvalResult& result);
void PutStreamArc(nlohmann::ordered_json& json, std::span<const ArcRun> runs);

// A line of --jsonl.
std::string QueryJson(const eval::StreamQuery& query);
std::string AnswerJson(std::string_view task, const eval::StreamAnswer& answer);

// Where in the text something was asked.
struct Asked {
  int64_t position;  // in tokens
  bool right;
};
struct AskedLine {
  std::string name;
  std::vector<Asked> asked;
};

// SVGs. Accuracy over the distance in tokens; over the length of the text, in twenty pieces, a line
// for each of `lines`.
std::string DistanceChart(const eval::StreamEvalResult& result);
std::string LengthChart(std::span<const AskedLine> lines);

}  // namespace godwit::cli
