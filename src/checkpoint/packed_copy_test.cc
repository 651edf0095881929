#include "checkpoint/packed_copy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <vector>

#include "base/file.h"
#include "base/new_file.h"
#include "base/test_folder.h"
#include "base/test_support.h"
#include "checkpoint/packed_sources.h"
#include "model/packed_file.h"

namespace godwit::packed_copy_test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;

const fs::path kTiny = GODWIT_SOURCE_DIR "/tests/data/tiny-llama";
const fs::path kGolden = GODWIT_SOURCE_DIR "/tests/golden";

class PackedCopyTest : public testing::Test {
 protected:
  PackedCopyTest() { fs::copy(kTiny, model_); }

  // Whether the weights came from a packed copy when the model was loaded with these options.
  bool LoadsPacked(const PackedOptions& options = {}, std::optional<DType> storage = {}) {
    warnings_.clear();
    read_bytes_ = 0;
    const auto decoder = LoadModel(ModelFolder(model_), pool_, hooks_, storage, options);
    EXPECT_EQ(decoder->StatesDigest(), Digest());
    return decoder->mapped_bytes() > 0;
  }
  uint64_t Digest() {
    const ModelFolder model(model_);
    return LoadDecoder(model.spec(), model.weights(), pool_, {})->StatesDigest();
  }
  fs::path Pack(const PackedOptions& options = {}, std::optional<DType> storage = {}) {
    return PackModel(ModelFolder(model_), pool_, hooks_, storage, options);
  }
  std::string Refusal(ErrorKind kind, const PackedOptions& options,
                      std::optional<DType> storage = {}) {
    return ErrorOf(kind, [&] { LoadModel(ModelFolder(model_), pool_, hooks_, storage, options); });
  }
  // Replaces a byte of the file by another one.
  void ChangeByte(const fs::path& path, int64_t from_end) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(-from_end, std::ios::end);
    const auto byte = static_cast<char>(file.get() ^ 1);
    file.seekp(-from_end, std::ios::end);
    file.put(byte);
  }

  const TempFolder temp_;
  const fs::path model_ = temp_.path() / "model";
  const fs::path weights_ = model_ / "model.safetensors";
  ThreadPool pool_{2};
  std::vector<std::string> warnings_;
  int64_t read_bytes_ = 0;
  const LoadHooks hooks_{
      .progress = [this](int64_t done, int64_t /*total*/) { read_bytes_ = done; },
      .warn = [this](const std::string& warning) { warnings_.push_back(warning); }};
};

TEST_F(PackedCopyTest, LiesBesideTheModelAndIsUsed) {
  EXPECT_FALSE(LoadsPacked());
  EXPECT_EQ(Pack(), model_ / "model.auto.godwit");
  EXPECT_TRUE(LoadsPacked());
  EXPECT_THAT(warnings_, IsEmpty());
  EXPECT_EQ(read_bytes_, 0) << "a start reads no file of the model";
  EXPECT_FALSE(LoadsPacked({.use = false}));
  EXPECT_EQ(fs::status(model_ / "model.auto.godwit").permissions() & fs::perms::others_read,
            fs::status(weights_).permissions() & fs::perms::others_read);
  EXPECT_EQ(VerifyPackedCopy(ModelFolder(model_), pool_, hooks_, {}, {}),
            model_ / "model.auto.godwit");
}

TEST_F(PackedCopyTest, IsOfOneStorage) {
  EXPECT_EQ(Pack({}, DType::kGrouped), model_ / "model.int4.godwit");
  EXPECT_FALSE(LoadsPacked());
  EXPECT_FALSE(LoadsPacked({}, DType::kI8));
  EXPECT_THAT(warnings_, IsEmpty());
  EXPECT_TRUE(LoadsPacked({}, DType::kGrouped));
  fs::rename(model_ / "model.int4.godwit", model_ / "model.int8.godwit");
  EXPECT_FALSE(LoadsPacked({}, DType::kI8));
  EXPECT_THAT(warnings_, ElementsAre((model_ / "model.int8.godwit").native() +
                                     ": holds the weights as int4, expected int8; loading the "
                                     "model without a packed copy"));
}

TEST_F(PackedCopyTest, IsMadeWhereItIsMissing) {
  EXPECT_TRUE(LoadsPacked({.make = true}));
  EXPECT_THAT(warnings_, IsEmpty());
  EXPECT_GT(read_bytes_, 0);
  EXPECT_TRUE(LoadsPacked());
  EXPECT_EQ(read_bytes_, 0);
  EXPECT_TRUE(LoadsPacked({.make = true}));
  EXPECT_EQ(read_bytes_, 0) << "one that is right is not made again";
}

