#include "eval/reader.h"

namespace godwit::eval {

Reader::Reader(Session& session)
    : logits([&session](std::span<const int32_t> tokens, const OnRow& row, int64_t first,
                        const OnProgress& on_progress) {
        session.Logits(tokens, row, first, on_progress);
      }),
      generate([&session](std::span<const int32_t> prompt, const GenerateOptions& options) {
        return session.Generate(prompt, options);
      }),
      kv([&session] { return session.kv(); }),
      limit_tokens([&session] { return session.limit_tokens(); }),
      learned_positions(session.learned_positions()) {}

}  // namespace godwit::eval
