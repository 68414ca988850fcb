// Implements runtime::Device by GlobalMemory, Program and run_grid().
#include "tilewright/emulator/device.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <thread>

#include "tilewright/arch/limits.hpp"
#include "tilewright/base/interruption.hpp"
#include "tilewright/base/memory.hpp"
#include "tilewright/base/target_features.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/emulator/checks.hpp"
#include "tilewright/emulator/grid.hpp"
#include "tilewright/emulator/ptx_parser.hpp"
#include "tilewright/emulator/tensor_map_encoding.hpp"
#include "tilewright/runtime/launch.hpp"

namespace tilewright::emulator {
namespace {

using runtime::DeviceAddress;
using runtime::StreamHandle;

runtime::DeviceProperties make_properties(Target target, const EmulatorOptions& options) {
  runtime::DeviceProperties properties;
  properties.name = "emulator:" + target.name();
  properties.target = target;
  properties.emulated = true;
  properties.sm_count = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  properties.memory_bytes = options.memory_bytes;
  properties.l2_bytes = std::int64_t{32} << 20;
  const arch::ArchLimits& limits = arch::limits(target);
  properties.smem_per_block_bytes = limits.smem_per_block_bytes;
  properties.smem_per_sm_bytes = limits.smem_per_sm_bytes;
  properties.registers_per_sm = limits.registers_per_sm;
  return properties;
}

/// The module's variables in .global and .const, with their initial values.
class ModuleVariables {
 public:
  ModuleVariables(std::shared_ptr<GlobalMemory> memory, const Module& module) : ModuleVariables(std::move(memory)) {
    addresses_.assign(module.variables.size(), 0);
    for (std::size_t i = 0; i < addresses_.size(); ++i) {
      const Variable& variable = module.variables[i];
      if (variable.space != Space::global && variable.space != Space::constant) continue;
      addresses_[i] = memory_->allocate(variable.size, Owner::module);
    }
    for (std::size_t i = 0; i < addresses_.size(); ++i) {
      if (addresses_[i] != 0) initialise(module.variables[i], addresses_[i]);
    }
  }
  ~ModuleVariables() {
    for (const std::uint64_t address : addresses_) memory_->deallocate(address);
  }
  ModuleVariables(const ModuleVariables&) = delete;
  ModuleVariables& operator=(const ModuleVariables&) = delete;

  const std::vector<std::uint64_t>& addresses() const { return addresses_; }

 private:
  /// The public constructor delegates to this one, so that the destructor runs if the rest of it throws.
  explicit ModuleVariables(std::shared_ptr<GlobalMemory> memory) : memory_(std::move(memory)) {}

  void initialise(const Variable& variable, std::uint64_t address) const {
    std::byte* to = memory_->host_pointer(address, variable.size);
    fill_bytes(to, 0, variable.size);
    const auto width = static_cast<std::size_t>(bytes(variable.type));
    for (const Initialiser& element : variable.initialisers) {
      std::uint64_t value = element.bits;
      if (element.variable != kNone) value += addresses_[element.variable];
      std::memcpy(to, &value, std::min(width, sizeof(value)));
      to += width;
    }
  }

  std::shared_ptr<GlobalMemory> memory_;
  std::vector<std::uint64_t> addresses_;
};

class EmulatedKernel final : public runtime::LoadedKernel {
 public:
  EmulatedKernel(const runtime::DeviceProperties& properties, EmulatorOptions options,
                 std::shared_ptr<GlobalMemory> memory, std::string_view ptx, const std::string& symbol,
                 std::uint32_t dynamic_smem_bytes)
      : properties_(properties),
        options_(options),
        memory_(std::move(memory)),
        module_(parse_ptx(ptx)),
        variables_(memory_, *module_),
        symbol_(symbol),
        program_(build_program(*module_, entry(), variables_.addresses())) {
    check_shared_memory(dynamic_smem_bytes);
  }

