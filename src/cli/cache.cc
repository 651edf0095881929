// godwit cache: the snapshots that run, chat and batch save with --cache.

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/machine_memory.h"
#include "base/nearest.h"
#include "base/quote.h"
#include "cli/commands.h"
#include "cli/options/cache_options.h"
#include "console/exit_code.h"
#include "console/terminal/format.h"
#include "console/terminal/json_output.h"
#include "console/terminal/output.h"
#include "console/terminal/table.h"
#include "kv/snapshot_folder.h"

namespace godwit::cli {
namespace {

using Entry = SnapshotFolder::Entry;
using Words = std::span<const std::string>;

constexpr size_t kIdDigits = 12;

struct CacheRequest {
  SnapshotFolder& folder;
  Words words;  // behind the action
  bool json;
};

// The entry whose name begins with the word, or that is kept by this name.
const Entry& FindEntry(const std::vector<Entry>& entries, const std::string& word) {
  std::vector<const Entry*> found;
  for (const Entry& entry : entries) {
    if (std::ranges::find(entry.pins, word) != entry.pins.end()) return entry;
    if (entry.name.starts_with(word)) found.push_back(&entry);
  }
  if (found.size() == 1 && !word.empty()) return *found.front();
  Throw(ErrorKind::kInput, "{} {} {}; godwit cache list shows what is there",
        found.empty() ? "no saved text is called" : "several saved texts begin with", Quote(word),
        found.empty() ? "so" : "");
}

double AgeSeconds(const Entry& entry) {
  const auto age = std::filesystem::file_time_type::clock::now() - entry.used;
  return std::max(0.0, std::chrono::duration<double>(age).count());
}

std::string Ago(double seconds) {
  if (seconds < 120) return fmt::format("{:.0f} s", seconds);
  if (seconds < 2 * 3600) return fmt::format("{:.0f} min", seconds / 60);
  if (seconds < 48 * 3600) return fmt::format("{:.0f} h", seconds / 3600);
  return fmt::format("{:.0f} days", seconds / 86400);
}

nlohmann::ordered_json JsonOf(const Entry& entry) {
  nlohmann::ordered_json facts;
  for (const auto& [name, value] : entry.info->facts) facts[name] = value;
  return {{"id", entry.name},
          {"parent", entry.info->parent},
          {"begin", entry.info->begin},
          {"tokens", entry.info->end()},
          {"bytes", entry.all_bytes()},
          {"model", entry.info->label},
          {"pins", entry.pins},
          {"usable", entry.reachable},
          {"used_seconds_ago", AgeSeconds(entry)},
          {"facts", std::move(facts)}};
}

// Bytes of a text and of all snapshots that it continues.
int64_t BytesOfText(const Entry& text, const std::map<std::string_view, const Entry*>& by_name) {
  int64_t bytes = 0;
  std::set<std::string_view> seen;  // a writer of these files may make a ring of them
  for (const Entry* entry = &text; entry != nullptr && seen.insert(entry->name).second;) {
    bytes += entry->all_bytes();
    const auto parent = by_name.find(entry->info->parent);
    entry = parent == by_name.end() ? nullptr : parent->second;
  }
  return bytes;
}

int List(const CacheRequest& request) {
  const auto entries = request.folder.Entries();
  int64_t bytes = 0, files = 0;
  for (const Entry& entry : entries) {
    bytes += entry.all_bytes();
    files += 1 + std::ssize(entry.indexes);
  }
  if (request.json) {
    nlohmann::ordered_json texts = nlohmann::ordered_json::array();
    for (const Entry& entry : entries) texts.push_back(JsonOf(entry));
    console::WriteJson(
        {{"folder", request.folder.path().string()}, {"bytes", bytes}, {"texts", texts}});
    return console::kExitOk;
  }
  console::Table table(
      {{"<id"}, {"tokens"}, {"size"}, {"used"}, {"<model"}, {"<kv"}, {"<read by"}, {"<pinned as"}});
  int64_t texts = 0, listed_bytes = 0;
  std::set<std::string_view> led_on;  // snapshots that others continue
  std::map<std::string_view, const Entry*> by_name;
  for (const Entry& entry : entries) {
    led_on.insert(entry.info->parent);
    by_name.emplace(entry.name, &entry);
  }
  for (const Entry& entry : entries) {
    if (led_on.contains(entry.name) && entry.pins.empty()) continue;
    ++texts;
    const int64_t text_bytes = BytesOfText(entry, by_name);
    listed_bytes += text_bytes;
    table.Add(entry.name.substr(0, kIdDigits), entry.info->end(), FormatBytes(text_bytes),
              Ago(AgeSeconds(entry)) + " ago", QuoteUnlessPlain(entry.info->label),
              FactNamed(entry.info->facts, "kv type"), FactNamed(entry.info->facts, "read by"),
              fmt::format("{}", fmt::join(entry.pins, ", ")));
  }
  if (texts > 0) console::WriteOutput(table.Take());
  // Each listed size is that of a whole text.
  const std::string shared = listed_bytes > bytes ? fmt::format(", because texts share {}",
                                                                FormatBytes(listed_bytes - bytes))
                                                  : "";
  console::WriteOutput(fmt::format("{}{} in {}, {} in {}{}\n", texts > 0 ? "\n" : "",
                                   console::Plural(texts, "text"), console::Plural(files, "file"),
                                   FormatBytes(bytes),
                                   QuoteUnlessPlain(request.folder.path().native()), shared));
  return console::kExitOk;
}

int Verify(const CacheRequest& request) {
  const auto problems = request.folder.Verify();
  for (const auto& problem : problems) console::WriteOutput(problem.message + "\n");
  const auto count = std::ssize(request.folder.Entries());
  if (problems.empty())
    console::WriteOutput(fmt::format("{}: no damage found\n", console::Plural(count, "file")));
  return problems.empty() ? console::kExitOk : console::ExitCode(ErrorKind::kFormat);
}

int Remove(const CacheRequest& request) {
  if (request.words.empty()) {
    Throw(ErrorKind::kInput, "rm: expected ids from godwit cache list, or all, found nothing");
  }
  const auto entries = request.folder.Entries();
  std::vector<std::string> names;
  for (const std::string& word : request.words) {
    if (word != "all") {
      names.push_back(FindEntry(entries, word).name);
      continue;
    }
    for (const Entry& entry : entries) names.push_back(entry.name);
  }
  int64_t removed = 0;
  for (const std::string& name : names) removed += request.folder.Remove(name);
  console::WriteNotice(fmt::format("godwit: removed {}\n", console::Plural(removed, "file")));
  return console::kExitOk;
}

int Pin(const CacheRequest& request) {
  if (request.words.size() != 2)
    Throw(ErrorKind::kInput, "pin: expected the id of a text and a name for it");
  request.folder.Pin(request.words[1], FindEntry(request.folder.Entries(), request.words[0]).name);
  return console::kExitOk;
}

int Unpin(const CacheRequest& request) {
  if (request.words.size() != 1)
    Throw(ErrorKind::kInput, "unpin: expected the name of a pinned text, found nothing");
  if (!request.folder.Unpin(request.words[0])) {
    Throw(ErrorKind::kInput, "no text is pinned as {}", Quote(request.words[0]));
  }
  return console::kExitOk;
}

struct Action {
  std::string_view name;
  int (*run)(const CacheRequest&);
  bool takes_words = true;
  bool takes_json = false;
};
constexpr Action kActions[] = {
    {.name = "list", .run = List, .takes_words = false, .takes_json = true},
    {.name = "verify", .run = Verify, .takes_words = false},
    {"rm", Remove},
    {"pin", Pin},
    {"unpin", Unpin}};

int Do(const Action& action, const CacheRequest& request) {
  if (!action.takes_words && !request.words.empty()) {
    Throw(ErrorKind::kInput, "{}: expected no id, because it covers all texts, found {}",
          action.name, Quote(request.words.front()));
  }
  if (!action.takes_json && request.json) {
    Throw(ErrorKind::kInput, "{}: --json works with list only", action.name);
  }
  return action.run(request);
}

}  // namespace

int Cache(std::span<const std::string> arguments) {
  size_t count = 0;
  while (count < arguments.size() && !arguments[count].starts_with('-')) ++count;
  const Words words = arguments.first(count);
  CacheOptions options;
  bool json = false;
  console::CommandLine line("cache", "list | verify | rm ID... | pin ID NAME | unpin NAME [flags]",
                            "Manages the texts that --cache saved. list: prints them; the first "
                            "digits of an id name a text. verify: reads all files and reports "
                            "damage. rm: removes texts and their continuations, or all. pin: keeps "
                            "a text under a name, so that it is never removed to make space.");
  AddCacheFolderFlag(line, options);
  line.Add({.names = "--json", .value = "", .help = "with list: print one JSON object"}, json);
  line.Parse(arguments.subspan(count));
  const std::string name = words.empty() ? "list" : words.front();
  for (const Action& action : kActions) {
    if (action.name != name) continue;
    if (options.folder.empty()) options.folder = UserCacheFolder();
    if (!IsListed(options.folder)) {
      Throw(ErrorKind::kIo, "{}: no such folder, so nothing is saved there",
            QuoteUnlessPlain(options.folder));
    }
    SnapshotFolder folder(options.folder, INT64_MAX);
    return Do(action, {folder, words.subspan(words.empty() ? 0 : 1), json});
  }
  std::vector<std::string> names;
  for (const Action& action : kActions) names.emplace_back(action.name);
  const auto nearest = Nearest(name, names);
  Throw(ErrorKind::kInput, "{}: {}", Quote(name),
        nearest ? fmt::format("did you mean {}?", *nearest)
                : fmt::format("expected {}", fmt::join(names, ", ")));
}

}  // namespace godwit::cli
