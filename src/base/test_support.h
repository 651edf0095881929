// For tests only: the error that an action throws.
#pragma once

#include <gtest/gtest.h>

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

// Its message, if it is of this kind.
template <typename Action>
std::string ErrorOf(ErrorKind kind, Action action) {
  const Error error = ErrorOf(action);
  EXPECT_EQ(error.kind(), kind) << error.what();
  return error.what();
}

}  // namespace godwit