  void launch(const runtime::LaunchConfig& config, std::span<const std::byte> parameters) override {
    check(config);
    std::vector<std::byte> parameter_space = lay_out(config, parameters);
    if (config.grid.x == 0 || config.grid.y == 0 || config.grid.z == 0) return;
    const runtime::Dim3 cluster = cluster_of(config);
    run_grid(Launch{*module_, program_, options_, memory_->snapshot(), config.grid, config.block, cluster,
                    cluster != runtime::Dim3{} || program_.required_cluster[0] != 0, config.cooperative,
                    config.dynamic_smem_bytes, static_cast<std::uint32_t>(properties_.sm_count),
                    std::move(parameter_space)});
  }

 private:
  const Function& entry() const {
    const Function* const function = module_->find(symbol_);
    if (function == nullptr || !function->entry || function->declared_only) {
      throw EmulationError(fmt::format("emulator: the PTX has no kernel {}", printable(symbol_)));
    }
    return *function;
  }

  /// CTAs per cluster: those of the launch, else those that the kernel requires.
  runtime::Dim3 cluster_of(const runtime::LaunchConfig& config) const {
    const std::uint32_t* const required = program_.required_cluster;
    if (required[0] == 0 || config.cluster != runtime::Dim3{}) return config.cluster;
    return {required[0], required[1], required[2]};
  }

  void check_cluster(const runtime::LaunchConfig& config) const {
    const runtime::Dim3 cluster = cluster_of(config);
    if (cluster == runtime::Dim3{}) return;
    if (!has_feature(properties_.target, TargetFeature::clusters)) {
      throw InvalidArgument(fmt::format("{}: {} does not support clusters, got a cluster of {} CTAs", symbol_,
                                        properties_.name, to_string(cluster)));
    }
    const std::uint32_t* const required = program_.required_cluster;
    if (required[0] != 0 && cluster != runtime::Dim3{required[0], required[1], required[2]}) {
      throw InvalidArgument(fmt::format("{} requires clusters of ({},{},{}) CTAs, got clusters of {}", symbol_,
                                        required[0], required[1], required[2], to_string(cluster)));
    }
    const std::uint64_t ctas = std::uint64_t{cluster.x} * cluster.y * cluster.z;
    if (ctas == 0 || ctas > kMaxClusterCtas) {
      throw InvalidArgument(
          fmt::format("{}: a cluster must have 1 to {} CTAs, got {}", symbol_, kMaxClusterCtas, ctas));
    }
    if (config.grid.x % cluster.x != 0 || config.grid.y % cluster.y != 0 || config.grid.z % cluster.z != 0) {
      throw InvalidArgument(fmt::format("{}: grid {} is not a multiple of the cluster {}", symbol_,
                                        to_string(config.grid), to_string(cluster)));
    }
  }

  void check_shared_memory(std::uint32_t dynamic_bytes) const {
    const std::uint64_t bytes = std::uint64_t{program_.static_shared_bytes} + dynamic_bytes;
    if (static_cast<std::int64_t>(bytes) <= properties_.smem_per_block_bytes) return;
    throw InvalidArgument(fmt::format("{} needs {} bytes of shared memory per CTA, {} has {}", symbol_, bytes,
                                      properties_.name, properties_.smem_per_block_bytes));
  }

  /// The bytes of the kernel's parameter space: `parameters` as they are, or each parameter copied to its offset.
  std::vector<std::byte> lay_out(const runtime::LaunchConfig& config, std::span<const std::byte> parameters) const {
    if (config.parameter_offsets.empty()) {
      if (parameters.size() != program_.parameter_bytes) {
        throw InvalidArgument(fmt::format("{} takes {} bytes of parameters, got {}", symbol_, program_.parameter_bytes,
                                          parameters.size()));
      }
      return {parameters.begin(), parameters.end()};
    }
    std::vector<std::size_t> sizes;
    for (const ParameterRange& each : program_.parameters) sizes.push_back(each.size);
    runtime::check_parameters(symbol_, sizes, config.parameter_sizes).or_throw();
    std::vector<std::byte> laid_out(program_.parameter_bytes);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      std::ranges::copy(parameters.subspan(config.parameter_offsets[i], sizes[i]),
                        laid_out.begin() + static_cast<std::ptrdiff_t>(program_.parameters[i].begin));
    }
    return laid_out;
  }

