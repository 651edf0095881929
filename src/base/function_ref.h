// FunctionRef<R(Args...)>: a view of something callable, two words, no allocation.
//
// It does not own what it refers to: use it for parameters that are called before the function
// returns, never as a field. Copying copies the view. It is as thread-safe as what it refers to.
#pragma once

#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

namespace godwit {

template <typename Signature>
class FunctionRef;

template <typename R, typename... Args>
class FunctionRef<R(Args...)> {
 public:
  // Implicit, so that a lambda can be passed as it stands.
  template <typename F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef> &&
           !std::is_function_v<std::remove_reference_t<F>> &&
           std::is_invocable_r_v<R, std::remove_reference_t<F>&, Args...>) FunctionRef(F&& callable)
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(callable)))),
        call_([](void* object, Args... args) -> R {
          return std::invoke(*static_cast<std::remove_reference_t<F>*>(object),
                             std::forward<Args>(args)...);
        }) {}

  R operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  void* object_;
  R (*call_)(void*, Args...);
};

}  // namespace godwit
