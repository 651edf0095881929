#include "text/sentencepiece_model.h"

#include <bit>
#include <cstring>
#include <string>

#include "base/error.h"

namespace godwit {
namespace {

// The fields of one message, in the order of the file. Field numbers and types are those of
// sentencepiece_model.proto.
class Fields {
 public:
  // bytes: the message; begin: its offset in the file, for messages.
  Fields(std::string_view bytes, size_t begin, std::string_view what)
      : rest_(bytes), begin_(begin), what_(what), size_(bytes.size()) {}

  // Moves to the next field, which the calls below read. False: there is none.
  bool Next() {
    if (rest_.empty()) return false;
    const uint64_t tag = Varint();
    number_ = tag >> 3;
    type_ = static_cast<Type>(tag & 7);
    value_ = 0;
    text_ = {};
    switch (type_) {
      case Type::kVarint:
        value_ = Varint();
        return true;
      case Type::kFixed64:
        text_ = Take(8);
        return true;
      case Type::kFixed32:
        text_ = Take(4);
        return true;
      case Type::kBytes:
        text_ = Take(Varint());
        return true;
    }
    Bad("a field of a known type");
  }

  uint64_t number() const { return number_; }

  uint64_t AsNumber() const {
    Expect(Type::kVarint, "a number");
    return value_;
  }
  // An int32 field. Negative ones have the sign in all 64 bits.
  int64_t AsSigned() const { return static_cast<int64_t>(AsNumber()); }

  float AsFloat() const {
    Expect(Type::kFixed32, "a float");
    uint32_t bits = 0;
    for (int i = 3; i >= 0; --i) bits = bits << 8 | static_cast<unsigned char>(text_[i]);
    return std::bit_cast<float>(bits);
  }
  std::string_view AsBytes() const {
    Expect(Type::kBytes, "text");
    return text_;
  }
  Fields AsMessage() const {
    Expect(Type::kBytes, "a message");
    return {text_, Offset() - text_.size(), what_};
  }

  // The offset of the next field in the file.
  size_t Offset() const { return begin_ + size_ - rest_.size(); }

  [[noreturn]] void Bad(std::string_view expected) const {
    Throw(ErrorKind::kFormat, "{}: not a SentencePiece model: expected {} before offset {}", what_,
          expected, Offset());
  }

 private:
  enum class Type { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

  void Expect(Type type, std::string_view expected) const {
    if (type_ != type) Bad(expected);
  }

  uint64_t Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(Take(1).front());
      value |= uint64_t{byte & 0x7fU} << shift;
      if ((byte & 0x80) == 0) return value;
    }
    Bad("a number of at most ten bytes");
  }

  std::string_view Take(uint64_t bytes) {
    if (bytes > rest_.size()) Bad("more bytes");
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }

  std::string_view rest_;
  size_t begin_;
  std::string_view what_;
  size_t size_;
  uint64_t number_ = 0;
  Type type_ = Type::kVarint;
  uint64_t value_ = 0;
  std::string_view text_;
};

VocabularyToken ReadPiece(Fields fields) {
  VocabularyToken token;
  while (fields.Next()) {
    switch (fields.number()) {
      case 1:
        token.text = fields.AsBytes();
        break;
      case 2:
        token.score = fields.AsFloat();
        break;
      case 3: {
        const uint64_t kind = fields.AsNumber();
        if (kind < 1 || kind > 6) fields.Bad("a kind of piece from 1 to 6");
        token.kind = static_cast<TokenKind>(kind);
        break;
      }
      default:
        break;
    }
  }
  return token;
}

// Ids have SentencePiece's defaults if they are not given; an id below 0 means "none".
struct TrainerSpec {
  uint64_t model_type = 1;
  bool treat_whitespace_as_suffix = false;
  int64_t unk_id = 0, bos_id = 1, eos_id = 2;
};

TrainerSpec ReadTrainerSpec(Fields fields) {
  TrainerSpec spec;
  while (fields.Next()) {
    switch (fields.number()) {
      case 3:
        spec.model_type = fields.AsNumber();
        break;
      case 24:
        spec.treat_whitespace_as_suffix = fields.AsNumber() != 0;
        break;
      case 40:
        spec.unk_id = fields.AsSigned();
        break;
      case 41:
        spec.bos_id = fields.AsSigned();
        break;
      case 42:
        spec.eos_id = fields.AsSigned();
        break;
      default:
        break;
    }
  }
  return spec;
}

struct NormalizerSpec {
  std::string charsmap;
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;
};

NormalizerSpec ReadNormalizerSpec(Fields fields) {
  NormalizerSpec spec;
  while (fields.Next()) {
    switch (fields.number()) {
      case 2:
        spec.charsmap = fields.AsBytes();
        break;
      case 3:
        spec.add_dummy_prefix = fields.AsNumber() != 0;
        break;
      case 4:
        spec.remove_extra_whitespaces = fields.AsNumber() != 0;
        break;
      case 5:
        spec.escape_whitespaces = fields.AsNumber() != 0;
        break;
      default:
        break;
    }
  }
  return spec;
}

}  // namespace

Vocabulary ParseSentencePieceModel(std::string_view bytes, std::string_view what) {
  Vocabulary vocabulary;
  TrainerSpec trainer;
  NormalizerSpec normalizer;
  Fields fields(bytes, 0, what);
  while (fields.Next()) {
    switch (fields.number()) {
      case 1:
        vocabulary.tokens.push_back(ReadPiece(fields.AsMessage()));
        if (vocabulary.tokens.size() > kMaxTokens) fields.Bad("fewer pieces");
        break;
      case 2:
        trainer = ReadTrainerSpec(fields.AsMessage());
        break;
      case 3:
        normalizer = ReadNormalizerSpec(fields.AsMessage());
        break;
      default:
        break;
    }
  }
  if (vocabulary.tokens.empty()) fields.Bad("pieces");
  const auto refuse = [&](std::string_view found) {
    Throw(ErrorKind::kUnsupported,
          "{}: expected a BPE or unigram model of SentencePiece that writes a space in front of a "
          "word, found {}",
          what, found);
  };
  switch (trainer.model_type) {
    case 1:
      vocabulary.kind = VocabularyKind::kUnigram;
      break;
    case 2:
      vocabulary.kind = VocabularyKind::kSentencePieceBpe;
      break;
    default:
      refuse(fmt::format("model type {}", trainer.model_type));
  }
  if (trainer.treat_whitespace_as_suffix) refuse("treat_whitespace_as_suffix");
  if (!normalizer.escape_whitespaces) refuse("escape_whitespaces = false");
  const auto id = [&](int64_t value) -> std::optional<int32_t> {
    if (value < 0 || value >= std::ssize(vocabulary.tokens)) return std::nullopt;
    return static_cast<int32_t>(value);
  };
  vocabulary.unk_id = id(trainer.unk_id);
  vocabulary.bos_id = id(trainer.bos_id);
  vocabulary.eos_id = id(trainer.eos_id);
  vocabulary.space_prefix =
      normalizer.add_dummy_prefix ? SpacePrefix::kStretch : SpacePrefix::kNone;
  vocabulary.remove_extra_whitespaces = normalizer.remove_extra_whitespaces;
  vocabulary.charsmap = std::move(normalizer.charsmap);
  return vocabulary;
}

}  // namespace godwit
