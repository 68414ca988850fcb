// A cubin in the driver and one kernel of it.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tilewright/runtime/cuda_context.hpp"
#include "tilewright/runtime/launch.hpp"

namespace tilewright::runtime {

/// Whether the bytes are a whole ELF image of CUDA code: header, machine, and every table and section inside the bytes.
/// The driver takes no length and reads past the end of a truncated image. It finds no other damage: whoever reads
/// images from disk compares their digest first.
Support check_cubin(std::span<const std::byte> cubin);

/// A loaded library of the driver; unloads when destroyed.
class Module {
 public:
  /// @throws InvalidArgument when check_cubin refuses the bytes; DriverError, e.g. for code of another architecture.
  Module(std::shared_ptr<CudaContext> context, std::span<const std::byte> cubin);
  /// Has the driver compile. @throws CompileError with the driver's log.
  Module(std::shared_ptr<CudaContext> context, const std::string& ptx);
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  ~Module();

  /// @throws InvalidArgument when `symbol` is not an identifier, DriverError when the module has no such kernel.
  KernelHandle kernel(const std::string& symbol) const;

 private:
  std::shared_ptr<CudaContext> context_;
  LibraryHandle handle_ = nullptr;
};

/// A kernel ready to launch.
class CudaKernel final : public LoadedKernel {
 public:
  /// @throws InvalidArgument when static and dynamic shared memory together exceed the device's limit, and what Module
  /// throws.
  CudaKernel(std::shared_ptr<CudaContext> context, const Image& image, const std::string& symbol,
             std::uint32_t dynamic_smem_bytes);

  /// @throws InvalidArgument with the number when the launch exceeds a limit, DriverError.
  void launch(const LaunchConfig& config, std::span<const std::byte> parameters) override;

  const KernelLimits& limits() const { return limits_; }
  /// The CUfunction, for use with the driver directly.
  FunctionHandle function() const { return function_; }

 private:
  /// More than what was asked for is no cost: it is the launch that takes.
  void make_smem_available(KernelHandle kernel, const std::string& symbol, std::uint32_t dynamic_smem_bytes);
  int attribute(KernelHandle kernel, KernelAttribute attribute) const;
  /// Of the kernel's one struct; 0 where it has none or the driver does not say. An index past the last parameter is
  /// an error to the driver and to the tools that watch it, so no other is asked for.
  std::size_t parameter_bytes(KernelHandle kernel) const;
  /// Refuses parameters that are not, one by one, the kernel's own; nothing where the driver does not say. How many
  /// there are only PTX says: without it, those that are given are taken to be all.
  Support check_own_parameters(std::span<const std::uint16_t> given);
  void ask_for_parameters(std::size_t count);

  std::shared_ptr<CudaContext> context_;
  Module module_;
  std::string symbol_;
  KernelHandle kernel_ = nullptr;
  FunctionHandle function_ = nullptr;
  KernelLimits limits_;
  std::mutex own_mutex_;  // guards what follows
  std::optional<std::size_t> parameter_count_;
  std::vector<std::size_t> own_sizes_;  // of the first parameters, as far as they were asked for
};

}  // namespace tilewright::runtime
