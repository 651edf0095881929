// For tests: a disk that is full. Only *_test.cc files include it.
#pragma once

#include <sys/resource.h>

#include <cstdint>

namespace godwit {

// While it lives, no file of this process grows beyond so many bytes.
class FullDisk {
 public:
  explicit FullDisk(int64_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit less = before_;
    less.rlim_cur = static_cast<rlim_t>(bytes);
    setrlimit(RLIMIT_FSIZE, &less);
  }
  ~FullDisk() { setrlimit(RLIMIT_FSIZE, &before_); }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit before_;
};

}  // namespace godwit
