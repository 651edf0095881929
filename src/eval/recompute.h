// Sliding window with re-computation: the oracle that streaming is measured against (StreamingLLM,
// figure 1.c). Every token is read in a text of its own: the token and the W - 1 before it. Only
// the first W tokens, which are one window, are read at once. No cache outlives a token, so a token
// costs as much as a prompt of W.
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

// The options of a session that reads the windows. It keeps all of one window, and, to generate,
// the token behind it.
SessionOptions WindowSession(SessionOptions options, int64_t window, bool generates = false);

struct RecomputeOptions {
  int64_t window;
  std::optional<int32_t> sink_token;  // Engine::sink_token
  // Turns tokens into text without special tokens.
  std::function<std::string(std::span<const int32_t> tokens)> decode;
};

// Reads windows with a session of WindowSession, which must outlive the reader. Texts may be of any
// length. Throws Error(kInput) for a window that the sink token fills.
Reader Recompute(Session& session, const RecomputeOptions& options);
Reader Recompute(Session& session, const Engine& engine, int64_t window);

}  // namespace godwit::eval
