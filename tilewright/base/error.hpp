// What is thrown: the environment failed, or we have a bug. "Cannot, because" is not here: see support.hpp.
#pragma once

#include <fmt/format.h>

#include <source_location>
#include <stdexcept>
#include <string>

namespace tilewright {

/// Base of everything this library throws.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The caller passed something that can never work: shapes, strides, names, files.
class InvalidArgument : public Error {
 public:
  using Error::Error;
};

/// A compiler rejected or died on a source. `what()` carries the log and where the source was dumped.
class CompileError : public Error {
 public:
  using Error::Error;
};

/// A tool or library was not found. `what()` lists the places searched and the command that fixes it.
class ToolchainNotFound : public Error {
 public:
  using Error::Error;
};

/// A CUDA driver call failed. Fatal codes poison the runtime: see runtime/driver.hpp.
class DriverError : public Error {
 public:
  DriverError(int code, const std::string& message) : Error(message), code_(code) {}
  int code() const { return code_; }

 private:
  int code_;
};

/// A device allocation did not fit. `what()` says how much was asked for and how much was free.
class OutOfMemory : public Error {
 public:
  using Error::Error;
};

/// An emulated kernel broke a rule of the machine: see emulator/checks.hpp.
class EmulationError : public Error {
 public:
  using Error::Error;
};

/// A bug of ours. Not meant to be caught.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

namespace detail {
[[noreturn]] void fail_check(const char* condition, const std::string& message, std::source_location where);
}  // namespace detail

}  // namespace tilewright

/// Our own invariant. The message is a fmt string with the values that failed.
#define TILEWRIGHT_CHECK(condition, ...)                                                                         \
  do {                                                                                                           \
    if (!(condition)) [[unlikely]]                                                                               \
      ::tilewright::detail::fail_check(#condition, ::fmt::format(__VA_ARGS__), std::source_location::current()); \
  } while (false)
