#include "eval/suites/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/error.h"

namespace godwit::eval {
namespace {

// clang-format off
constexpr const char* kAdjectives[] = {
    "able", "acid", "agile", "alert", "amber", "ample", "ancient", "angry", "arctic", "arid",
    "ashen", "atomic", "autumn", "awake", "azure", "bad", "balmy", "bare", "basic", "bent",
    "best", "big", "bitter", "black", "bland", "blank", "blind", "blue", "blunt", "bold",
    "bored", "bouncy", "brash", "brave", "brief", "bright", "brisk", "broad", "broken",
    "bronze", "brown", "busy", "calm", "careful", "cheap", "cheerful", "chief", "chilly",
    "civic", "classic", "clean", "clear", "clever", "cloudy", "coarse", "cold", "common",
    "complex", "cool", "copper", "coral", "cosmic", "cosy", "crazy", "crimson", "crisp",
    "cruel", "curious", "curly", "daily", "damp", "dapper", "daring", "dark", "dear", "decent",
    "deep", "dense", "dim", "direct", "distant", "dizzy", "double", "drab", "drowsy", "dry",
    "dual", "dull", "dusty", "eager", "early", "earnest", "easy", "elder", "elegant", "empty",
    "endless", "equal", "even", "exact", "exotic", "fading", "faint", "fair", "famous", "fancy",
    "fast", "fatal", "fierce", "fiery", "final", "fine", "firm", "fixed", "flaky", "flat",
    "fluffy", "foggy", "fond", "formal", "frail", "free", "fresh", "frosty", "frozen", "full",
    "funny", "fuzzy", "gentle", "giant", "glad", "gloomy", "golden", "good", "grand", "grave",
    "great", "green", "grey", "grim", "gritty", "groovy", "grumpy", "happy", "hard", "harsh",
    "hasty", "hazy", "heavy", "hidden", "high", "hollow", "honest", "hot", "huge", "humble",
    "humid", "hungry", "icy", "ideal", "idle", "inner", "iron", "ivory", "jolly", "jumpy",
    "just", "keen", "kind", "large", "last", "late", "lazy", "lean", "light", "little", "live",
    "local", "lone", "long", "loose", "loud", "loyal", "lucid", "lucky", "lunar", "mad",
    "magic", "main", "major", "massive", "mellow", "merry", "mighty", "mild", "minor", "misty",
    "modern", "modest", "moist", "moral", "muddy", "mute", "narrow", "neat", "new", "nimble",
    "noble", "noisy", "normal", "novel", "odd", "old", "olive", "open", "orange", "outer",
    "oval", "pale", "past", "peppy", "perfect", "petite", "plain", "pleasant", "polite", "poor",
    "prime", "proper", "proud", "pure", "purple", "quaint", "quick", "quiet", "rapid", "rare",
    "raw", "ready", "red", "regal", "rich", "rigid", "ripe", "rough", "round", "royal", "ruby",
    "rural", "rustic", "rusty", "sad", "safe", "salty", "sandy", "scarlet", "secret", "serene",
    "sharp", "shiny", "short", "shy", "silent", "silky", "silver", "simple", "sleepy", "slim",
    "slow", "small", "smart", "smooth", "snowy", "sober", "soft", "solar", "solid", "sour",
    "spare", "spicy", "spry", "stable", "stale", "steady", "steep", "stern", "stiff", "still",
    "stormy", "strange", "strict", "strong", "sturdy", "subtle", "sudden", "sunny", "super",
    "sweet", "swift", "tall", "tame", "tart", "teal", "tender", "tense", "tepid", "thick",
    "thin", "tidy", "tight", "tiny", "tired", "total", "tough", "tranquil", "true", "trusty",
    "twin", "ugly", "upper", "urban", "useful", "vague", "vain", "vast", "velvet", "violet",
    "vital", "vivid", "warm", "wary", "wasted", "watery", "wavy", "weak", "wealthy", "weary",
    "wet", "white", "whole", "wide", "wild", "windy", "wise", "witty", "wooden", "woolly",
    "worn", "yellow", "young", "zany"};

constexpr const char* kNouns[] = {
    "acorn", "actor", "anchor", "angle", "ankle", "antler", "anvil", "apple", "apron", "arch",
    "arena", "armor", "arrow", "artist", "atlas", "attic", "avenue", "axle", "badge", "bagel",
    "baker", "balcony", "ball", "banjo", "banner", "barge", "barn", "barrel", "basil", "basin",
    "basket", "beacon", "bead", "beaker", "beam", "bear", "beaver", "bell", "belt", "bench",
    "berry", "bicycle", "bird", "biscuit", "blanket", "blossom", "boat", "bolt", "bonnet",
    "book", "boot", "bottle", "boulder", "bowl", "box", "branch", "bread", "brick", "bridge",
    "broom", "brush", "bucket", "buffalo", "bugle", "bulb", "bunker", "butter", "button",
    "cabin", "cable", "cactus", "camel", "camera", "canal", "candle", "canoe", "canyon",
    "caper", "captain", "caravan", "carbon", "carpet", "carrot", "castle", "cavern", "cedar",
    "cellar", "chain", "chair", "chalk", "chapel", "cherry", "chest", "chimney", "chisel",
    "circle", "citadel", "clam", "clarinet", "cliff", "clock", "cloud", "clover", "coach",
    "coast", "cobra", "coffee", "collar", "comet", "compass", "copper", "coral", "cork",
    "corner", "cottage", "cotton", "cradle", "crane", "crater", "crayon", "creek", "cricket",
    "crown", "crystal", "cup", "curtain", "cushion", "dagger", "daisy", "dancer", "desert",
    "diamond", "doctor", "dolphin", "donkey", "door", "dragon", "drawer", "drum", "duck",
    "eagle", "easel", "elbow", "elephant", "elevator", "ember", "emerald", "engine", "envelope",
    "falcon", "farmer", "feather", "fence", "ferry", "fiddle", "field", "finch", "flag",
    "flame", "flask", "flower", "flute", "folder", "forest", "fork", "fossil", "fountain",
    "fox", "frame", "frog", "galaxy", "garden", "garlic", "gate", "gazelle", "ginger",
    "giraffe", "glacier", "glove", "goat", "goose", "grape", "grass", "gravel", "guitar",
    "hammer", "hammock", "harbor", "harp", "hat", "hawk", "hazel", "helmet", "heron", "hill",
    "hinge", "honey", "horn", "horse", "hotel", "igloo", "inkwell", "insect", "island", "ivory",
    "jacket", "jaguar", "jar", "jasmine", "jelly", "jewel", "jungle", "kayak", "kettle", "key",
    "kitchen", "kite", "kitten", "knight", "ladder", "lagoon", "lamp", "lantern", "laurel",
    "lemon", "leopard", "letter", "library", "lily", "lime", "lion", "lizard", "lobster",
    "locket", "lotus", "magnet", "mango", "mantle", "maple", "marble", "market", "marsh",
    "meadow", "melon", "mirror", "mitten", "monkey", "moon", "mosaic", "moss", "moth",
    "mountain", "mouse", "mug", "museum", "mustard", "napkin", "needle", "nest", "notebook",
    "nutmeg", "oasis", "oat", "ocean", "olive", "onion", "orbit", "orchard", "orchid", "organ",
    "ostrich", "otter", "oven", "owl", "oyster", "paddle", "palace", "panda", "panther",
    "paper", "parade", "parrot", "pasture", "path", "peach", "peacock", "pearl", "pebble",
    "pelican", "pencil", "pepper", "piano", "picnic", "pigeon", "pillow", "pilot", "pine",
    "pirate", "planet", "plank", "plaza", "plum", "pocket", "pond", "poppy", "portrait",
    "potato", "prairie", "prism", "puddle", "puffin", "pumpkin", "puzzle", "pyramid", "quail",
    "quarry", "quartz", "quilt", "rabbit", "raccoon", "radar", "radish", "raft", "rain",
    "ranch", "raven", "reef", "ribbon", "river", "robin", "rocket", "rope", "rose", "saddle",
    "saffron", "salad", "salmon", "sandal", "satchel", "saucer", "scarf", "school", "scooter",
    "sculptor", "seal", "shadow", "shell", "shepherd", "shield", "ship", "shoe", "shovel",
    "silk", "singer", "skate", "sketch", "sled", "snail", "sofa", "soup", "spade", "sparrow",
    "spider", "spoon", "squash", "squirrel", "stable", "stadium", "star", "statue", "stone",
    "stork", "stove", "straw", "street", "summit", "swan", "sword", "table", "tailor",
    "tambourine", "teacup", "temple", "tent", "thimble", "thistle", "throne", "thumb", "tiger",
    "timber", "toast", "tomato", "torch", "tower", "tractor", "train", "tulip", "tunnel",
    "turnip", "turtle", "umbrella", "unicorn", "urchin", "valley", "vase", "velvet", "village",
    "vine", "violin", "volcano", "wagon", "walnut", "walrus", "water", "whale", "wheat",
    "wheel", "whistle", "willow", "window", "winter", "wizard", "wolf", "wombat", "yacht",
    "yarn", "zebra", "zeppelin"};

constexpr const char* kCities[] = {
    "Amsterdam", "Athens", "Bangkok", "Barcelona", "Beijing", "Berlin", "Bogota", "Brussels",
    "Budapest", "Cairo", "Chicago", "Delhi", "Dublin", "Geneva", "Havana", "Helsinki",
    "Istanbul", "Jakarta", "Karachi", "Lagos", "Lima", "Lisbon", "London", "Madrid", "Manila",
    "Melbourne", "Montreal", "Nairobi", "Osaka", "Oslo", "Paris", "Prague", "Rome", "Santiago",
    "Seoul", "Sydney", "Tokyo", "Toronto", "Vienna", "Warsaw"};
// clang-format on

// Some words are both.
const std::vector<std::string>& Words() {
  static const auto words = [] {
    std::vector<std::string> both(std::begin(kAdjectives), std::end(kAdjectives));
    both.insert(both.end(), std::begin(kNouns), std::end(kNouns));
    std::ranges::sort(both);
    both.erase(std::unique(both.begin(), both.end()), both.end());
    return both;
  }();
  return words;
}

}  // namespace

const int64_t kWords = std::ssize(Words());

std::vector<std::string> DrawWords(Draws& draws, int64_t count) {
  std::vector<std::string> words;
  for (const int64_t which : draws.Different(count, kWords)) {
    words.push_back(Words()[which]);
  }
  return words;
}

const int64_t kWordPairs = std::ssize(kAdjectives) * std::ssize(kNouns);

std::string WordPair(int64_t which) {
  return fmt::format("{}-{}", kAdjectives[which % std::ssize(kAdjectives)],
                     kNouns[which / std::ssize(kAdjectives)]);
}

std::string DrawWordPair(Draws& draws) { return WordPair(draws.Below(kWordPairs)); }

std::vector<std::string> DrawWordPairs(Draws& draws, int64_t count) {
  if (count > kWordPairs) {
    Throw(ErrorKind::kInput, "the sample needs {} different names, and there are {}", count,
          kWordPairs);
  }
  std::vector<std::string> names;
  for (const int64_t which : draws.Different(count, kWordPairs)) names.push_back(WordPair(which));
  return names;
}

std::string DrawCity(Draws& draws) { return draws.OneOf(kCities); }

std::string DrawDigits(Draws& draws, int count) {
  std::string digits;
  for (int i = 0; i < count; ++i) digits += static_cast<char>('0' + draws.Below(10));
  return digits;
}

std::string DrawNumber(Draws& draws) {
  return fmt::format("{}", 1'000'000 + draws.Below(9'000'000));
}

std::string DrawUuid(Draws& draws) {
  const auto bits = [&](int count) { return draws.Below(int64_t{1} << count); };
  // Braces evaluate draws in order; the order of a call's arguments is the compiler's choice.
  const int64_t part[] = {bits(32), bits(16), bits(12), 8 + bits(2), bits(12), bits(48)};
  return fmt::format("{:08x}-{:04x}-4{:03x}-{:x}{:03x}-{:012x}", part[0], part[1], part[2], part[3],
                     part[4], part[5]);
}

}  // namespace godwit::eval
