#include "weights/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/json_found.h"
#include "base/problem_list.h"
#include "base/quote.h"
#include "weights/safetensors_entry.h"

namespace godwit {
namespace {

using nlohmann::json;

constexpr size_t kLengthBytes = 8;
constexpr uint64_t kMaxHeaderBytes = 100'000'000;
// A matrix takes 8 values, so half a million tensors fit, a few times those of the largest known
// model.
constexpr size_t kMaxHeaderValues = 4'000'000;

std::string_view AsText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string_view HeaderText(std::span<const std::byte> file, const std::string& file_name) {
  if (AsText(file).starts_with("version https://git-lfs")) {
    Throw(ErrorKind::kFormat,
          "{}: expected safetensors, found a Git LFS pointer: the weights were not downloaded "
          "(git lfs pull fetches them)",
          file_name);
  }
  if (file.size() < kLengthBytes) {
    Throw(ErrorKind::kFormat, "{}: expected at least {} bytes of safetensors, found {}", file_name,
          kLengthBytes, file.size());
  }
  uint64_t header_bytes = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    header_bytes |= std::to_integer<uint64_t>(file[i]) << (8 * i);
  }
  if (header_bytes > kMaxHeaderBytes) {
    Throw(ErrorKind::kFormat,
          "{}: header length: expected at most {} bytes, found {} (is this a safetensors file?)",
          file_name, kMaxHeaderBytes, header_bytes);
  }
  if (header_bytes > file.size() - kLengthBytes) {
    Throw(ErrorKind::kFormat,
          "{}: header length: expected at most the {} bytes that follow it, found {}: the file is "
          "cut short, or not safetensors",
          file_name, file.size() - kLengthBytes, header_bytes);
  }
  const std::string_view text = AsText(file).substr(kLengthBytes, header_bytes);
  if (!text.starts_with('{')) {
    Throw(ErrorKind::kFormat, "{}: header: expected a JSON object from byte {} on, found {}",
          file_name, kLengthBytes, Quote(text.substr(0, 16)));
  }
  return text;
}

void ReadMetadata(const json& value, SafetensorsContents& contents, ProblemList& problems) {
  if (value.is_null()) return;  // the reference implementation takes null for absent
  if (!value.is_object()) {
    problems.Add("__metadata__: expected an object, found {}", Found(value));
    return;
  }
  for (const auto& [key, text] : value.items()) {
    if (text.is_string()) {
      contents.metadata.emplace(key, text.get<std::string>());
    } else {
      problems.Add("__metadata__: {}: expected text, found {}", Quote(key), Found(text));
    }
  }
}

// Entries in ascending order must follow each other from 0 to the end of the data.
void CheckLayout(const std::vector<SafetensorsEntry>& entries, uint64_t data_bytes,
                 ProblemList& problems) {
  uint64_t covered = 0;
  const SafetensorsEntry* last = nullptr;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.begin != covered) {
      problems.Add("tensor {}: data_offsets: expected to begin at {} {}, found {}: {}",
                   Quote(entry.info.name), covered,
                   last ? "where " + Quote(last->info.name) + " ends" : "as the first tensor",
                   entry.begin, entry.begin < covered ? "they overlap" : "a hole");
    }
    if (entry.end >= covered) {
      covered = entry.end;
      last = &entry;
    }
  }
  if (covered != data_bytes) {
    problems.Add("data: expected the {} bytes of the tensors, found {}", covered, data_bytes);
  }
}

}  // namespace

SafetensorsContents ParseSafetensors(std::span<const std::byte> file,
                                     const std::string& file_name) {
  const std::string_view text = HeaderText(file, file_name);
  const std::span<const std::byte> data = file.subspan(kLengthBytes + text.size());
  const json header = ParseJson(text, file_name + ": header",
                                {.reject_duplicate_keys = true, .max_values = kMaxHeaderValues});

  SafetensorsContents contents;
  ProblemList problems;
  std::vector<SafetensorsEntry> entries;
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__") {
      ReadMetadata(value, contents, problems);
    } else if (auto entry = ReadSafetensorsEntry(name, value, data.size(), problems)) {
      entries.push_back(*std::move(entry));
    }
  }
  std::sort(entries.begin(), entries.end(),
            [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
              return std::tie(a.begin, a.end, a.info.name) < std::tie(b.begin, b.end, b.info.name);
            });
  // An unreadable entry would show up again as a hole.
  if (problems.empty()) CheckLayout(entries, data.size(), problems);
  problems.ThrowIfAny(ErrorKind::kFormat, file_name);

  contents.tensors.reserve(entries.size());
  for (SafetensorsEntry& entry : entries) {
    entry.info.bytes = data.subspan(entry.begin, entry.end - entry.begin);
    entry.info.file = file_name;
    entry.info.offset_bytes = kLengthBytes + text.size() + entry.begin;
    contents.tensors.push_back(std::move(entry.info));
  }
  return contents;
}

}  // namespace godwit
