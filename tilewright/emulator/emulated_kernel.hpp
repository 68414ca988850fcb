// The kernels of loaded PTX, as an emulated device and EmulatedModule launch them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/arch/limits.hpp"
#include "tilewright/emulator/cta.hpp"
#include "tilewright/emulator/finding_log.hpp"
#include "tilewright/emulator/global_memory.hpp"
#include "tilewright/emulator/options.hpp"
#include "tilewright/emulator/program.hpp"
#include "tilewright/emulator/unwritten_bytes.hpp"
#include "tilewright/runtime/device.hpp"

namespace tilewright::emulator {

/// arch::limits(), and those of sm_75, for which no kernels are planned.
arch::ArchLimits device_limits(const Target& target);

/// @throws InvalidArgument for a target that parse_emulated_target() refuses
runtime::DeviceProperties make_device_properties(Target target, std::int64_t memory_bytes);

/// A parsed module, with its variables in .global and .const and their initial values. Kernels that are made of the
/// same object share the variables.
class LoadedPtx {
 public:
  /// @throws EmulationFinding malformed_ptx; OutOfMemory
  LoadedPtx(std::shared_ptr<GlobalMemory> memory, std::string_view ptx);
  ~LoadedPtx();
  LoadedPtx(const LoadedPtx&) = delete;
  LoadedPtx& operator=(const LoadedPtx&) = delete;

  const Module& module() const { return *module_; }
  GlobalMemory& memory() const { return *memory_; }
  /// By index in Module::variables; 0 for variables in other state spaces.
  const std::vector<std::uint64_t>& addresses() const { return addresses_; }

 private:
  void initialise(const Variable& variable, std::uint64_t address) const;
  void free_variables() noexcept;

  const std::shared_ptr<GlobalMemory> memory_;
  const std::unique_ptr<const Module> module_;
  std::vector<std::uint64_t> addresses_;
};

/// The parameters of a launch that continues after findings.
struct LoggedLaunch {
  FindingLog* log = nullptr;
  UnwrittenBytes* unwritten =
      nullptr;                       // global memory that no one has written; the launch's writes are removed from it
  Footprint* footprint = nullptr;    // set to what the launch accessed, if races in global memory are looked for
  Footprint* early = nullptr;        // set to what it accessed before griddepcontrol.wait, as `footprint`
  LaunchProfile* profile = nullptr;  // set after the launch; null: nothing is counted
};

class EmulatedKernel final : public runtime::LoadedKernel {
 public:
  /// @throws EmulationFinding; EmulationError if the module has no such kernel; InvalidArgument for more shared memory
  /// than a CTA may have
  EmulatedKernel(const runtime::DeviceProperties& properties, EmulatorOptions options,
                 std::shared_ptr<const LoadedPtx> ptx, const std::string& symbol, std::uint32_t dynamic_smem_bytes);

  void launch(const runtime::LaunchConfig& config, std::span<const std::byte> parameters) override;
  /// Runs the launch to its end, and keeps its findings in the log. @throws InvalidArgument
  void launch(const runtime::LaunchConfig& config, std::span<const std::byte> parameters, LoggedLaunch logged);

  const Program& program() const { return program_; }
  /// The compute capability that the PTX is for, times 10.
  int ptx_version() const;
  /// How many CTAs are resident on a multiprocessor; 0 if a CTA cannot run. Registers, which PTX does not tell, do not
  /// count.
  int max_ctas_per_sm(std::uint64_t threads, std::uint64_t dynamic_smem_bytes) const;

 private:
  const Function& entry() const;
  /// CTAs per cluster: those of the launch, else those that the kernel requires.
  runtime::Dim3 cluster_of(const runtime::LaunchConfig& config) const;
  void check_cluster(const runtime::LaunchConfig& config) const;
  /// @throws EmulationError for PTX of a later target
  void check_target() const;
  void check_shared_memory(std::uint32_t dynamic_bytes) const;
  /// The bytes of the kernel's parameter space: `parameters` as they are, or each parameter copied to its offset.
  std::vector<std::byte> lay_out(const runtime::LaunchConfig& config, std::span<const std::byte> parameters) const;
  void check(const runtime::LaunchConfig& config) const;

  const runtime::DeviceProperties properties_;
  const EmulatorOptions options_;
  const std::shared_ptr<const LoadedPtx> ptx_;
  const std::string symbol_;
  const Program program_;
};

}  // namespace tilewright::emulator
