// Compiled kernels, from the cache, a compiler or an artifact, and those of them that the device has loaded.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "tilewright/base/fork.hpp"
#include "tilewright/base/lru_map.hpp"
#include "tilewright/cache/key.hpp"
#include "tilewright/cache/store.hpp"
#include "tilewright/compile/artifact.hpp"
#include "tilewright/compile/compiler.hpp"
#include "tilewright/engine/options.hpp"
#include "tilewright/registry/kernel.hpp"
#include "tilewright/runtime/device.hpp"

namespace tilewright::engine {

using ArtifactPtr = std::shared_ptr<const compile::Artifact>;
using LoadedPtr = std::shared_ptr<runtime::LoadedKernel>;

/// Whether the device can run what the artifact holds.
Support runs_here(const compile::Artifact& artifact, const runtime::DeviceProperties& device);

/// Thread-safe.
class KernelImages {
 public:
  KernelImages(const Options& options, std::shared_ptr<runtime::Device> device);

  cache::Store& store() { return store_; }
  /// Made when first asked for. @throws ToolchainNotFound
  const compile::Compiler& compiler();

  /// From the cache or the compiler; where there is no compiler, images that another one made.
  /// `on_ready` is called as each is ready, one call at a time.
  std::vector<ArtifactPtr> obtain_all(std::span<const compile::Source> sources,
                                      const std::function<void(const compile::Artifact&)>& on_ready);

  /// The kernel on the device, loaded once: from `artifact` if there is one, else compiled or cached. What had to go
  /// for it is appended to `evicted`.
  LoadedPtr load(const registry::Kernel& kernel, std::uint32_t dynamic_smem_bytes, const ArtifactPtr& artifact,
                 std::vector<LoadedPtr>& evicted);

 private:
  ArtifactPtr obtain(const compile::Source& source) { return obtain_all(std::span(&source, 1), {}).front(); }
  /// Compiled anew, once, where the device cannot load what the cache has.
  LoadedPtr load_source(const compile::Source& source, std::uint32_t dynamic_smem_bytes);
  LoadedPtr load_artifact(const compile::Artifact& artifact, std::uint32_t dynamic_smem_bytes) const;

  compile::ToolchainOptions toolchain_;
  int compile_threads_;
  std::shared_ptr<runtime::Device> device_;
  cache::Store store_;

  ForkSafeMutex mutex_;  // guards what follows
  std::unique_ptr<compile::Compiler> compiler_;
  LruMap<Digest, LoadedPtr, cache::DigestHash> loaded_;  // by source_digest()
};

}  // namespace tilewright::engine
