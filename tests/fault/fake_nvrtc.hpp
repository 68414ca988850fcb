// Creates compilers that load the fake NVRTC of fake_nvrtc/nvrtc.cpp, and sources with commands for it.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "tilewright/compile/compiler.hpp"
#include "tilewright/compile/file.hpp"
#include "tilewright/compile/nvrtc.hpp"

namespace tilewright::compile {

/// A compiler that loads the fake library from a toolkit in `folder`, which is created if missing.
inline std::unique_ptr<Compiler> make_fake_nvrtc(const std::string& folder, ToolchainOptions options = {}) {
  const std::string library = folder + "/cuda/lib64/libnvrtc.so.13";
  if (!std::filesystem::exists(library)) {
    make_folders(folder + "/cuda/lib64");
    std::filesystem::create_symlink(TILEWRIGHT_FAKE_NVRTC, library);
  }
  Environment environment;
  environment.cuda_home = folder + "/cuda";
  environment.temporary_dir = folder;
  return make_compiler(options, environment);
}

/// A source whose compile executes `commands`, such as "sleep 500".
inline Source commanded_source(const std::string& name, const std::vector<std::string>& commands = {}) {
  Source source;
  source.name = name;
  source.symbol = "kernel";
  source.target = kSm90a;
  for (const std::string& command : commands) source.text += "//! " + command + "\n";
  source.text += "text of " + name;
  return source;
}

}  // namespace tilewright::compile
