#include "cli/chat_codec.h"

#include <utility>

#include "cli/terminal/interrupt.h"

namespace godwit::cli {
namespace {

// A template or a tokenizer that computes without end has nothing that could be kept: Ctrl-C
// leaves.
template <typename Work>
auto Interruptible(Work work) {
  CancelToken unused;
  const CancelOnInterrupt leave(unused, /*presses_to_exit=*/1);
  return work();
}

}  // namespace

ChatCodec CodecOf(const Engine& engine, std::string variables) {
  return {
      .render =
          [&engine, variables = std::move(variables)](std::span<const Message> messages,
                                                      bool open) {
            return Interruptible(
                [&] { return engine.ApplyChatTemplate(messages, open, variables); });
          },
      .encode =
          [&engine](std::string_view text) {
            return Interruptible([&] { return engine.Tokenize(text, /*add_special=*/false); });
          },
      .decode = [&engine](std::span<const int32_t> tokens,
                          bool skip_special) { return engine.Detokenize(tokens, skip_special); }};
}

}  // namespace godwit::cli
