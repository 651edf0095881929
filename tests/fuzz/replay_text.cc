// tokenizer.json and chat templates run in a process of their own, where a fuzzer does not see what
// an input reaches. They are therefore replayed here, whole and damaged in many places.
#include <random>
#include <string>

#include "tests/fuzz/survives.h"
#include "tests/fuzz/targets.h"
#include "text/load_tokenizer.h"

namespace godwit::fuzz {
namespace {

template <typename Action>
void Damaged(std::span<const uint8_t> input, Action action) {
  const std::string whole(AsText(input));
  action(whole);
  if (whole.empty()) return;
  std::mt19937 random(11);
  for (int round = 0; round < 16; ++round) {
    std::string damaged = whole;
    const size_t at = random() % whole.size();
    const size_t from = random() % whole.size();
    if (round % 2 == 0) {
      damaged[at] = whole[from];
    } else {
      damaged.insert(at, whole, from, 1 + random() % 30);
    }
    action(damaged);
  }
}

}  // namespace

void ReplayTokenizer(std::span<const uint8_t> input) {
  Damaged(input, [](const std::string& file) {
    Survives(file, [&] {
      const auto tokenizer = ParseTokenizer(file, "tokenizer.json");
      const auto ids = tokenizer->Encode("Hello bird 🐦", /*add_special_tokens=*/true);
      const std::string text = tokenizer->Decode(ids, /*skip_special_tokens=*/false);
      const auto stream = tokenizer->NewStream(/*skip_special_tokens=*/false);
      std::string streamed;
      for (const int32_t id : ids) streamed += stream->Push(id);
      Require(streamed + stream->Flush() == text, "a stream adds up to Decode");
    });
  });
}

void ReplayTemplate(std::span<const uint8_t> input) {
  Damaged(input, [](const std::string& source) {
    FuzzTemplate({reinterpret_cast<const uint8_t*>(source.data()), source.size()});
  });
}

}  // namespace godwit::fuzz