  void check(const runtime::LaunchConfig& config) const {
    const runtime::Dim3& block = config.block;
    const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
    if (threads == 0 || threads > 1024 || block.x > 1024 || block.y > 1024 || block.z > 64) {
      throw InvalidArgument(
          fmt::format("{}: a block must have 1 to 1024 threads and extents of at most (1024,1024,64), got {}", symbol_,
                      to_string(block)));
    }
    const std::uint32_t* const required = program_.required_block;
    if (required[0] != 0 && block != runtime::Dim3{required[0], required[1], required[2]}) {
      throw InvalidArgument(fmt::format("{} requires blocks of ({},{},{}) threads, got blocks of {}", symbol_,
                                        required[0], required[1], required[2], to_string(block)));
    }
    if (program_.maximum_block != 0 && threads > program_.maximum_block) {
      throw InvalidArgument(
          fmt::format("{} allows {} threads per block, got {}", symbol_, program_.maximum_block, threads));
    }
    check_cluster(config);
    check_shared_memory(config.dynamic_smem_bytes);
  }

  const runtime::DeviceProperties properties_;
  const EmulatorOptions options_;
  const std::shared_ptr<GlobalMemory> memory_;
  const std::unique_ptr<const Module> module_;
  const ModuleVariables variables_;
  const std::string symbol_;
  const Program program_;
};

class EmulatedDevice final : public runtime::Device {
 public:
  EmulatedDevice(Target target, EmulatorOptions options)
      : options_(options),
        properties_(make_properties(target, options)),
        memory_(std::make_shared<GlobalMemory>(options.memory_bytes)) {}

  const runtime::DeviceProperties& properties() const override { return properties_; }

  DeviceAddress allocate(std::size_t bytes, StreamHandle) override { return memory_->allocate(bytes); }
  void deallocate(DeviceAddress address, StreamHandle) noexcept override { memory_->deallocate(address); }
  std::size_t allocated_bytes() const override { return memory_->allocated_bytes(Owner::caller); }

  DeviceAddress allocate_zeros(std::size_t bytes) override {
    const DeviceAddress address = memory_->allocate(bytes);
    try {
      fill(address, 0, bytes, nullptr);
    } catch (...) {
      memory_->deallocate(address);
      throw;
    }
    return address;
  }

  void copy_in(DeviceAddress to, const void* from, std::size_t bytes, StreamHandle) override {
    if (bytes != 0) copy_bytes(memory_->host_pointer(to, bytes), from, bytes);
  }
  void copy_out(void* to, DeviceAddress from, std::size_t bytes, StreamHandle) override {
    if (bytes != 0) copy_bytes(to, memory_->host_pointer(from, bytes), bytes);
  }
  void fill(DeviceAddress to, std::uint8_t value, std::size_t bytes, StreamHandle) override {
    if (bytes != 0) fill_bytes(memory_->host_pointer(to, bytes), value, bytes);
  }
  void synchronize(StreamHandle) override {}
  runtime::StreamOrder order_of(StreamHandle) override { return {}; }

  std::shared_ptr<runtime::LoadedKernel> load(const runtime::Image& image, const std::string& symbol,
                                              std::uint32_t dynamic_smem_bytes) override {
    const LongWork work;
    if (image.ptx.empty()) throw EmulationError(fmt::format("emulator: {} has no PTX", printable(symbol)));
    return std::make_shared<EmulatedKernel>(properties_, options_, memory_, image.ptx, symbol, dynamic_smem_bytes);
  }

  EncodedTensorMap encode(const TensorMap& map) override {
    runtime::check_encodable(map, properties_.target).or_throw();
    return encode_tensor_map(map);
  }

 private:
  const EmulatorOptions options_;
  const runtime::DeviceProperties properties_;
  const std::shared_ptr<GlobalMemory> memory_;
};

}  // namespace

std::shared_ptr<runtime::Device> make_emulated_device(Target target, EmulatorOptions options) {
  const int oldest = arch::arch_limits().front().sm;
  constexpr int newest = kSm90a.sm;  // instructions of later architectures, such as tcgen05, are not emulated
  if (target.sm < oldest || target.sm > newest) {
    throw InvalidArgument(fmt::format("the emulator supports sm_{} to sm_{}, got {}", oldest, newest, target.name()));
  }
  return std::make_shared<EmulatedDevice>(target, options);
}

}  // namespace tilewright::emulator
