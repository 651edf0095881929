#include <cstdio>
#include <string>

#include "godwit/engine.h"

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: %s MODEL PROMPT\n", argv[0]), 2;
  try {
    const godwit::Engine engine(argv[1], {});
    godwit::Session session = engine.NewSession({.kv = "sinks:4+252"});

    godwit::GenerateOptions options;
    options.max_tokens = 32;
    options.sampler.temperature = 0;
    options.on_text = [](std::string_view text) {
      std::fwrite(text.data(), 1, text.size(), stdout);
    };
    const auto result = session.Generate(engine.Tokenize(argv[2]), options);
    std::fprintf(stderr, "\n%lld of %lld tokens kept\n", static_cast<long long>(result.kv.kept),
                 static_cast<long long>(result.kv.seen));
  } catch (const godwit::Error& error) {
    return std::fprintf(stderr, "%s\n", error.what()), 1;
  }
}
