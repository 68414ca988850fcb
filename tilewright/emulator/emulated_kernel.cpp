// Loads modules, checks launch configurations against kernels, and starts run_grid().
#include "tilewright/emulator/emulated_kernel.hpp"

#include <algorithm>
#include <cstring>
#include <thread>

#include "tilewright/arch/limits.hpp"
#include "tilewright/base/memory.hpp"
#include "tilewright/base/target_features.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/emulator/global_memory_checks.hpp"
#include "tilewright/emulator/grid.hpp"
#include "tilewright/emulator/instruction_targets.hpp"
#include "tilewright/emulator/launch_recorder.hpp"
#include "tilewright/emulator/ptx_parser.hpp"
#include "tilewright/runtime/launch.hpp"

namespace tilewright::emulator {

namespace {

/// The memory that cooperative_groups::this_grid().sync() reaches through %envreg1 and %envreg2: a size and a barrier
/// of 4 bytes each (cooperative_groups/details/driver_abi.h).
class Workspace {
 public:
  Workspace(GlobalMemory& memory, bool cooperative) : memory_(memory) {
    if (!cooperative) return;
    address_ = memory.allocate(kBytes, Owner::module);
    fill_bytes(memory.host_pointer(address_, kBytes), 0, kBytes);
  }
  ~Workspace() { memory_.deallocate(address_); }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  std::uint64_t address() const { return address_; }

  static constexpr std::size_t kBytes = 8;