TEST_F(PackedCopyTest, MayBeAnyFile) {
  const PackedOptions named{.file = temp_.path() / "mine"};
  EXPECT_THAT(Refusal(ErrorKind::kIo, named), HasSubstr("mine: cannot open: No such file"));
  EXPECT_EQ(Pack(named), temp_.path() / "mine");
  EXPECT_FALSE(LoadsPacked());
  EXPECT_TRUE(LoadsPacked(named));
  // A copy that is named must be right, or loading fails.
  EXPECT_THAT(Refusal(ErrorKind::kFormat, named, DType::kI8),
              EndsWith("mine: holds the weights as auto, expected int8"));
  PackedOptions made = named;
  made.make = true;
  EXPECT_TRUE(LoadsPacked(made, DType::kI8));
  EXPECT_THAT(warnings_, ElementsAre(EndsWith("expected int8; packing it again")));
  made.file = temp_.path() / "missing" / "mine";
  EXPECT_THAT(Refusal(ErrorKind::kIo, made), HasSubstr("mine: cannot write: No such file"));
}

// Files of the same size and time: one written into, one replaced.
TEST_F(PackedCopyTest, IsNeverOfAnEarlierModel) {
  const auto time = fs::last_write_time(weights_);
  Pack();
  EXPECT_TRUE(LoadsPacked());
  ChangeByte(weights_, 1);
  fs::last_write_time(weights_, time);
  EXPECT_FALSE(LoadsPacked());
  const std::string stale = (model_ / "model.auto.godwit").native() +
                            ": out of date: the content of its weights has changed";
  EXPECT_THAT(warnings_, ElementsAre(stale + "; loading the model without a packed copy"));
  EXPECT_EQ(ErrorOf(ErrorKind::kFormat,
                    [&] { VerifyPackedCopy(ModelFolder(model_), pool_, hooks_, {}, {}); }),
            stale);
  EXPECT_TRUE(LoadsPacked({.make = true}));
  EXPECT_THAT(warnings_, ElementsAre(stale + "; packing it again"));

  fs::copy(weights_, model_ / "new");
  ChangeByte(model_ / "new", 1);
  fs::last_write_time(model_ / "new", time);
  fs::rename(model_ / "new", weights_);
  EXPECT_FALSE(LoadsPacked());
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("the content of its weights has changed")));
}

// A model that was copied or unpacked elsewhere has other times, and is the same.
TEST_F(PackedCopyTest, IsKnownByItsContent) {
  Pack();
  fs::rename(model_, temp_.path() / "moved");
  fs::copy(temp_.path() / "moved", model_);
  EXPECT_TRUE(LoadsPacked());
  EXPECT_THAT(warnings_,
              ElementsAre(HasSubstr("all of them were read; their content is the same")));
  EXPECT_EQ(read_bytes_, static_cast<int64_t>(fs::file_size(weights_))) << "all of it";
}

TEST_F(PackedCopyTest, KnowsTheConfigByItsContent) {
  Pack();
  const std::string config = ReadTextFile(model_ / "config.json", 1 << 20);
  std::ofstream(model_ / "config.json") << config;
  EXPECT_TRUE(LoadsPacked());
  std::ofstream(model_ / "config.json") << config << "\n";
  EXPECT_FALSE(LoadsPacked());
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("out of date: config.json has changed;")));
}

TEST_F(PackedCopyTest, NoticesOtherFilesAndSizes) {
  Pack();
  const ModelFolder model(model_);
  PackedInfo info = PackedFile(model_ / "model.auto.godwit").info();
  const auto change = [&] {
    return ChangeSince(info, model, pool_, /*read_all=*/false, {}).value_or("");
  };
  EXPECT_EQ(change(), "");
  ++info.sources[0].bytes;
  EXPECT_EQ(change(), fmt::format("model.safetensors had {} bytes, and has {}",
                                  info.sources[0].bytes, info.sources[0].bytes - 1));
  --info.sources[0].bytes;
  for (int64_t* time : {&info.sources[0].modified_ns, &info.sources[0].changed_ns}) {
    --*time;
    EXPECT_EQ(change(), "") << "by its content";
    ++info.sources[0].checksum;
    EXPECT_EQ(change(), "the content of its weights has changed");
    --info.sources[0].checksum;
    ++*time;
  }
  info.sources[0].name += "x";
  EXPECT_EQ(change(), "the model has other weight files");
  info.sources.clear();
  EXPECT_EQ(change(), "the model has other weight files");
}

