#include "tilewright/compile/compiler.hpp"

#include <mutex>
#include <utility>

#include "tilewright/base/error.hpp"
#include "tilewright/base/fork.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/compile/mlir_compiler.hpp"
#include "tilewright/compile/nvcc.hpp"
#include "tilewright/compile/nvrtc.hpp"
#include "tilewright/compile/parallel.hpp"

namespace tilewright::compile {
namespace {

/// Compiles each source by the compiler of its language.
class CompilerOfLanguages : public Compiler {
 public:
  CompilerOfLanguages(std::unique_ptr<Compiler> cuda, ToolchainOptions options, Environment environment)
      : cuda_(std::move(cuda)), options_(std::move(options)), environment_(std::move(environment)) {}

  const std::string& identity() const override { return cuda_->identity(); }
  const std::string& identity_for(const Source& source) const override { return compiler_of(source).identity(); }
  Artifact compile(const Source& source) const override { return compiler_of(source).compile(source); }

 private:
  const Compiler& compiler_of(const Source& source) const {
    if (source.language != Language::mlir) return *cuda_;
    const std::scoped_lock lock(mutex_);
    if (!mlir_) mlir_ = std::make_unique<MlirCompiler>(options_, environment_);
    return *mlir_;
  }

  std::unique_ptr<Compiler> cuda_;
  ToolchainOptions options_;
  Environment environment_;
  mutable ForkSafeMutex mutex_;  // guards mlir_
  mutable std::unique_ptr<Compiler> mlir_;
};

}  // namespace

const std::string& Compiler::identity_for(const Source& /*source*/) const { return identity(); }

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
  if (!options.mlir_library.empty()) searched.mlir_library = options.mlir_library;
  std::unique_ptr<Compiler> cuda;
  if (options.backend == Backend::nvcc) {
    cuda = std::make_unique<NvccCompiler>(options, searched);
  } else {
    cuda = std::make_unique<NvrtcCompiler>(options, searched);
  }
  return std::make_unique<CompilerOfLanguages>(std::move(cuda), options, std::move(searched));
}

std::vector<Artifact> compile_all(const Compiler& compiler, std::span<const Source> sources, int threads) {
  std::vector<Artifact> artifacts(sources.size());
  for_each_index(sources.size(), threads, [&](std::size_t i) { artifacts[i] = compiler.compile(sources[i]); });
  return artifacts;
}

}  // namespace tilewright::compile
