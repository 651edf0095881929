// Summaries of a finished run for people. Its sampler is also available as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/options/sampling_options.h"
#include "godwit/engine.h"

namespace godwit::cli {

// Tokens per second; 0 if nothing was measured.
double TokenRate(int64_t tokens, double ms);

// The rates of a run. The prompt's counts only tokens that were read: none that were cached, or
// that a cancelled call did not reach. The output's leaves out its first token, whose time is the
// prompt's.
double PromptRate(const GenerateResult& result);
double PredictedRate(const GenerateResult& result);

// "dropped 164 tokens after the first 4"; empty if everything was kept.
std::string DescribeDropped(const KvReport& kv);

// Reports dropped tokens on standard error, also where that is no terminal: "godwit: sinks:4+60:
// dropped 164 tokens after the first 4" and `where`. Nothing if everything was kept. For verbs
// without another place to say so.
void SayDropped(const KvReport& kv, std::string_view where = "");

// "sinks:4+60: 64 of 228 tokens kept, 96.0 KiB"
std::string DescribeKv(const KvReport& kv);

// "2.31 tokens a step; 131 accepted of 402 draft tokens: 120 of ngram, 11 of recycled"
std::string DescribeDrafts(const DraftReport& drafts);

// Three lines, or four with draft tokens, each ending in a newline.
std::string Summarize(const GenerateResult& result);

// "1.32 s: weights 0.80 s, tokenizer 0.41 s, other 0.11 s"
std::string DescribeLoad(const LoadTimes& times);

// {"ms", "weights_ms", "tokenizer_ms", "other_ms"}
nlohmann::ordered_json LoadJson(const LoadTimes& times);

// The steps that change something, in order: "top-k 40, top-p 0.9 (the model's), temperature 0.7".
std::string DescribeSampler(const EffectiveSampler& sampler);

// Every option, the names of the steps in order as "samplers", and as "from_model" those that came
// from the model's generation_config.json.
nlohmann::ordered_json SamplerJson(const EffectiveSampler& sampler);

}  // namespace godwit::cli
