// Checks of the text of an answer: where it ends, its characters, and its form.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/json.h"
#include "base/quote.h"
#include "base/utf8.h"
#include "lab/probe/checks.h"

namespace godwit::lab::probe {
namespace {

// Stop strings that begin within one piece of a stream and end within another.
std::vector<std::string> StopsAcross(const std::vector<std::string>& pieces) {
  constexpr size_t kMost = 6, kLongest = 24;
  std::string text;
  std::vector<size_t> ends;
  for (const std::string& piece : pieces) {
    text += piece;
    ends.push_back(text.size());
  }
  std::set<std::string> stops;
  for (size_t i = 0; i + 1 < pieces.size() && stops.size() < kMost; ++i) {
    size_t begin = ends[i] - (pieces[i].size() + 1) / 2;
    size_t end = std::min(begin + kLongest, ends[i] + (pieces[i + 1].size() + 1) / 2);
    while (begin < end && ContinuesCharacter(text[begin])) ++begin;
    while (end < text.size() && ContinuesCharacter(text[end])) ++end;
    const std::string stop = text.substr(begin, end - begin);
    // A server may strip blanks from an answer, so a stop string holds more than blanks.
    if (begin > 0 && stop.find_first_not_of(" \n\t") != stop.npos && stop.size() > 1) {
      stops.insert(stop);
    }
  }
  return {stops.begin(), stops.end()};
}

int64_t CharactersBeyondAscii(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0xc0; });
}

struct SchemaCase {
  std::string_view name;
  const char* schema;
  bool (*holds)(const Json& value);
};

bool AllOf(std::string_view text, bool (*is)(char)) {
  return std::all_of(text.begin(), text.end(), is);
}
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsSmallLetter(char c) { return c >= 'a' && c <= 'z'; }
bool IsAToC(char c) { return c >= 'a' && c <= 'c'; }

const SchemaCase kSchemas[] = {
    {"pattern",
     R"({"type": "object", "required": ["code"], "additionalProperties": false, "properties":
         {"code": {"type": "string", "pattern": "^[a-c]{2,4}-[0-9]{3}$"}}})",
     [](const Json& value) {
       const auto code = value.at("code").get<std::string>();
       const size_t dash = std::min(code.find('-'), code.size());
       const std::string_view letters = std::string_view(code).substr(0, dash),
                              digits = std::string_view(code).substr(dash);
       return letters.size() >= 2 && letters.size() <= 4 && AllOf(letters, IsAToC) &&
              digits.size() == 4 && AllOf(digits.substr(1), IsDigit);
     }},
    {"minLength",
     R"({"type": "object", "required": ["name"], "additionalProperties": false, "properties":
         {"name": {"type": "string", "minLength": 3, "maxLength": 8, "pattern": "^[a-z]*$"}}})",
     [](const Json& value) {
       const auto name = value.at("name").get<std::string>();
       return name.size() >= 3 && name.size() <= 8 && AllOf(name, IsSmallLetter);
     }},
    {"integers",
     R"({"type": "object", "required": ["legs", "tail"], "additionalProperties": false,
         "properties": {"legs": {"type": "integer", "minimum": 2, "maximum": 8},
                        "tail": {"type": "boolean"}}})",
     [](const Json& value) {
       const auto legs = value.at("legs").get<int64_t>();
       return value.size() == 2 && value.at("legs").is_number_integer() && legs >= 2 && legs <= 8 &&
              value.at("tail").is_boolean();
     }},
    {"nested",
     R"({"type": "object", "required": ["list"], "additionalProperties": false, "properties":
         {"list": {"type": "array", "minItems": 1, "maxItems": 2, "items":
         {"type": "object", "required": ["kind"], "additionalProperties": false, "properties":
         {"kind": {"anyOf": [{"type": "null"}, {"enum": ["cat", "dog"]}]}}}}}})",
     [](const Json& value) {
       const Json& list = value.at("list");
       return list.is_array() && (list.size() == 1 || list.size() == 2) &&
              std::all_of(list.begin(), list.end(), [](const Json& item) {
                const Json& kind = item.at("kind");
                return item.size() == 1 && (kind.is_null() || kind == "cat" || kind == "dog");
              });
     }},
};

