// Values out of JSON text in time that grows with the text alone.
//
// nlohmann's own parser looks through all keys of an ordered object for each new one, so that an
// object of 300,000 keys takes minutes. Here an object's members are sorted once, at its end.
//
// Internal to src/base.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/quote.h"

namespace godwit {

// A message of nlohmann's as a user may read it:
// "[json.exception.parse_error.101] parse error at line 1, ..." begins with an identifier that
// means nothing to him, and can quote a whole token of the input, as long as the input.
std::string JsonProblem(std::string_view message, bool quote_input);

// Builds values from the events of nlohmann's sax_parse. Json: nlohmann::json or
// nlohmann::ordered_json.
template <typename Json>
class JsonBuilder {
 public:
  // what, options: of ParseJson, and they outlive it.
  JsonBuilder(std::string_view what, const JsonOptions& options) : what_(what), options_(options) {}

  ~JsonBuilder() {
    if (options_.work != nullptr) *options_.work = counted_;
  }
  JsonBuilder(const JsonBuilder&) = delete;
  JsonBuilder& operator=(const JsonBuilder&) = delete;

  // Takes the value of a text that was parsed to its end.
  Json Take() { return std::move(root_); }

  bool null() { return Add(Json()); }
  bool boolean(bool value) { return Add(Json(value)); }
  bool number_integer(int64_t value) { return Add(Json(value)); }
  bool number_unsigned(uint64_t value) { return Add(Json(value)); }
  bool number_float(double value, const std::string&) { return Add(Json(value)); }
  bool string(std::string& value) { return Add(Json(std::move(value))); }
  bool binary(typename Json::binary_t&) { return false; }  // JSON has none

  bool start_object(size_t) { return Open(true); }
  bool key(std::string& key) {
    open_.back().key = std::move(key);
    return true;
  }
  bool end_object() {
    Members members = std::move(open_.back().members);
    open_.pop_back();
    return Add(ObjectOf(std::move(members)));
  }
  bool start_array(size_t) { return Open(false); }
  bool end_array() {
    Json list(std::move(open_.back().elements));
    open_.pop_back();
    return Add(std::move(list));
  }

  bool parse_error(size_t, const std::string&, const typename Json::exception& error) {
    Throw(ErrorKind::kFormat, "{}: {}", what_, JsonProblem(error.what(), options_.quote_input));
  }

 private:
  using Members = std::vector<std::pair<std::string, Json>>;
  struct Container {
    bool is_object;
    std::string key = {};  // of the member that comes next
    Members members = {};
    typename Json::array_t elements = {};
  };

  bool Open(bool is_object) {
    open_.push_back({.is_object = is_object});
    return true;
  }

  bool Add(Json value) {
    Count(counted_.values);
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (Container& inner = open_.back(); inner.is_object) {
      inner.members.emplace_back(std::move(inner.key), std::move(value));
    } else {
      inner.elements.push_back(std::move(value));
    }
    return true;
  }

  // Makes an object. The first of equal keys has the place and the last the value.
  Json ObjectOf(Members members) {
    std::vector<bool> is_left_out(members.size());
    std::vector<uint32_t> order(members.size());
    std::iota(order.begin(), order.end(), 0);
    // Sorting by comparisons: keys can be chosen so that a hash table has all in one place.
    std::ranges::sort(order, [&](uint32_t a, uint32_t b) {
      Count(counted_.comparisons);
      const int differ = members[a].first.compare(members[b].first);
      return differ != 0 ? differ < 0 : a < b;
    });
    for (size_t i = 0, first = 0; i < order.size(); ++i) {
      const std::string& key = members[order[i]].first;
      if (i == 0 || key != members[order[first]].first) {
        first = i;
        continue;
      }
      if (options_.reject_duplicate_keys) {
        Throw(ErrorKind::kFormat, "{}: JSON object with two keys {}", what_, Quote(key));
      }
      members[order[first]].second = std::move(members[order[i]].second);
      is_left_out[order[i]] = true;
    }
    Json json = Json::object();
    auto& object = json.template get_ref<typename Json::object_t&>();
    // A vector of pairs with constant keys copies them, and all below them, where it grows.
    if constexpr (requires { object.reserve(members.size()); }) object.reserve(members.size());
    for (size_t i = 0; i < members.size(); ++i) {
      if (!is_left_out[i])
        Append(object, std::move(members[i].first), std::move(members[i].second));
    }
    return json;
  }

  static void Append(nlohmann::json::object_t& object, std::string key, nlohmann::json value) {
    object.emplace(std::move(key), std::move(value));
  }
  // At its end without a look: the object's own emplace looks through all that it has.
  static void Append(nlohmann::ordered_json::object_t& object, std::string key,
                     nlohmann::ordered_json value) {
    object.emplace_back(std::move(key), std::move(value));
  }

  void Count(int64_t& what) {
    ++what;
    constexpr int64_t kLookEvery = 1 << 12;
    if (++steps_ % kLookEvery == 0 && options_.cancel != nullptr) {
      options_.cancel->ThrowIfCancelled();
    }
  }

  const std::string_view what_;
  const JsonOptions& options_;
  std::vector<Container> open_;  // outermost first
  Json root_;
  JsonWork counted_;
  int64_t steps_ = 0;
};

}  // namespace godwit
