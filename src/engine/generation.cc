#include "engine/generation_impl.h"

namespace godwit {

std::optional<Event> Generation::Impl::Next(std::optional<double> wait_ms) {
  try {
    auto event = request_->Next(wait_ms);
    if (event && event->done) ended_ = true;
    return event;
  } catch (...) {
    ended_ = true;
    throw;
  }
}

GenerateResult Generation::Impl::Wait() {
  while (!ended_) Next(std::nullopt);
  return request_->TakeResult();
}

Generation SubmitTo(std::shared_ptr<const Engine::Impl> engine, std::span<const int32_t> prompt,
                    const GenerateOptions& options, const SessionOptions& session) {
  engine->RequireRankZero();
  auto plan = std::make_shared<const TextPlan>(engine->served, session);
  std::vector<int32_t> text = plan->WithSink(prompt);
  auto request = engine->NewRequest(std::move(plan), std::move(text), options,
                                    std::make_shared<Interrupt>(), RequestKind::kSubmitted);
  engine->scheduler->Submit(request);
  return Generation(std::make_unique<Generation::Impl>(std::move(engine), std::move(request)));
}

Generation::Generation(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Generation::~Generation() = default;
Generation::Generation(Generation&&) noexcept = default;
Generation& Generation::operator=(Generation&&) noexcept = default;

Event Generation::Next() { return *impl_->Next(std::nullopt); }
std::optional<Event> Generation::Next(double wait_ms) { return impl_->Next(wait_ms); }
GenerateResult Generation::Wait() { return impl_->Wait(); }
void Generation::Cancel() noexcept { impl_->Cancel(); }

}  // namespace godwit