bool Holds(const SchemaCase& one, std::string_view text) {
  try {
    return one.holds(ParseJson(text, "an answer"));
  } catch (const Error&) {
  } catch (const Json::exception&) {
  }
  return false;
}

}  // namespace

std::string CheckStop(const Target& target) {
  Client client(target);
  const Answer whole = client.MustAnswer(kStory, Greedily(40), /*stream=*/true);
  const auto stops = StopsAcross(whole.pieces);
  if (stops.empty()) throw Skip("the answer is too short for a stop string within it");
  for (const std::string& stop : stops) {
    Json fields = Greedily(40);
    fields["stop"] = Json::array();
    fields["stop"].push_back(stop);
    const std::string expected = whole.text().substr(0, whole.text().find(stop));
    for (const bool stream : {false, true}) {
      const Answer cut = client.MustAnswer(kStory, fields, stream);
      const std::string how =
          fmt::format("with the stop string {}{} it is", Quote(stop), stream ? ", streamed," : "");
      MustBeSame("the text before it is", expected, how, cut.text());
      if (cut.choices[0].finish_reason != "stop") {
        throw Fault(
            fmt::format("{} ended for {}, not stop", how, Quote(cut.choices[0].finish_reason)));
      }
    }
  }
  return fmt::format("{} stop strings across tokens, whole and streamed", stops.size());
}

std::string CheckUtf8(const Target& target) {
  constexpr const char* kTexts[] = {"😀😃😄😁😆😅😂🤣👩‍👩‍👧🇯🇵",
                                    "東京は日本の首都です。", "नमस्ते दुनिया, ", "Ünïcödé ěščřž "};
  // Bytes may be a token each, and the answer needs space too.
  const auto bytes =
      static_cast<size_t>(std::clamp<int64_t>(target.context_tokens.value_or(1200) / 2, 64, 2000));
  Client client(target);
  size_t pieces = 0;
  int64_t characters = 0;
  for (const std::string_view text : kTexts) {
    std::string prompt;
    while (prompt.size() + text.size() < bytes) prompt += text;
    const Answer whole = client.MustAnswer(prompt, Greedily(48));
    const Answer streamed = client.MustAnswer(prompt, Greedily(48), /*stream=*/true);
    MustBeSame("whole", whole.text(), "streamed", streamed.text());
    pieces += streamed.pieces.size();
    characters += CharactersBeyondAscii(whole.text());
  }
  if (characters == 0) throw Skip("the model wrote ASCII only, so no character could be cut");
  return fmt::format("{} pieces with {} characters beyond ASCII", pieces, characters);
}

std::string CheckSchema(const Target& target) {
  Client client(target);
  int held = 0, unfinished = 0;
  std::string refused;
  for (const SchemaCase& one : kSchemas) {
    Json fields = Greedily(120);
    Json& format = fields["response_format"];
    format["type"] = "json_schema";
    format["json_schema"]["name"] = one.name;
    format["json_schema"]["strict"] = true;
    format["json_schema"]["schema"] = ParseJson(one.schema, one.name);
    const Answer answer = client.Ask("Describe an animal as JSON, as the schema has it.", fields);
    if (answer.status >= 400 && answer.status < 500) {
      refused = fmt::format("{}: {}", one.name, RefusalOf(answer));
      continue;
    }
    if (answer.status != 200 || answer.choices.empty()) {
      throw Fault(fmt::format("{}: {}", one.name, RefusalOf(answer)));
    }
    if (answer.choices[0].finish_reason == "length") {
      ++unfinished;
    } else if (Holds(one, answer.choices[0].content)) {
      ++held;
    } else {
      throw Fault(fmt::format("{}: {} is not of the schema", one.name,
                              Quote(answer.choices[0].content, 80)));
    }
  }
  if (held == 0 && !refused.empty()) throw Skip("schemas are refused, " + refused);
  if (held == 0) throw Skip("the model ends no answer");
  return fmt::format("{} answers are of their schemas{}{}", held,
                     refused.empty() ? "" : "; refused, " + refused,
                     unfinished == 0 ? "" : fmt::format("; {} did not end", unfinished));
}

}  // namespace godwit::lab::probe