TEST_F(PackedCopyTest, IsLeftAsideWhereItIsBrokenOrForeign) {
  const fs::path copy = Pack();
  const std::string content = ReadTextFile(copy, 1 << 24);
  const auto with = [&](const std::string& changed, const std::string& sentence) {
    std::ofstream(copy, std::ios::binary) << changed;
    EXPECT_FALSE(LoadsPacked());
    EXPECT_THAT(warnings_, ElementsAre(AllOf(HasSubstr("model.auto.godwit"), HasSubstr(sentence),
                                             EndsWith("loading the model without a packed copy"))));
  };
  with(content.substr(0, content.size() - 1), "cut short");
  with(content.substr(0, 100), "cut short");
  with("", "the file is empty");
  with("something else", "not a packed copy of a model");
  std::string changed = content;
  changed[8] = 9;
  with(changed, "packed in version 9 of the layout, expected version 2");
  changed = content;
  changed[content.size() - 100] ^= 1;
  with(changed, "another checksum");
  EXPECT_TRUE(LoadsPacked({.make = true}));
  EXPECT_THAT(warnings_, ElementsAre(EndsWith("packing it again")));
  EXPECT_TRUE(LoadsPacked());
}

TEST_F(PackedCopyTest, IsOfThisVersionOfGodwit) {
  const fs::path copy = Pack();
  std::vector<std::byte> parts;
  {
    const PackedFile file(copy);
    NewFile other(copy);
    PackedWriter writer(other);
    for (const PackedPart& part : file.parts()) {
      const Buffer bytes = file.Part(part);
      writer.Write(part.name, std::span(reinterpret_cast<const float*>(bytes.data()),
                                        static_cast<size_t>(part.bytes) / sizeof(float)));
    }
    PackedInfo info = file.info();
    info.godwit = "0.0.1";
    writer.Finish(info);
    other.Commit();
  }
  EXPECT_FALSE(LoadsPacked());
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("model.auto.godwit: made by godwit 0.0.1, while")));
}

TEST_F(PackedCopyTest, ItsWarningsComeAgain) {
  // The last number of the file, in bf16, becomes NaN.
  std::fstream file(weights_, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-2, std::ios::end);
  file.write("\xff\x7f", 2).flush();
  EXPECT_FALSE(LoadsPacked());
  const std::vector<std::string> warnings = warnings_;
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("holds NaN")));
  EXPECT_TRUE(LoadsPacked({.make = true}));
  EXPECT_EQ(warnings_, warnings);
  EXPECT_TRUE(LoadsPacked());
  EXPECT_EQ(warnings_, warnings);
}

TEST_F(PackedCopyTest, DamageInItsNumbersIsFound) {
  const fs::path copy = Pack();
  const PackedPart part = PackedFile(copy).parts().front();
  ChangeByte(copy, static_cast<int64_t>(fs::file_size(copy)) - part.offset);
  EXPECT_FALSE(LoadsPacked());
  EXPECT_THAT(warnings_, ElementsAre(AllOf(HasSubstr("has another checksum"),
                                           HasSubstr("loading the model without a packed copy"))));
  EXPECT_EQ(ErrorOf(ErrorKind::kFormat,
                    [&] { VerifyPackedCopy(ModelFolder(model_), pool_, hooks_, {}, {}); }),
            fmt::format("{}: damaged: \"{}\" has another checksum", copy.native(), part.name));
  EXPECT_THAT(
      ErrorOf(ErrorKind::kIo,
              [&] { VerifyPackedCopy(ModelFolder(model_), pool_, hooks_, DType::kI8, {}); }),
      HasSubstr("model.int8.godwit: there is no such packed copy of the model"));
}

// A mistyped name must not cost a file.
TEST_F(PackedCopyTest, NeverTakesThePlaceOfSomethingElse) {
  for (const char* name : {"model.safetensors", "config.json"}) {
    EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { Pack({.file = model_ / name}); }),
                HasSubstr("exists already and is no packed copy"));
  }
  EXPECT_THAT(ErrorOf(ErrorKind::kIo, [&] { Pack({.file = model_}); }),
              HasSubstr("expected a file, found a folder"));
  EXPECT_FALSE(LoadsPacked());
}

