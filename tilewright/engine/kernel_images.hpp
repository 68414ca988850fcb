// Obtains compiled kernels from the cache, the compiler or an artifact, and loads them on the device.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tilewright/base/fork.hpp"
#include "tilewright/base/lru_map.hpp"
#include "tilewright/cache/key.hpp"
#include "tilewright/cache/store.hpp"
#include "tilewright/compile/artifact.hpp"
#include "tilewright/compile/compiler.hpp"
#include "tilewright/engine/launch.hpp"
#include "tilewright/engine/options.hpp"
#include "tilewright/registry/kernel.hpp"
#include "tilewright/runtime/device.hpp"

namespace tilewright::engine {

using ArtifactPtr = std::shared_ptr<const compile::Artifact>;
using LoadedPtr = std::shared_ptr<const LoadedKernels>;

/// Whether the device can run the artifact's cubin or PTX.
Support runs_here(const compile::Artifact& artifact, const runtime::DeviceProperties& device);

/// Thread-safe.
class KernelImages {
 public:
  KernelImages(const Options& options, std::shared_ptr<runtime::Device> device);

  cache::Store& store() { return store_; }
  /// The compiler, which is made on first use. @throws ToolchainNotFound
  const compile::Compiler& compiler();

  /// Artifacts from the cache or the compiler. If there is no compiler of a source's language, artifacts made by any
  /// other compiler are accepted. `on_ready` is called when an artifact is ready, one call at a time.
  std::vector<ArtifactPtr> obtain_all(std::span<const compile::Source> sources,
                                      const std::function<void(const compile::Artifact&)>& on_ready);

  /// Returns the kernel's loaded functions, which are loaded on first use, from `artifact` if it is not null. Kernels
  /// evicted by the LRU limit are stored in `evicted`.
  LoadedPtr load(const registry::Kernel& kernel, std::uint32_t dynamic_smem_bytes, const ArtifactPtr& artifact,
                 std::vector<LoadedPtr>& evicted);

 private:
  ArtifactPtr obtain(const compile::Source& source) { return obtain_all(std::span(&source, 1), {}).front(); }
  /// If the device cannot load the cached image, the source is compiled again, once.
  LoadedPtr load_source(const compile::Source& source, std::uint32_t dynamic_smem_bytes,
                        std::span<const std::string> suffixes);
  LoadedPtr load_artifact(const compile::Artifact& artifact, std::uint32_t dynamic_smem_bytes,
                          std::span<const std::string> suffixes) const;

  compile::ToolchainOptions toolchain_;
  int compile_threads_;
  std::shared_ptr<runtime::Device> device_;
  cache::Store store_;

  ForkSafeMutex mutex_;  // guards the members below
  std::unique_ptr<compile::Compiler> compiler_;
  LruMap<Digest, LoadedPtr, cache::DigestHash> loaded_;  // by source_digest()
};

}  // namespace tilewright::engine
