// A library opened at run time. It stays mapped when the object goes: the vendor's libraries start threads and register
// exit handlers, and loading NVRTC again would cost tens of milliseconds.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace tilewright::compile {

class SharedLibrary {
 public:
  enum class Load {
    now,             // load it if need be
    only_if_loaded,  // another part of the process has it already, or fail
  };

  /// `name`: an absolute path, or a soname for the loader to find. Nothing when that fails; the reason is in `error`.
  static std::optional<SharedLibrary> open(const std::string& name, Load load, std::string* error = nullptr);

  /// Absolute path of the loaded file; empty when the loader does not know it.
  std::string path() const;

  /// The address of `name`, or null.
  void* symbol(const char* name) const;

 private:
  struct Close {
    void operator()(void* handle) const;
  };
  explicit SharedLibrary(void* handle) : handle_(handle) {}

  std::unique_ptr<void, Close> handle_;
};

}  // namespace tilewright::compile
