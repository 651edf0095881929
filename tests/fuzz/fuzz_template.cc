#include <string>

#include "tests/fuzz/survives.h"
#include "text/chat_template.h"

namespace godwit::fuzz {

// A chat template, as a model's publisher wrote it. The fuzzer does not see into the process that
// runs it, and so tries what the dictionary and the corpus suggest.
void FuzzTemplate(std::span<const uint8_t> input) {
  ChatInput chat;
  chat.messages = {{{"role", "system"}, {"content", "Be brief."}},
                   {{"role", "user"}, {"content", "Where do godwits go?"}},
                   {{"role", "assistant"}, {"content", "South."}},
                   {{"role", "user"}, {"content", "And then?"}}};
  chat.now_unix_s = 1'700'000'000;
  const std::string_view source = AsText(input);
  Survives(source, [&] { ChatTemplate(source, "template", {{"bos_token", "<s>"}}).Render(chat); });
}

}  // namespace godwit::fuzz
