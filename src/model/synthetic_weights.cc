#include "model/synthetic_weights.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/fnv.h"
#include "base/rng.h"
#include "base/system/advice.h"
#include "base/system/descriptors.h"
#include "model/model_tensors.h"

namespace godwit {
namespace {

constexpr int64_t kPage = kMaxPageBytes;
// A prime number of pages, 16 MiB: row lengths are round, so the rows of a tensor do not repeat
// soon.
constexpr int64_t kMaxBlockPages = kPage == 4096 ? 4099 : 257;

int64_t RoundUpToPage(int64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

// The sum of four uniform numbers, scaled to mean 0 and variance 1, is close to a normal
// distribution. Integer arithmetic is exact until the last step, so the result is the same
// everywhere.
float NormalFrom(uint32_t low, uint32_t high) {
  const int64_t sum = int64_t{low & 0xffff} + (low >> 16) + (high & 0xffff) + (high >> 16);
  // Each has the mean 65535 / 2 and the variance 65536^2 / 12.
  constexpr double kSigma = 37837.23;  // sqrt(4 * 65536^2 / 12)
  return static_cast<float>((static_cast<double>(sum) - 2 * 65535.0) / kSigma);
}

void StoreAs(DType dtype, float value, std::byte* to) {
  if (dtype == DType::kF32) {
    std::memcpy(to, &value, sizeof(value));
  } else {
    const uint16_t bits = dtype == DType::kF16 ? ToF16(value).bits : ToBF16(value).bits;
    std::memcpy(to, &bits, sizeof(bits));
  }
}

// Pseudo-random values in memory that can be mapped several times.
class Block {
 public:
  Block(DType dtype, float mean, float sigma, int64_t pages) : bytes_(pages * kPage) {
    file_ = OpenUnnamedFile("godwit-synthetic-weights");
    if (file_ < 0 || ftruncate(file_, bytes_) != 0) Refuse();
    void* memory =
        mmap(nullptr, static_cast<size_t>(bytes_), PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    if (memory == MAP_FAILED) Refuse();
    Fill(dtype, mean, sigma, static_cast<std::byte*>(memory));
    munmap(memory, static_cast<size_t>(bytes_));
  }
  ~Block() {
    if (file_ >= 0) close(file_);
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  int64_t pages() const { return bytes_ / kPage; }

  // Maps the block over [memory, memory + bytes), whole pages, starting at its page `first`.
  void Map(int64_t first, int64_t bytes, std::byte* memory) const {
    for (int64_t from = first * kPage; bytes > 0; from = 0) {
      const int64_t now = std::min(bytes, bytes_ - from);
      if (mmap(memory, static_cast<size_t>(now), PROT_READ, MAP_SHARED | MAP_FIXED, file_, from) ==
          MAP_FAILED) {
        Refuse();
      }
      memory += now;
      bytes -= now;
    }
  }

 private:
  [[noreturn]] void Refuse() const {
    Throw(ErrorKind::kMemory, "cannot map {} bytes of synthetic weights: {}", bytes_,
          std::strerror(errno));
  }

  void Fill(DType dtype, float mean, float sigma, std::byte* memory) const {
    const auto size = static_cast<int64_t>(SizeOf(dtype));
    // The key tells blocks apart: layers of different input sizes do not share values.
    const std::array<uint32_t, 2> key = {std::bit_cast<uint32_t>(sigma),
                                         std::bit_cast<uint32_t>(mean)};
    for (int64_t i = 0; i < bytes_ / size; i += 2) {
      const auto bits =
          Philox4x32({static_cast<uint32_t>(i), static_cast<uint32_t>(i >> 32), 0, 0}, key);
      StoreAs(dtype, mean + sigma * NormalFrom(bits[0], bits[1]), memory + i * size);
      StoreAs(dtype, mean + sigma * NormalFrom(bits[2], bits[3]), memory + (i + 1) * size);
    }
  }

  int64_t bytes_;
  int file_ = -1;
};

struct Unmap {
  int64_t bytes;
  void operator()(void* memory) const { munmap(memory, static_cast<size_t>(bytes)); }
};

struct Distribution {
  float mean;
  float sigma;
  auto operator<=>(const Distribution&) const = default;
};

Distribution DistributionOf(const WantedTensor& tensor, const DecoderSpec& spec) {
  // Rates at which states decay, by their logarithms: some forget within a few tokens, and some
  // remember hundreds.
  if (tensor.name.ends_with(".A_log")) return {-3.0f, 1.5f};
  const bool bias = tensor.name.ends_with(".bias");
  if (tensor.shape.size() == 1) return {bias ? 0.0f : 1.0f, 0.1f};
  // A row of the embedding is an input, not a sum of inputs.
  const bool embedding = tensor.name == spec.names.embedding + ".weight" && !spec.tied_head;
  return {0.0f, embedding ? 1.0f : 1.0f / std::sqrt(static_cast<float>(tensor.shape.back()))};
}

class Synthetic : public WeightSource {
 public:
  Synthetic(const DecoderSpec& spec, DType dtype) {
    const std::vector<WantedTensor> wanted = WantedTensors(spec);
    std::map<Distribution, int64_t> block_bytes;
    for (const WantedTensor& tensor : wanted) {
      int64_t& most = block_bytes[DistributionOf(tensor, spec)];
      most = std::max(most, Bytes(tensor, dtype));
    }
    for (const auto& [distribution, bytes] : block_bytes) {
      blocks_.try_emplace(distribution, dtype, distribution.mean, distribution.sigma,
                          std::clamp<int64_t>(bytes / kPage + 1, 1, kMaxBlockPages));
    }
    for (const WantedTensor& tensor : wanted) Add(tensor, spec, dtype);
  }

  const TensorInfo* Find(std::string_view name) const override {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? nullptr : &found->second;
  }
  const std::vector<std::string>& Names() const override { return names_; }
  const std::map<std::string, std::string, std::less<>>& Metadata() const override {
    return metadata_;
  }
  void Release(const TensorInfo&) const override {}  // there is nothing to give back

 private:
  static int64_t Bytes(const WantedTensor& tensor, DType dtype) {
    int64_t bytes = static_cast<int64_t>(SizeOf(dtype));
    for (const int64_t dim : tensor.shape) bytes *= dim;
    return bytes;
  }

  void Add(const WantedTensor& tensor, const DecoderSpec& spec, DType dtype) {
    const Block& block = blocks_.at(DistributionOf(tensor, spec));
    const int64_t bytes = Bytes(tensor, dtype);
    const int64_t whole = RoundUpToPage(bytes);
    void* memory = mmap(nullptr, static_cast<size_t>(whole), PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
      Throw(ErrorKind::kMemory, "cannot map the {} bytes of {}", bytes, tensor.name);
    }
    mapped_.emplace_back(memory, Unmap{whole});
    const uint64_t hash = Fnv1a(std::as_bytes(std::span(tensor.name)));
    const auto first = static_cast<int64_t>(hash % static_cast<uint64_t>(block.pages()));
    block.Map(first, whole, static_cast<std::byte*>(memory));
    names_.push_back(tensor.name);
    tensors_[tensor.name] = {
        .name = tensor.name,
        .dtype = dtype,
        .dtype_name = std::string(Name(dtype)),
        .shape = tensor.shape,
        .bytes = {static_cast<const std::byte*>(memory), static_cast<size_t>(bytes)},
        .file = "synthetic weights"};
  }

  std::map<Distribution, Block> blocks_;
  std::vector<std::unique_ptr<void, Unmap>> mapped_;
  std::map<std::string, TensorInfo, std::less<>> tensors_;
  std::vector<std::string> names_;
  std::map<std::string, std::string, std::less<>> metadata_;
};

}  // namespace

std::unique_ptr<WeightSource> SyntheticWeights(const DecoderSpec& spec, DType dtype) {
  return std::make_unique<Synthetic>(spec, dtype);
}

}  // namespace godwit
