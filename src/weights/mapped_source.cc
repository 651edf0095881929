#include "weights/mapped_source.h"

#include <functional>
#include <utility>

namespace godwit {
namespace {

using TextMap = std::map<std::string, std::string, std::less<>>;

class MappedSource final : public WeightSource {
 public:
  MappedSource(std::vector<MappedFile> files, std::vector<TensorInfo> tensors, TextMap metadata)
      : tensors_(std::move(tensors)), metadata_(std::move(metadata)) {
    for (MappedFile& file : files) {
      files_.push_back(std::make_shared<const MappedFile>(std::move(file)));
    }
    names_.reserve(tensors_.size());
    for (const TensorInfo& tensor : tensors_) {
      names_.push_back(tensor.name);
      by_name_.emplace(tensor.name, &tensor);
    }
  }

  const TensorInfo* Find(std::string_view name) const override {
    const auto it = by_name_.find(name);
    return it == by_name_.end() ? nullptr : it->second;
  }

  const std::vector<std::string>& Names() const override { return names_; }
  const TextMap& Metadata() const override { return metadata_; }

  void Prefetch(const TensorInfo& tensor, size_t begin, size_t size_bytes) const override {
    Advise(tensor, begin, size_bytes, MappedFile::Advice::kWillNeed);
  }

  std::shared_ptr<const MappedFile> FileOf(const TensorInfo& tensor) const override {
    for (const auto& file : files_) {
      if (tensor.file == file->path()) return file;
    }
    return nullptr;
  }

  void Release(const TensorInfo& tensor) const override {
    Advise(tensor, 0, tensor.bytes.size(), MappedFile::Advice::kDontNeed);
  }

 private:
  void Advise(const TensorInfo& tensor, size_t begin, size_t size_bytes,
              MappedFile::Advice advice) const {
    const auto file = FileOf(tensor);
    if (file != nullptr) file->Advise(tensor.offset_bytes + begin, size_bytes, advice);
  }

  std::vector<std::shared_ptr<const MappedFile>> files_;
  const std::vector<TensorInfo> tensors_;
  const TextMap metadata_;
  std::vector<std::string> names_;
  std::map<std::string_view, const TensorInfo*, std::less<>> by_name_;  // into tensors_
};

}  // namespace

std::unique_ptr<WeightSource> MakeMappedSource(std::vector<MappedFile> files,
                                               std::vector<TensorInfo> tensors, TextMap metadata) {
  return std::make_unique<MappedSource>(std::move(files), std::move(tensors), std::move(metadata));
}

}  // namespace godwit
