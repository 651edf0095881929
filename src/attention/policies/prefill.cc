#include "attention/policies/prefill.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "attention/policies/sinks_spec.h"
#include "base/error.h"

namespace godwit {
namespace {

// How a row sees depends on its position alone, so neither the chunks of a prompt nor a pause,
// after which the text is read again, show in what was read.
class PrefillPolicy : public AttentionPolicy {
 public:
  PrefillPolicy(const AttentionGeometry& geometry, int64_t window,
                std::unique_ptr<AttentionPolicy> asked)
      : windows_(geometry.windows), window_(window), asked_(std::move(asked)) {}

  std::string name() const override {
    return fmt::format("{}, read by window:{}", asked_->name(), window_);
  }
  std::string Explain() const override {
    return fmt::format(
        "{} The context, all before the question, is read by a window: each token "
        "sees the {} before it.",
        asked_->Explain(), window_);
  }
  int64_t limit_tokens() const override { return asked_->limit_tokens(); }
  int64_t most_kept() const override {
    if (limit_tokens() != INT64_MAX) return asked_->most_kept();
    constexpr int64_t kEndless = int64_t{1} << 50;
    const ops::KvRange forgotten = Forgotten(kEndless);
    return kEndless - (forgotten.end - forgotten.begin);
  }

  // Wherever the question begins: of a text that was asked about, a longer context may begin.
  ops::KvRange Forgotten(int64_t length) const override {
    const auto [begin, end] = asked_->Forgotten(length);
    return {begin, std::max(begin, std::min(end, length - window_))};
  }

  int64_t SeenKeys(int64_t layer, int64_t position) const override {
    return asked_->SeenKeys(layer, position);
  }
  IndexSize IndexAt(const KvLayout& layout, int64_t position) const override {
    return asked_->IndexAt(layout, position);
  }

  void AskFrom(int64_t position) override {
    ask_from_ = position;
    asked_->AskFrom(position);
  }

  bool tells_question() const override { return true; }
  int64_t alone_from(int64_t layer) const override {
    return std::max(ask_from_, asked_->alone_from(layer));
  }
  void Accept(int64_t length, std::span<const int64_t> path) override {
    asked_->Accept(length, path);
  }
  void Truncate(int64_t length) override { asked_->Truncate(length); }
  int64_t GoesBackTo(int64_t length) const override { return asked_->GoesBackTo(length); }
  int64_t bytes() const override { return asked_->bytes(); }

  void Plan(const RowRun& run) override { asked_->Plan(run); }

  Looks Select(const RowRun& run, int64_t layer, const RunQueries& queries) override {
    const int64_t of_model = windows_[static_cast<size_t>(layer)];
    Looks looks;
    if (run.position < ask_from_) {
      const int64_t window = of_model == 0 ? window_ + 1 : std::min(of_model, window_ + 1);
      looks.Add({.visible = {.window = window, .until = ask_from_}});
    }
    if (run.position + run.rows <= ask_from_) return looks;
    const Looks asked = asked_->Select(run, layer, queries);
    for (Look look : asked.span()) {
      look.visible.from = std::max(look.visible.from, ask_from_);
      looks.Add(look);
    }
    looks.AddRead(asked.read_bytes());
    return looks;
  }

  std::unique_ptr<AttentionPolicy> Fork() const override {
    return std::unique_ptr<AttentionPolicy>(new PrefillPolicy(*this));
  }

 private:
  PrefillPolicy(const PrefillPolicy& other)
      : windows_(other.windows_),
        window_(other.window_),
        asked_(other.asked_->Fork()),
        ask_from_(other.ask_from_) {}

  std::vector<int64_t> windows_;
  int64_t window_;
  std::unique_ptr<AttentionPolicy> asked_;
  int64_t ask_from_ = 0;
};

}  // namespace

int64_t ParsePrefill(std::string_view spec) {
  constexpr std::string_view kName = "window:";
  std::optional<int64_t> window;
  if (spec.starts_with(kName)) window = ParseTokenCount(spec.substr(kName.size()));
  if (!window || *window < 1) {
    Throw(ErrorKind::kInput,
          "the context can be read by {} with a window of W >= 1 tokens (for example window:1024), "
          "not by \"{}\"",
          kPrefillUsage, spec);
  }
  return *window;
}

std::unique_ptr<AttentionPolicy> MakePrefillPolicy(const AttentionGeometry& geometry,
                                                   std::string_view spec,
                                                   std::unique_ptr<AttentionPolicy> asked) {
  return std::make_unique<PrefillPolicy>(geometry, ParsePrefill(spec), std::move(asked));
}

}  // namespace godwit
