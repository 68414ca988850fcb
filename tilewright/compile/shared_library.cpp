#include "tilewright/compile/shared_library.hpp"

#include <dlfcn.h>
#include <link.h>

namespace tilewright::compile {

void SharedLibrary::Close::operator()(void* handle) const { ::dlclose(handle); }

std::optional<SharedLibrary> SharedLibrary::open(const std::string& name, Load load, std::string* error) {
  const int mode = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE | (load == Load::only_if_loaded ? RTLD_NOLOAD : 0);
  if (void* handle = ::dlopen(name.c_str(), mode)) return SharedLibrary(handle);
  const char* reason = ::dlerror();
  if (error != nullptr) *error = reason == nullptr ? "not loaded" : reason;
  return std::nullopt;
}

std::string SharedLibrary::path() const {
  link_map* map = nullptr;
  if (::dlinfo(handle_.get(), RTLD_DI_LINKMAP, &map) != 0 || map == nullptr || map->l_name == nullptr) return {};
  return map->l_name;
}

void* SharedLibrary::symbol(const char* name) const { return ::dlsym(handle_.get(), name); }

}  // namespace tilewright::compile