 private:
  GlobalMemory& memory_;
  std::uint64_t address_ = 0;
};

}  // namespace

arch::ArchLimits device_limits(const Target& target) {
  if (target.sm >= arch::arch_limits().front().sm) return arch::limits(target);
  arch::ArchLimits limits = arch::arch_limits().front();
  limits.sm = 75;
  limits.part = "T4";
  limits.smem_per_block_bytes = limits.smem_per_sm_bytes = std::int64_t{64} << 10;
  limits.smem_reserved_per_block_bytes = 0;
  limits.max_threads_per_sm = 1024;
  limits.max_blocks_per_sm = 16;
  limits.sm_count = 40;
  limits.clock_ghz = 1.59;
  limits.l2_bytes = std::int64_t{4} << 20;
  return limits;
}

runtime::DeviceProperties make_device_properties(Target target, std::int64_t memory_bytes) {
  if (!parse_emulated_target(target.name())) {
    throw InvalidArgument(parse_emulated_target(target.name()).reason());
  }
  runtime::DeviceProperties properties;
  properties.name = "emulator:" + target.name();
  properties.target = target;
  properties.emulated = true;
  properties.sm_count = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  properties.memory_bytes = memory_bytes;
  properties.l2_bytes = std::int64_t{32} << 20;
  const arch::ArchLimits limits = device_limits(target);
  properties.smem_per_block_bytes = limits.smem_per_block_bytes;
  properties.smem_per_sm_bytes = limits.smem_per_sm_bytes;
  properties.registers_per_sm = limits.registers_per_sm;
  return properties;
}

// LoadedPtx -------------------------------------------------------------------------------------------------------

LoadedPtx::LoadedPtx(std::shared_ptr<GlobalMemory> memory, std::string_view ptx)
    : memory_(std::move(memory)), module_(parse_ptx(ptx)), addresses_(module_->variables.size(), 0) {
  try {
    for (std::size_t i = 0; i < addresses_.size(); ++i) {
      const Variable& variable = module_->variables[i];
      if (variable.space != Space::global && variable.space != Space::constant) continue;
      addresses_[i] = memory_->allocate(variable.size, Owner::module);
    }
    for (std::size_t i = 0; i < addresses_.size(); ++i) {
      if (addresses_[i] != 0) initialise(module_->variables[i], addresses_[i]);
    }
  } catch (...) {
    free_variables();
    throw;
  }
}

LoadedPtx::~LoadedPtx() { free_variables(); }

void LoadedPtx::free_variables() noexcept {
  for (const std::uint64_t address : addresses_) memory_->deallocate(address);
}

void LoadedPtx::initialise(const Variable& variable, std::uint64_t address) const {
  std::byte* to = memory_->host_pointer(address, variable.size);
  fill_bytes(to, 0, variable.size);
  const auto width = static_cast<std::size_t>(bytes(variable.type));
  for (const Initialiser& element : variable.initialisers) {
    std::uint64_t value = element.bits;
    if (element.variable != kNone) value += addresses_[element.variable];
    if (element.function != kNone) value += function_address(element.function);
    std::memcpy(to, &value, std::min(width, sizeof(value)));
    to += width;
  }
}

// EmulatedKernel --------------------------------------------------------------------------------------------------

EmulatedKernel::EmulatedKernel(const runtime::DeviceProperties& properties, EmulatorOptions options,
                               std::shared_ptr<const LoadedPtx> ptx, const std::string& symbol,
                               std::uint32_t dynamic_smem_bytes)
    : properties_(properties),
      options_(options),
      ptx_(std::move(ptx)),
      symbol_(symbol),
      program_(build_program(ptx_->module(), entry(), ptx_->addresses(), properties.target)) {
  check_target();
  check_shared_memory(dynamic_smem_bytes);
}

void EmulatedKernel::launch(const runtime::LaunchConfig& config, std::span<const std::byte> parameters) {
  LaunchRecorder* const recorder = LaunchRecorder::current();
  if (recorder == nullptr || recorder->find(symbol_) != nullptr) return launch(config, parameters, {});
  LaunchProfile profile;
  launch(config, parameters, {.profile = &profile});
  recorder->record(symbol_, profile);
}

void EmulatedKernel::launch(const runtime::LaunchConfig& config, std::span<const std::byte> parameters,
                            LoggedLaunch logged) {
  check(config);
  std::vector<std::byte> parameter_space = lay_out(config, parameters);
  const runtime::Dim3 cluster = cluster_of(config);
  Launch launch{ptx_->module(),
                program_,
                options_,
                RegionMap({}),
                config.grid,
                config.block,
                cluster,
                cluster != runtime::Dim3{} || program_.required_cluster[0] != 0,
                config.cooperative,
                config.dynamic_smem_bytes,
                static_cast<std::uint32_t>(properties_.sm_count),
                std::move(parameter_space)};
  const std::uint64_t threads = std::uint64_t{config.block.x} * config.block.y * config.block.z;
  launch.resident_ctas =
      static_cast<std::uint64_t>(std::max(1, max_ctas_per_sm(threads, config.dynamic_smem_bytes))) * launch.sm_count;
  if (GlobalMemoryChecks::are_active()) launch.options.check_global = true;
  launch.log = logged.log;
  launch.unwritten = logged.unwritten;
  if (options_.check_global && options_.check_races) launch.footprint = logged.footprint;
  if (options_.check_global && options_.check_races) launch.early = logged.early;
  const Workspace workspace(ptx_->memory(), config.cooperative);
  launch.target = properties_.target;
  launch.grid_workspace = workspace.address();
  if (program_.uses_heap) launch.heap = &ptx_->memory().heap();
  launch.regions = ptx_->memory().snapshot();
  Profile profile;
  if (logged.profile != nullptr) {
    profile.start(program_.code.size());
    launch.profile = &profile;
    launch.options.threads = 1;
  }
  run_grid(std::move(launch));
  for (Footprint* const each : {logged.footprint, logged.early}) {
    if (each == nullptr) continue;  // what kernels lock, or what lives as long as the launch, is no memory of streams
    each->remove(workspace.address(), workspace.address() + Workspace::kBytes);
    if (program_.uses_heap) each->remove(ptx_->memory().heap().begin(), ptx_->memory().heap().end());
  }
  if (logged.profile != nullptr) *logged.profile = summarise(profile, program_, ptx_->module());
}

const Function& EmulatedKernel::entry() const {
  const Function* const function = ptx_->module().find(symbol_);
  if (function == nullptr || !function->entry || function->declared_only) {
    std::string known;
    for (const Function& each : ptx_->module().functions) {
      if (each.entry && !each.declared_only)
        known += fmt::format("{}{}", known.empty() ? "" : ", ", printable(each.name, 80));
    }
    throw EmulationError(fmt::format(
        "emulator: the PTX has no kernel {}{}", printable(symbol_),
        known.empty() ? ""
                      : fmt::format("; it has {}. CUDA C++ keeps the name of a kernel that is extern \"C\"", known)));
  }
  return *function;
}

namespace {

/// No .target, or one that parse_target() does not know as it is older: sm_52, sm_75.
bool is_older_than_all(std::string_view target) {
  if (target.empty()) return true;
  constexpr std::string_view kPrefix = "sm_";
  const std::string_view digits = target.substr(std::min(kPrefix.size(), target.size()));
  return target.starts_with(kPrefix) && digits.size() == 2 &&
         digits.find_first_not_of("0123456789") == std::string_view::npos && digits <= "75";
}

}  // namespace

runtime::Dim3 EmulatedKernel::cluster_of(const runtime::LaunchConfig& config) const {
  const std::uint32_t* const required = program_.required_cluster;
  if (required[0] == 0 || config.cluster != runtime::Dim3{}) return config.cluster;
  return {required[0], required[1], required[2]};
}

void EmulatedKernel::check_cluster(const runtime::LaunchConfig& config) const {
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
    throw InvalidArgument(fmt::format("{}: a cluster must have 1 to {} CTAs, got {}", symbol_, kMaxClusterCtas, ctas));
  }
  if (config.grid.x % cluster.x != 0 || config.grid.y % cluster.y != 0 || config.grid.z % cluster.z != 0) {
    throw InvalidArgument(fmt::format("{}: grid {} is not a multiple of the cluster {}", symbol_,
                                      to_string(config.grid), to_string(cluster)));
  }
}

