// Writer: a thread that brings appended records to the disk, so that appending never waits for a
// disk. Thread-safe.
//
// Records are written every 20 ms, and files are brought to the disk every second. A killed process
// loses the last 20 ms at most, a power cut the last second. A file that cannot grow keeps what it
// has, and takes no more.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/open_file.h"
#include "journal/record_file.h"

namespace godwit::journal {

class Writer;

// A file that grows. It must not outlive its writer.
class File : public std::enable_shared_from_this<File> {
 public:
  File(Writer& writer, std::filesystem::path path, FileDescriptor descriptor, int64_t bytes,
       int64_t records);

  void Append(uint32_t kind, std::string_view bytes);
  // Says that nothing follows. Once all is on the disk, the file gets the name `done`.
  void Finish(std::filesystem::path done);
  // Waits until everything that was appended is on the disk, at most wait_ms. False: it is not.
  bool WaitForDisk(double wait_ms);
  // The bytes of the file with what is not written yet.
  int64_t bytes() const;

 private:
  friend class Writer;

  // Makes the writer look at it.
  void List();

  Writer& writer_;
  FileDescriptor descriptor_;
  // The members below belong to the writer's mutex.
  std::filesystem::path path_;
  std::filesystem::path done_;  // empty: more may follow
  std::string pending_;
  int64_t written_;  // bytes
  int64_t records_;
  bool is_listed_ = false;  // among the writer's files
  int64_t changes_ = 0;     // so far: what is appended while the disk is busy is not on it
  bool is_on_disk_ = false;
  bool has_name_on_disk_ = false;  // a killed process may have left it without
  bool failed_ = false;
  bool is_urgent_ = false;
  std::chrono::system_clock::time_point on_disk_at_;
};

class Writer {
 public:
  using Notice = std::function<void(const std::string& message)>;
  // May say no to a file that wants to grow by so many bytes. Called by the writer's thread.
  using Room = std::function<bool(int64_t bytes)>;

  // notice: called once for each kind of trouble, by any thread. Both may be empty.
  explicit Writer(Notice notice, Room room = {});
  // Brings the rest to the disk.
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // Makes a file for this user alone. Throws Error(kIo), also if the file exists.
  std::shared_ptr<File> Begin(const std::filesystem::path& path);
  // Goes on behind the records of an existing file; a torn tail is cut off. Throws Error(kIo).
  std::shared_ptr<File> GoOn(const std::filesystem::path& path, const Records& records);

 private:
  friend class File;
  using Time = std::chrono::system_clock::time_point;

  std::shared_ptr<File> Add(std::shared_ptr<File> file);
  void Loop();
  void WriteOut(File& file, std::unique_lock<std::mutex>& lock);
  void BringToDisk(File& file, std::unique_lock<std::mutex>& lock);
  void Fail(File& file, const std::string& why);

  Notice notice_;
  Room room_;
  std::mutex mutex_;  // guards the members below, and those of files
  std::condition_variable changed_;
  std::vector<std::shared_ptr<File>> files_;  // with bytes that are not on the disk yet
  bool said_ = false;
  bool stop_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace godwit::journal
