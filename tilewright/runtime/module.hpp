// Loaded cubins or PTX, and kernels in them.
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

/// Whether the bytes are a complete ELF image of CUDA code: header, machine, and all tables and sections within the
/// bytes. Needed because the driver takes no length and reads past the end of a truncated image. Other damage is not
/// detected: code that reads images from disk must verify their digest first.
Support check_cubin(std::span<const std::byte> cubin);

/// A loaded CUlibrary, which is unloaded when destroyed.
class Module {
 public:
  /// @throws InvalidArgument if check_cubin() refuses the bytes; DriverError, for instance for code of another
  /// architecture
  Module(std::shared_ptr<CudaContext> context, std::span<const std::byte> cubin);
  /// Compiled by the driver. @throws CompileError with the driver's log
  Module(std::shared_ptr<CudaContext> context, const std::string& ptx);
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  ~Module();

  /// @throws InvalidArgument if `symbol` is not an identifier; DriverError if the module has no such kernel
  KernelHandle kernel(const std::string& symbol) const;

 private:
  std::shared_ptr<CudaContext> context_;
  LibraryHandle handle_ = nullptr;
};

/// A kernel ready to launch.
class CudaKernel final : public LoadedKernel {
 public:
  /// @throws InvalidArgument if static and dynamic shared memory together exceed the device's limit, and as Module does
  CudaKernel(std::shared_ptr<CudaContext> context, const Image& image, const std::string& symbol,
             std::uint32_t dynamic_smem_bytes);

  /// @throws InvalidArgument if the launch exceeds a limit; DriverError
  void launch(const LaunchConfig& config, std::span<const std::byte> parameters) override;

  const KernelLimits& limits() const { return limits_; }
  /// The CUfunction, for use with the driver directly.
  FunctionHandle function() const { return function_; }

 private:
  /// Sets the attribute to the maximum, which costs nothing: only the launch determines how much is used.
  void opt_in_to_dynamic_smem(KernelHandle kernel, const std::string& symbol, std::uint32_t dynamic_smem_bytes);
  int attribute(KernelHandle kernel, KernelAttribute attribute) const;
  /// The size of the kernel's first parameter; 0 if it has none or the driver does not report it. Only the first is
  /// queried, because an index past the last parameter is an error for the driver and for tools that intercept its
  /// calls.
  std::size_t parameter_bytes(KernelHandle kernel) const;
  /// Refuses parameters whose sizes differ from those of the kernel, if the driver reports them. The number of
  /// parameters is known from PTX only; without PTX, it is taken to be that of `given`.
  Support check_several_parameters(std::span<const std::uint16_t> given);
  void query_parameter_sizes(std::size_t count);

  std::shared_ptr<CudaContext> context_;
  Module module_;
  std::string symbol_;
  KernelHandle kernel_ = nullptr;
  FunctionHandle function_ = nullptr;
  KernelLimits limits_;
  std::mutex parameter_mutex_;  // guards the members below
  std::optional<std::size_t> parameter_count_;
  std::vector<std::size_t> parameter_sizes_;  // sizes of the first parameters, as many as were queried
};

}  // namespace tilewright::runtime
