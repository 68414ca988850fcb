// A library opened at run time. It stays mapped after the object is destroyed: the vendor's libraries start threads and
// register exit handlers, and loading NVRTC again would take tens of milliseconds.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace tilewright::compile {

class SharedLibrary {
 public:
  enum class Load {
    now,             // load the library if it is not loaded yet
    only_if_loaded,  // fail unless another part of the process has loaded it
  };

  /// `name`: an absolute path, or a soname for the loader to find. On failure returns nothing and sets `*error`.
  static std::optional<SharedLibrary> open(const std::string& name, Load load, std::string* error = nullptr);

  /// Absolute path of the loaded file; empty when the loader reports none.
  std::string path() const;

  /// The address of the symbol `name`, or null.
  void* symbol(const char* name) const;

 private:
  struct Close {
    void operator()(void* handle) const;
  };
  explicit SharedLibrary(void* handle) : handle_(handle) {}

  std::unique_ptr<void, Close> handle_;
};

}  // namespace tilewright::compile
