// Sliding window with re-computation: the oracle that streaming is measured against (StreamingLLM,
// figure 1.c). Every token is read in a text of its own, which holds it and the W - 1 tokens before
// it; only the first W, which are one window, are read at once. No cache outlives a token, so a
// token costs what a prompt of W costs.
//
// A window begins as every text of a session does: with the sink token of a model that has one,
// which is among the W. Nothing else is put in front: the text's own BOS slides out with the rest.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "eval/reader.h"
#include "godwit/engine.h"

namespace godwit::eval {

// Of a session that reads the windows: it keeps all of one, and, to generate, the token behind it.
SessionOptions WindowSession(SessionOptions options, int64_t window, bool generates = false);

struct RecomputeOptions {
  int64_t window;
  std::optional<int32_t> sink_token;  // Engine::sink_token
  // Without special tokens.
  std::function<std::string(std::span<const int32_t> tokens)> decode;
};

// Reads windows with a session of WindowSession, which is borrowed. Texts may be of any length.
// Throws Error(kInput) for a window that the sink token fills.
Reader Recompute(Session& session, const RecomputeOptions& options);
Reader Recompute(Session& session, const Engine& engine, int64_t window);

}  // namespace godwit::eval
