// Guard: the border between C++ and C. No exception crosses it.
#pragma once

#include <exception>
#include <new>

#include "base/error.h"
#include "godwit/godwit.h"

namespace godwit::capi {

// Errors as the caller gets them. They throw nothing: without memory for the message they return
// OutOfMemory, which has none of its own.
godwit_error* NewError(const Error& error) noexcept;
godwit_error* NewInternalError(const char* message) noexcept;
godwit_error* OutOfMemory() noexcept;
void FreeError(godwit_error* error) noexcept;

// Runs `body`. Returns null, or the error that it threw.
template <typename Body>
godwit_error* Guard(const Body& body) noexcept {
  try {
    body();
    return nullptr;
  } catch (const Error& error) {
    return NewError(error);
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  } catch (const std::exception& error) {
    return NewInternalError(error.what());
  } catch (...) {
    return NewInternalError("an exception of unknown type");
  }
}

// The object that an argument points to. Throws Error(kInput) for NULL. name: the argument.
template <typename T>
T& Require(T* argument, const char* name) {
  if (argument == nullptr) Throw(ErrorKind::kInput, "{}: expected an object, found NULL", name);
  return *argument;
}

}  // namespace godwit::capi
