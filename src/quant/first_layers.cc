#include "quant/first_layers.h"

#include <utility>

namespace godwit::quant {
namespace {

// A source that finds tensors by name and lists none, so that none is unexpected.
class Unlisted : public WeightSource {
 public:
  explicit Unlisted(const WeightSource& source) : source_(source) {}

  const TensorInfo* Find(std::string_view name) const override { return source_.Find(name); }
  const std::vector<std::string>& Names() const override { return names_; }
  const std::map<std::string, std::string, std::less<>>& Metadata() const override {
    return source_.Metadata();
  }
  void Prefetch(const TensorInfo& tensor, size_t begin, size_t size_bytes) const override {
    source_.Prefetch(tensor, begin, size_bytes);
  }
  std::shared_ptr<const MappedFile> FileOf(const TensorInfo& tensor) const override {
    return source_.FileOf(tensor);
  }
  void Release(const TensorInfo& tensor) const override { source_.Release(tensor); }

 private:
  const WeightSource& source_;
  const std::vector<std::string> names_;
};

}  // namespace

std::unique_ptr<Decoder> LoadFirstLayers(DecoderSpec spec, const WeightSource& source,
                                         int64_t layers, ThreadPool& pool, const LoadHooks& hooks,
                                         std::optional<DType> storage) {
  return LoadDecoder(FirstLayers(std::move(spec), layers), Unlisted(source), pool, hooks, storage);
}

}  // namespace godwit::quant
