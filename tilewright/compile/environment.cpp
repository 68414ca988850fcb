#include "tilewright/compile/environment.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "tilewright/base/environment_variables.hpp"
#include "tilewright/base/text.hpp"

namespace tilewright::compile {
namespace {

namespace fs = std::filesystem;

std::string variable(const char* name) {
  const char* value = ::secure_getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::vector<std::string> absolute_entries(const std::string& list) {
  std::vector<std::string> entries = split(list, ':');
  std::erase_if(entries, [](const std::string& entry) { return !entry.starts_with('/'); });
  return entries;
}

std::vector<std::string> folders_of_this_code() {
  std::vector<std::string> folders;
  const auto add = [&](const fs::path& file) {
    std::error_code failed;
    const fs::path real = fs::canonical(file, failed);
    if (failed) return;
    std::string folder = real.parent_path().string();
    if (std::find(folders.begin(), folders.end(), folder) == folders.end()) folders.push_back(std::move(folder));
  };
  add("/proc/self/exe");
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&folders_of_this_code), &info) != 0 && info.dli_fname != nullptr &&
      info.dli_fname[0] == '/') {
    add(info.dli_fname);
  }
  return folders;
}

}  // namespace

Environment capture_environment() {
  Environment environment;
  environment.home = variable("HOME");
  environment.xdg_cache_home = variable("XDG_CACHE_HOME");
  environment.cache_dir = environment_variable("TILEWRIGHT_CACHE_DIR").value().value_or("");
  environment.cuda_home = environment_variable("TILEWRIGHT_CUDA_HOME").value().value_or("");
  environment.mlir_library = environment_variable("TILEWRIGHT_MLIR_LIBRARY").value().value_or("");
  for (const char* name : {"CUDA_PATH", "CUDA_HOME"}) {
    if (std::string value = variable(name); !value.empty()) environment.cuda_paths.push_back(std::move(value));
  }
  environment.virtual_env = variable("VIRTUAL_ENV");
  environment.conda_prefix = variable("CONDA_PREFIX");
  environment.temporary_dir = variable("TMPDIR");
  if (environment.temporary_dir.empty()) environment.temporary_dir = "/tmp";
  environment.path = absolute_entries(variable("PATH"));
  environment.code_dirs = folders_of_this_code();
  environment.loader_dirs = absolute_entries(variable("LD_LIBRARY_PATH"));
  for (const char* folder : {"/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib"}) {
    environment.loader_dirs.emplace_back(folder);
  }
  environment.cuda_roots = {"/usr/local/cuda"};
  environment.ask_loader = true;
  return environment;
}

}  // namespace tilewright::compile