TEST_F(PackedCopyTest, LeavesNothingWhereItEnds) {
  CancelToken cancel;
  cancel.Cancel();
  ErrorOf(ErrorKind::kCancelled,
          [&] { PackModel(ModelFolder(model_), pool_, {.cancel = &cancel}, {}, {}); });
  std::ofstream(model_ / "model.auto.godwit.1-0.part") << "of one that was killed";
  std::ofstream(model_ / "other.part") << "another program's";
  EXPECT_EQ(std::distance(fs::directory_iterator(model_), {}),
            std::distance(fs::directory_iterator(kTiny), {}) + 2);
  Pack();
  EXPECT_FALSE(fs::exists(model_ / "model.auto.godwit.1-0.part"));
  EXPECT_TRUE(fs::exists(model_ / "other.part"));
}

TEST_F(PackedCopyTest, ChangesWhileItIsPackedAreNoticed) {
  LoadHooks hooks = hooks_;
  bool changed = false;
  hooks.progress = [&](int64_t, int64_t) {
    if (!std::exchange(changed, true)) ChangeByte(weights_, 1);
  };
  EXPECT_THAT(
      ErrorOf(ErrorKind::kInput, [&] { PackModel(ModelFolder(model_), pool_, hooks, {}, {}); }),
      HasSubstr("the model changed while it was packed"));
  EXPECT_FALSE(fs::exists(model_ / "model.auto.godwit"));
}

TEST_F(PackedCopyTest, UnwritableFolderHasItsCopyElsewhere) {
  if (geteuid() == 0) GTEST_SKIP() << "notice: root writes everywhere";
  const PackedOptions elsewhere{.make = true, .folder = temp_.path() / "cache" / "packed"};
  ASSERT_EQ(chmod(model_.c_str(), 0555), 0);
  EXPECT_FALSE(LoadsPacked({.make = true}));
  EXPECT_THAT(warnings_,
              ElementsAre(HasSubstr("cannot write: Permission denied; loading the model")));
  EXPECT_TRUE(LoadsPacked(elsewhere));
  EXPECT_THAT(warnings_, IsEmpty());
  EXPECT_TRUE(LoadsPacked({.folder = elsewhere.folder}));
  ASSERT_EQ(chmod(model_.c_str(), 0755), 0);
}

// In a folder of the user's, models of one name differ by their location.
TEST_F(PackedCopyTest, ElsewhereIsFoundByWhereTheModelIs) {
  const PackedOptions elsewhere{.folder = temp_.path() / "cache"};
  const fs::path copy = Pack();
  fs::create_directory(elsewhere.folder);
  const TempFolder other;
  fs::copy(model_, other.path() / "model");
  EXPECT_TRUE(LoadsPacked(elsewhere)) << "beside the model comes first";
  fs::remove(copy);
  EXPECT_FALSE(LoadsPacked(elsewhere));
}

TEST_F(PackedCopyTest, GgufModelsHaveThemToo) {
  const fs::path file = temp_.path() / "a.gguf";
  fs::copy(kGolden / "gguf" / "llama_q4_k.gguf", file);
  const auto load = [&](const fs::path& path) {
    warnings_.clear();
    return LoadModel(ModelFolder(path), pool_, hooks_, {}, {})->mapped_bytes() > 0;
  };
  EXPECT_FALSE(load(file));
  EXPECT_EQ(PackModel(ModelFolder(file), pool_, hooks_, {}, {}), temp_.path() / "a.auto.godwit");
  EXPECT_TRUE(load(file));
  ChangeByte(file, 1);
  EXPECT_FALSE(load(file));
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("the content of its weights has changed")));
  // All parts of a split model are checked.
  for (const char* part : {"1", "2", "3"}) {
    const std::string name = fmt::format("llama_tied-0000{}-of-00003.gguf", part);
    fs::copy(kGolden / "gguf" / name, temp_.path() / name);
  }
  const fs::path split = temp_.path() / "llama_tied-00002-of-00003.gguf";
  EXPECT_EQ(PackModel(ModelFolder(split), pool_, hooks_, {}, {}).filename(),
            "llama_tied-00001-of-00003.auto.godwit");
  EXPECT_TRUE(load(split));
  EXPECT_EQ(
      PackedFile(temp_.path() / "llama_tied-00001-of-00003.auto.godwit").info().sources.size(), 3u);
}

}  // namespace
}  // namespace godwit::packed_copy_test
