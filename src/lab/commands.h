// The verbs of godwit-lab. Each has a file of its own.
#pragma once

#include <span>
#include <string>

namespace godwit::lab {

// The verbs, each a console::Command.
int Logits(std::span<const std::string> arguments);
int Perplexity(std::span<const std::string> arguments);
int Probe(std::span<const std::string> arguments);
int Bench(std::span<const std::string> arguments);
int Quantize(std::span<const std::string> arguments);
int TrainHeads(std::span<const std::string> arguments);
int InspectActivations(std::span<const std::string> arguments);

// `eval`, whose first argument names the evaluation.
int Eval(std::span<const std::string> arguments);
int EvalTasks(std::span<const std::string> arguments);
int EvalStream(std::span<const std::string> arguments);
int EvalQuant(std::span<const std::string> arguments);
int EvalText(std::span<const std::string> arguments);
int EvalRecall(std::span<const std::string> arguments);
int EvalAttention(std::span<const std::string> arguments);
int EvalPasskey(std::span<const std::string> arguments);
int EvalNeedle(std::span<const std::string> arguments);
int EvalKvRetrieval(std::span<const std::string> arguments);
int EvalLines(std::span<const std::string> arguments);
int EvalBabilong(std::span<const std::string> arguments);
int EvalPassages(std::span<const std::string> arguments);
int EvalRuler(std::span<const std::string> arguments);

}  // namespace godwit::lab
