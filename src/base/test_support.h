// For tests only: the error that an action throws, and names of tests.
#pragma once

#include <gtest/gtest.h>

#include <cctype>
#include <string>

#include "base/error.h"

namespace godwit {

template <typename Action>
Error ErrorOf(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return Error(ErrorKind::kIo, "no error");
}

// The message of an error of this kind.
template <typename Action>
std::string ErrorOf(ErrorKind kind, Action action) {
  const Error error = ErrorOf(action);
  EXPECT_EQ(error.kind(), kind) << error.what();
  return error.what();
}

// A name that gtest takes for a case.
inline std::string TestName(std::string text) {
  for (char& c : text) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return text;
}

}  // namespace godwit
