#include "eval/encode_pair.h"

#include <string>

#include "base/error.h"
#include "base/quote.h"

namespace godwit::eval {

EncodedPair EncodePair(const Encoder& encode, std::string_view context,
                       std::string_view continuation) {
  const size_t last = context.find_last_not_of(" \t\n\v\f\r");
  const std::string_view kept = context.substr(0, last == std::string_view::npos ? 0 : last + 1);
  EncodedPair pair{.tokens = encode(std::string(context) + std::string(continuation)),
                   .context_tokens = static_cast<int64_t>(encode(kept).size())};
  if (pair.context_tokens == 0 || pair.context_tokens > pair.read_tokens()) {
    Throw(ErrorKind::kUnsupported,
          "this tokenizer makes {} tokens of {} and {} when followed by {}: there is no token to "
          "score",
          pair.context_tokens, Quote(kept), pair.tokens.size(), Quote(continuation));
  }
  return pair;
}

}  // namespace godwit::eval
