// Exceptions: for bad arguments, failures of the environment, and bugs of this library. A kernel that does not support
// a problem is no exception but a Support (support.hpp).
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

/// The caller passed an invalid argument: shapes, strides, names, files.
class InvalidArgument : public Error {
 public:
  using Error::Error;
};

/// A compiler rejected a source or crashed. `what()` has its log and the path of the dumped source.
class CompileError : public Error {
 public:
  using Error::Error;
};

/// A tool or library was not found. `what()` lists the places searched and a command that installs it.
class ToolchainNotFound : public Error {
 public:
  using Error::Error;
};

/// A CUDA driver call failed. After a fatal code every later call fails: see runtime/driver.hpp.
class DriverError : public Error {
 public:
  DriverError(int code, const std::string& message) : Error(message), code_(code) {}
  int code() const { return code_; }

 private:
  int code_;
};

/// A device allocation failed. `what()` has the requested and the free bytes.
class OutOfMemory : public Error {
 public:
  using Error::Error;
};

/// An emulated kernel violated a rule of the PTX ISA: see emulator/checks.hpp.
class EmulationError : public Error {
 public:
  using Error::Error;
};

/// A bug of this library. Not meant to be caught.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

namespace detail {
[[noreturn]] void fail_check(const char* condition, const std::string& message, std::source_location where);
}  // namespace detail

}  // namespace tilewright

/// Checks an invariant of this library. The message is a fmt string with the offending values.
#define TILEWRIGHT_CHECK(condition, ...)                                                                         \
  do {                                                                                                           \
    if (!(condition)) [[unlikely]]                                                                               \
      ::tilewright::detail::fail_check(#condition, ::fmt::format(__VA_ARGS__), std::source_location::current()); \
  } while (false)
