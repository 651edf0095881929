// What `godwit eval stream` prints and writes.
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

}  // namespace godwit::cli
