// tokenizer.json and chat templates run in a process of their own, too far away for a fuzzer to see
// what an input reaches: these two are replayed only, each input whole and damaged in many places.
#include <random>
#include <string>

#include "tests/fuzz/targets.h"
#include "text/chat_template.h"
#include "text/load_tokenizer.h"

namespace godwit::fuzz {
namespace {

// Whatever the libraries say, their insides stay inside.
void CheckMessage(const std::string& message) {
  for (const char* inside :
       {"panicked", "unwrap", ".rs:", "untagged", "expected struct", "usize"}) {
    Require(message.find(inside) == std::string::npos, "messages are in plain words");
  }
  Require(message.size() < 16'384, "messages are short");
}

template <typename Action>
void Survives(Action action) {
  try {
    action();
  } catch (const Error& error) {
    Require(error.kind() == ErrorKind::kFormat || error.kind() == ErrorKind::kInput ||
                error.kind() == ErrorKind::kMemory,
            "a refusal is a kFormat, a kInput or a kMemory");
    CheckMessage(error.what());
  }
}

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
    Survives([&] {
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
  ChatInput chat;
  chat.messages = {{{"role", "system"}, {"content", "Be brief."}},
                   {{"role", "user"}, {"content", "Where do godwits go?"}},
                   {{"role", "assistant"}, {"content", "South."}},
                   {{"role", "user"}, {"content", "And then?"}}};
  chat.now_unix_s = 1'700'000'000;
  Damaged(input, [&](const std::string& source) {
    Survives([&] { ChatTemplate(source, "template", {{"bos_token", "<s>"}}).Render(chat); });
  });
}

}  // namespace godwit::fuzz