int EmulatedKernel::ptx_version() const {
  const std::string_view name = ptx_->module().target;
  int version = 0;
  for (const char c : name.substr(std::min(name.find('_'), name.size()))) {
    if (c >= '0' && c <= '9') version = 10 * version + (c - '0');
  }
  return version;
}

int EmulatedKernel::max_ctas_per_sm(std::uint64_t threads, std::uint64_t dynamic_smem_bytes) const {
  const arch::ArchLimits limits = device_limits(properties_.target);
  if (threads == 0 || threads > static_cast<std::uint64_t>(limits.max_threads_per_block)) return 0;
  const std::uint64_t shared = program_.static_shared_bytes + dynamic_smem_bytes;
  if (shared > static_cast<std::uint64_t>(limits.smem_per_block_bytes)) return 0;
  const int warps = static_cast<int>((threads + 31) / 32);
  const int ctas = std::min(limits.max_blocks_per_sm, limits.max_threads_per_sm / 32 / warps);
  if (shared == 0) return ctas;
  const std::uint64_t reserved = shared + static_cast<std::uint64_t>(limits.smem_reserved_per_block_bytes);
  return std::min(ctas, static_cast<int>(static_cast<std::uint64_t>(limits.smem_per_sm_bytes) / reserved));
}

void EmulatedKernel::check_target() const {
  const std::string& name = ptx_->module().target;
  const Result<Target> code = parse_target(name);
  if (code ? properties_.target.runs_ptx(*code) : is_older_than_all(name)) return;
  throw EmulationError(fmt::format("{}: the PTX is for {}, which {} does not run", printable(symbol_), printable(name),
                                   properties_.name));
}

void EmulatedKernel::check_shared_memory(std::uint32_t dynamic_bytes) const {
  const std::uint64_t bytes = std::uint64_t{program_.static_shared_bytes} + dynamic_bytes;
  if (static_cast<std::int64_t>(bytes) <= properties_.smem_per_block_bytes) return;
  throw InvalidArgument(fmt::format("{} needs {} bytes of shared memory per CTA, {} has {}", symbol_, bytes,
                                    properties_.name, properties_.smem_per_block_bytes));
}

std::vector<std::byte> EmulatedKernel::lay_out(const runtime::LaunchConfig& config,
                                               std::span<const std::byte> parameters) const {
  if (config.parameter_offsets.empty()) {
    if (parameters.size() != program_.parameter_bytes) {
      throw InvalidArgument(
          fmt::format("{} takes {} bytes of parameters, got {}", symbol_, program_.parameter_bytes, parameters.size()));
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

void EmulatedKernel::check(const runtime::LaunchConfig& config) const {
  const runtime::Dim3 &grid = config.grid, &block = config.block;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > 0x7fffffff || grid.y > 0xffff || grid.z > 0xffff) {
    throw InvalidArgument(
        fmt::format("{}: a grid must have 1 to (2147483647,65535,65535) CTAs, got {}", symbol_, to_string(grid)));
  }
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

}  // namespace tilewright::emulator
