#include "eval/suites/suite_reader.h"

#include <algorithm>
#include <span>

namespace godwit::eval {

GenerateResult SuiteReader::Ask(const Sample& sample, const std::string& kv,
                                const OnProgress& on_progress) {
  GenerateOptions options;
  options.max_tokens = sample.max_new_tokens;
  const int64_t question = std::ssize(sample.prompt) - sample.context_tokens;
  options.query_tokens = query_tokens_ > 0 ? query_tokens_ : std::max<int64_t>(1, question);
  options.sampler.temperature = 0;
  options.stop = sample.stop;
  options.on_progress = on_progress;
  const int64_t context =
      std::min(sample.context_tokens, std::ssize(sample.prompt) - options.query_tokens);
  const auto ask = [&] {
    if (context < 1) return new_session_(kv).Generate(sample.prompt, options);
    return SessionBehind(std::span(sample.prompt).first(context), kv, on_progress)
        .Generate(sample.prompt, options);
  };
  try {
    return ask();
  } catch (const Error& error) {
    // Several policies that read in their own ways hold a context each.
    if (error.kind() != ErrorKind::kMemory || contexts_.empty()) throw;
  }
  contexts_.clear();
  return ask();
}

Session SuiteReader::SessionBehind(std::span<const int32_t> context, const std::string& kv,
                                   const OnProgress& on_progress) {
  for (Context& one : contexts_) {
    if (one.kv != kv) continue;
    Read(context, one, on_progress);
    return one.session.Fork();
  }
  Session session = new_session_(kv);
  for (Context& one : contexts_) {
    if (!session.GoOnFrom(one.session)) continue;
    session = new_session_(kv);  // shares no memory with a context that gives way
    Read(context, one, on_progress);
    session.GoOnFrom(one.session);
    return session;
  }
  contexts_.push_back({.kv = kv, .session = std::move(session), .tokens = {}});
  Read(context, contexts_.back(), on_progress);
  return contexts_.back().session.Fork();
}

void SuiteReader::Read(std::span<const int32_t> tokens, Context& context,
                       const OnProgress& on_progress) {
  if (std::ranges::equal(context.tokens, tokens)) return;
  context.tokens.clear();
  context.session.ReadContext(tokens, on_progress);
  context.tokens.assign(tokens.begin(), tokens.end());
}

}  // namespace godwit::eval
