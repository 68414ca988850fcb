#include "tilewright/compile/compiler.hpp"

#include "tilewright/base/error.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/compile/nvcc.hpp"
#include "tilewright/compile/nvrtc.hpp"
#include "tilewright/compile/parallel.hpp"

namespace tilewright::compile {

Result<Backend> parse_backend(std::string_view text) {
  if (text == "nvrtc") return Backend::nvrtc;
  if (text == "nvrtc_in_process") return Backend::nvrtc_in_process;
  if (text == "nvcc") return Backend::nvcc;
  if (text == "none") return Backend::none;
  return refuse("must be nvrtc, nvrtc_in_process, nvcc or none, got '{}'", printable(text));
}

std::unique_ptr<Compiler> make_compiler(const ToolchainOptions& options, const Environment& environment) {
  if (options.backend == Backend::none)
    throw ToolchainNotFound("the kernel is not in the cache, and compiling is disabled (TILEWRIGHT_COMPILER=none)");
  Environment searched = environment;
  if (!options.cuda_home.empty()) searched.cuda_home = options.cuda_home;
  if (options.backend == Backend::nvcc) return std::make_unique<NvccCompiler>(options, searched);
  return std::make_unique<NvrtcCompiler>(options, searched);
}

std::vector<Artifact> compile_all(const Compiler& compiler, std::span<const Source> sources, int threads) {
  std::vector<Artifact> artifacts(sources.size());
  for_each_index(sources.size(), threads, [&](std::size_t i) { artifacts[i] = compiler.compile(sources[i]); });
  return artifacts;
}

}  // namespace tilewright::compile
