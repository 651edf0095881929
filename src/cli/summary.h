// What is said about a finished run: for people, and how its tokens were chosen also as numbers.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/options/sampling_options.h"
#include "godwit/engine.h"

namespace godwit::cli {

// Tokens per second, 0 where nothing was measured.
double TokenRate(int64_t tokens, double ms);

// Of a run: the prompt's of the tokens that were read, without those that were cached, or to which
// a cancelled call did not come; the output's without its first token, whose time is the prompt's.
double PromptRate(const GenerateResult& result);
double PredictedRate(const GenerateResult& result);

// "dropped 164 tokens after the first 4"; empty if everything was kept.
std::string DescribeDropped(const KvReport& kv);

// On standard error, whoever reads it: "godwit: sinks:4+60: dropped 164 tokens after the first 4"
// and `where`; nothing if everything was kept. For what has no other place to say so.
void SayDropped(const KvReport& kv, std::string_view where = "");

// "sinks:4+60: 64 of 228 tokens kept, 96.0 KiB"
std::string DescribeKv(const KvReport& kv);

// "2.31 tokens a step; 131 accepted of 402 guessed tokens: 120 of ngram, 11 of recycled"
std::string DescribeDrafts(const DraftReport& drafts);

// Three lines, four with drafts, each ending in a newline.
std::string Summarize(const GenerateResult& result);

// "1.32 s: weights 0.80 s, tokenizer 0.41 s, other 0.11 s"
std::string DescribeLoad(const LoadTimes& times);

// {"ms", "weights_ms", "tokenizer_ms", "other_ms"}
nlohmann::ordered_json LoadJson(const LoadTimes& times);

// "top-k 40, top-p 0.9 (the model's), temperature 0.7": the steps that change something, in order.
std::string DescribeSampler(const EffectiveSampler& sampler);

// Every option, the names of the steps in order as "samplers", and as "from_model" what the model's
// generation_config.json said.
nlohmann::ordered_json SamplerJson(const EffectiveSampler& sampler);

}  // namespace godwit::cli
