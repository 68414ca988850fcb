// The environment variables and folders that determine where tools are searched and files are kept. Read once; no other
// code of this room calls getenv.
#pragma once

#include <string>
#include <vector>

namespace tilewright::compile {

/// A default-constructed Environment names no place at all; tests pass it to simulate that nothing is installed.
struct Environment {
  std::string home;                     // HOME
  std::string xdg_cache_home;           // XDG_CACHE_HOME
  std::string cache_dir;                // TILEWRIGHT_CACHE_DIR
  std::string cuda_home;                // TILEWRIGHT_CUDA_HOME: searched before everything else
  std::string mlir_library;             // TILEWRIGHT_MLIR_LIBRARY: used instead of a search
  std::vector<std::string> cuda_paths;  // CUDA_PATH, CUDA_HOME
  std::string virtual_env;              // VIRTUAL_ENV
  std::string conda_prefix;             // CONDA_PREFIX
  std::string temporary_dir;            // TMPDIR, else /tmp
  std::vector<std::string> path;        // PATH, absolute entries
  std::vector<std::string> code_dirs;   // folders of this executable and of the shared object that contains this code

  std::vector<std::string> loader_dirs;  // where the dynamic loader searches: LD_LIBRARY_PATH, the system's folders
  std::vector<std::string> cuda_roots;   // conventional installation roots: /usr/local/cuda
  bool ask_loader = false;               // whether dlopen() by bare soname may be tried
};

/// The environment of this process. It is read by secure_getenv(), so set-uid programs see no variables.
Environment capture_environment();

}  // namespace tilewright::compile
