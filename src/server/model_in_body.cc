#include "server/model_in_body.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

namespace godwit::server {
namespace {

// A reader of JSON events. `false` ends the reading.
class ModelReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit ModelReader(const CancelToken& gone) : gone_(gone) {}

  std::string Take() { return std::move(model_); }

  bool null() override { return Value(); }
  bool boolean(bool) override { return Value(); }
  bool number_integer(number_integer_t) override { return Value(); }
  bool number_unsigned(number_unsigned_t) override { return Value(); }
  bool number_float(number_float_t, const string_t&) override { return Value(); }
  bool string(string_t& text) override {
    if (is_model_) model_ = std::move(text);
    return Value();
  }
  bool binary(binary_t&) override { return Value(); }
  bool start_object(size_t) override { return Begin(); }
  bool key(string_t& name) override {
    is_model_ = depth_ == 1 && name == "model";
    return true;
  }
  bool end_object() override { return End(); }
  bool start_array(size_t) override { return Begin(); }
  bool end_array() override { return End(); }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  bool Value() const {
    gone_.ThrowIfCancelled();
    return !is_model_;
  }
  bool Begin() {
    ++depth_;
    return Value();
  }
  bool End() {
    --depth_;
    return true;
  }

  const CancelToken& gone_;
  int64_t depth_ = 0;
  bool is_model_ = false;
  std::string model_;
};

}  // namespace

std::string ModelInBody(std::string_view body, const CancelToken& gone) {
  ModelReader reader(gone);
  nlohmann::json::sax_parse(body, &reader);
  return reader.Take();
}

}  // namespace godwit::server
