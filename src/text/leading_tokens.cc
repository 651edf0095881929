#include "text/leading_tokens.h"

#include <algorithm>

namespace godwit {

std::vector<int32_t> LeadingTokens(EncodeText encode) {
  // Not the frame of an empty text: what some tokenizers put behind a text would be part of it.
  const auto framed = encode("a", /*add_special_tokens=*/true);
  const auto plain = encode("a", /*add_special_tokens=*/false);
  return {framed.begin(), std::search(framed.begin(), framed.end(), plain.begin(), plain.end())};
}

}  // namespace godwit
