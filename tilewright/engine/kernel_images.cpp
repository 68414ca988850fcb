#include "tilewright/engine/kernel_images.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <thread>
#include <utility>

#include "tilewright/compile/compiler_output.hpp"

namespace tilewright::engine {
namespace {

int compile_threads(const Options& options) {
  if (options.compile_threads > 0) return options.compile_threads;
  return static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, 8U));
}

cache::StoreOptions store_options(const Options& options) {
  cache::StoreOptions store;
  store.root = options.cache_dir;
  store.on_disk = options.cache_on_disk;
  store.max_bytes = options.cache_max_bytes;
  store.shared_roots = options.shared_cache_dirs;
  store.lock_timeout_s = options.toolchain.timeout_s;
  return store;
}

/// Whether loading failed because of the image, and not because of the state of the device.
bool is_fault_of_image(const Error& error) {
  if (dynamic_cast<const EmulationError*>(&error) != nullptr) return true;
  const auto* const driver = dynamic_cast<const DriverError*>(&error);
  if (driver == nullptr) return false;
  // CUresult: INVALID_IMAGE, NO_BINARY_FOR_GPU, INVALID_PTX, UNSUPPORTED_PTX_VERSION, INVALID_SOURCE, NOT_FOUND.
  constexpr std::array kCodes{200, 209, 218, 222, 300, 500};
  return std::ranges::find(kCodes, driver->code()) != kCodes.end();
}

/// Refuses artifacts without the kernel's symbol, before they are stored in the cache.
class CompilerOfKernels final : public compile::Compiler {
 public:
  explicit CompilerOfKernels(const compile::Compiler& compiler) : compiler_(compiler) {}
  const std::string& identity() const override { return compiler_.identity(); }
  const std::string& identity_for(const compile::Source& source) const override {
    return compiler_.identity_for(source);
  }
  compile::Artifact compile(const compile::Source& source) const override {
    compile::Artifact artifact = compiler_.compile(source);
    compile::check_has_kernel(artifact);
    return artifact;
  }

 private:
  const compile::Compiler& compiler_;
};

}  // namespace

Support runs_here(const compile::Artifact& artifact, const runtime::DeviceProperties& device) {
  if (device.emulated && artifact.ptx.empty())
    return refuse("{} has no PTX, which {} needs", artifact.name, device.name).as(RefusalCode::artifact);
  const bool is_compiled_there = !device.emulated && artifact.cubin.empty();  // the driver compiles PTX
  const bool runs =
      is_compiled_there ? device.target.runs_ptx(artifact.target) : device.target.runs_cubin(artifact.target);
  if (runs) return {};
  return refuse("{} is compiled for {}, but {} is {}", artifact.name, artifact.target.name(), device.name,
                device.target.name())
      .as(RefusalCode::architecture);
}

KernelImages::KernelImages(const Options& options, std::shared_ptr<runtime::Device> device)
    : toolchain_(options.toolchain),
      compile_threads_(compile_threads(options)),
      device_(std::move(device)),
      store_(store_options(options)),
      loaded_(options.max_loaded_kernels) {}

const compile::Compiler& KernelImages::compiler() {
  {
    const std::scoped_lock lock(mutex_);
    if (compiler_) return *compiler_;
  }
  std::unique_ptr<compile::Compiler> made = compile::make_compiler(toolchain_);
  const std::scoped_lock lock(mutex_);
  if (!compiler_) compiler_ = std::move(made);
  return *compiler_;
}

std::vector<ArtifactPtr> KernelImages::obtain_all(std::span<const compile::Source> sources,
                                                  const std::function<void(const compile::Artifact&)>& on_ready) {
  std::vector<ArtifactPtr> artifacts(sources.size());
  std::vector<compile::Source> compiled;
  std::vector<std::size_t> indices;  // for each compiled source, its index in `sources`
  for (std::size_t i = 0; i < sources.size(); ++i) {
    try {
      compiler().identity_for(sources[i]);
      compiled.push_back(sources[i]);
      indices.push_back(i);
    } catch (const ToolchainNotFound&) {
      artifacts[i] = store_.find_any(sources[i]);
      if (artifacts[i] == nullptr && toolchain_.backend == compile::Backend::none) {
        throw ToolchainNotFound(fmt::format(
            "{} is not in the cache, and compiling is disabled (TILEWRIGHT_COMPILER=none)", sources[i].name));
      }
      if (artifacts[i] == nullptr) throw;
      if (on_ready) on_ready(*artifacts[i]);
    }
  }
  if (compiled.empty()) return artifacts;
  std::vector<ArtifactPtr> fresh =
      store_.get_or_compile_all(compiled, CompilerOfKernels(compiler()), compile_threads_, on_ready);
  for (std::size_t i = 0; i < fresh.size(); ++i) artifacts[indices[i]] = std::move(fresh[i]);
  return artifacts;
}

LoadedPtr KernelImages::load_artifact(const compile::Artifact& artifact, std::uint32_t dynamic_smem_bytes,
                                      std::span<const std::string> suffixes) const {
  auto loaded = std::make_shared<LoadedKernels>();
  for (const std::string& suffix : suffixes) {
    // Only the first function, which is the one of the design, has dynamic shared memory.
    const std::uint32_t smem_bytes = loaded->empty() ? dynamic_smem_bytes : 0;
    loaded->push_back(device_->load({artifact.cubin, artifact.ptx}, artifact.symbol + suffix, smem_bytes));
  }
  return loaded;
}

LoadedPtr KernelImages::load_source(const compile::Source& source, std::uint32_t dynamic_smem_bytes,
                                    std::span<const std::string> suffixes) {
  if (!compile::is_compiled(source.language)) {
    const compile::Artifact adopted = compile::precompiled_artifact(source);
    runs_here(adopted, device_->properties()).or_throw();
    return load_artifact(adopted, dynamic_smem_bytes, suffixes);
  }
  try {
    const std::int64_t compiles = store_.counters().compiles;
    const ArtifactPtr artifact = obtain(source);
    if (store_.counters().compiles == compiles) {
      spdlog::debug("{}: found in the cache", source.name);
    } else {
      spdlog::debug("{}: compiled by {} in {:.0f} ms", source.name, artifact->compiler, artifact->compile_ms);
    }
    runs_here(*artifact, device_->properties()).or_throw();
    return load_artifact(*artifact, dynamic_smem_bytes, suffixes);
  } catch (const Error& error) {
    if (!is_fault_of_image(error) || !store_.discard(source)) throw;
    spdlog::warn("{} from the cache cannot be loaded and is compiled again: {}", source.name, error.what());
  }
  return load_artifact(*obtain(source), dynamic_smem_bytes, suffixes);
}

LoadedPtr KernelImages::load(const registry::Kernel& kernel, std::uint32_t dynamic_smem_bytes,
                             const ArtifactPtr& artifact, std::vector<LoadedPtr>& evicted) {
  const Digest digest = kernel.source_digest();
  {
    const std::scoped_lock lock(mutex_);
    if (const LoadedPtr* const found = loaded_.find(digest)) return *found;
  }
  const std::vector<std::string> suffixes = kernel.symbol_suffixes();
  LoadedPtr fresh = artifact == nullptr ? load_source(kernel.source(), dynamic_smem_bytes, suffixes)
                                        : load_artifact(*artifact, dynamic_smem_bytes, suffixes);
  const std::scoped_lock lock(mutex_);
  if (const LoadedPtr* const found = loaded_.find(digest)) return *found;
  evicted = loaded_.insert(digest, fresh);
  return fresh;
}

}  // namespace tilewright::engine
