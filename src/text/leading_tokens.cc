#include "text/leading_tokens.h"

#include <algorithm>

namespace godwit {

std::vector<int32_t> LeadingTokens(EncodeText encode) {
  // The leading tokens of "a". Those of an empty text would include tokens that come behind a text.
  const auto framed = encode("a", /*add_special_tokens=*/true);
  const auto plain = encode("a", /*add_special_tokens=*/false);
  return {framed.begin(), std::search(framed.begin(), framed.end(), plain.begin(), plain.end())};
}

}  // namespace godwit
