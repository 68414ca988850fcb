#include "tools/cuda_runtime/machine.hpp"

#include <cxxabi.h>
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <utility>

#include "tilewright/arch/limits.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/base/interruption.hpp"
#include "tilewright/base/rounding.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/emulator/emulated_kernel.hpp"
#include "tilewright/emulator/instruction_targets.hpp"
#include "tools/cuda_runtime/caught_signals.hpp"
#include "tools/cuda_runtime/error_table.hpp"
#include "tools/cuda_runtime/host_blocks/host_blocks.hpp"

namespace tilewright::cuda_runtime {
namespace {

using emulator::Finding;
using emulator::FindingKind;
using emulator::to_string;

/// The runtime's code for a grid or block that is too large; the driver has none.
constexpr auto kInvalidConfiguration = static_cast<CUresult>(9);

constexpr std::uint32_t kDefaultDynamicShared = 48 << 10;

Settings settings_of_environment() {
  const char* const text = std::getenv(kSettingsVariable);
  return text == nullptr ? Settings() : parse_settings(text);
}

std::string program_name() {
  char path[4096];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof(path));
  return size <= 0 ? "program" : std::string(path, static_cast<std::size_t>(size));
}

runtime::DeviceProperties properties_of(Target target, const Settings& settings) {
  runtime::DeviceProperties properties = emulator::make_device_properties(target, settings.memory_bytes);
  properties.sm_count = settings.multiprocessors;
  return properties;
}

std::string demangled(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status),
                                                         &std::free);
  return printable(status == 0 ? name.get() : symbol, 200);
}

/// How a program gets memory of this kind.
std::string_view allocator_of(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::device:
      return "cudaMalloc(), and is freed by cudaFree()";
    case MemoryKind::managed:
      return "cudaMallocManaged(), and is freed by cudaFree()";
    case MemoryKind::pinned:
      return "cudaMallocHost() or cudaHostAlloc(), and is freed by cudaFreeHost()";
    case MemoryKind::registered:
      return "the host, and is registered: cudaHostUnregister() ends that";
    case MemoryKind::graph:
      return "a graph";
  }
  return "";
}

/// Returns the error that a launch leaves behind if it ends at the finding: on a GPU, every later call returns it.
CUresult error_of(const Finding& finding) {
  if (!finding.is_fatal) return CUDA_SUCCESS;
  switch (finding.kind) {
    case FindingKind::trap:
      return finding.detail.starts_with("assertion failed") ? CUDA_ERROR_ASSERT : CUDA_ERROR_LAUNCH_FAILED;
    case FindingKind::deadlock:
    case FindingKind::barrier_divergence:
    case FindingKind::transaction_mismatch:
    case FindingKind::no_progress:
      return CUDA_ERROR_LAUNCH_TIMEOUT;
    case FindingKind::unsupported_instruction:
      return CUDA_ERROR_NOT_SUPPORTED;
    case FindingKind::out_of_bounds_global:
    case FindingKind::out_of_bounds_shared:
      return CUDA_ERROR_ILLEGAL_ADDRESS;
    case FindingKind::misaligned_access:
      return CUDA_ERROR_MISALIGNED_ADDRESS;
    case FindingKind::bad_descriptor:
      return CUDA_ERROR_ILLEGAL_INSTRUCTION;
    default:
      return CUDA_ERROR_LAUNCH_FAILED;
  }
}

/// The same for launches with the same kernel, extents and arguments.
std::string key_of(const KernelLaunch& launch) {
  const runtime::LaunchConfig& config = launch.config;
  std::string key = fmt::format("{} {} {} {} {} ", static_cast<const void*>(launch.function), to_string(config.grid),
                                to_string(config.block), to_string(config.cluster), config.dynamic_smem_bytes);
  key.append(reinterpret_cast<const char*>(launch.parameters.data()), launch.parameters.size());
  return key;
}

bool is_to_device(const Copy& copy) {
  return copy.kind == Copy::Kind::host_to_device || copy.kind == Copy::Kind::device_to_device;
}
bool is_from_device(const Copy& copy) {
  return copy.kind == Copy::Kind::device_to_host || copy.kind == Copy::Kind::device_to_device;
}

/// Visits the rows of a copy, which are one where they follow each other.
template <class Visit>
void for_each_row(const Copy& copy, const Visit& visit) {
  const bool is_whole =
      copy.depth == 1 && (copy.height == 1 || (copy.to_pitch == copy.width && copy.from_pitch == copy.width));
  const std::size_t width = is_whole ? copy.width * copy.height : copy.width;
  const std::size_t height = is_whole ? 1 : copy.height;
  for (std::size_t z = 0; z < copy.depth; ++z) {
    for (std::size_t y = 0; y < height; ++y) {
      visit(CopyRow{copy.to + (z * copy.to_height + y) * copy.to_pitch,
                    copy.from + (z * copy.from_height + y) * copy.from_pitch, width});
    }
  }
}

}  // namespace

// Modules ------------------------------------------------------------------------------------------------------------

const std::shared_ptr<const emulator::LoadedPtx>& Module::loaded() {
  if (loaded_) return loaded_;
  require(failure_ == CUDA_SUCCESS, failure_);
  Machine& machine = Machine::get();
  failure_ = CUDA_ERROR_INVALID_PTX;
  try {
    loaded_ = std::make_shared<emulator::LoadedPtx>(machine.memory(), read_ptx_());
    failure_ = CUDA_SUCCESS;
  } catch (const emulator::EmulationFinding& finding) {
    machine.report.add("", finding.finding());
    machine.write_report();
  } catch (const InvalidArgument& error) {
    failure_ = CUDA_ERROR_NO_BINARY_FOR_GPU;
    machine.note(error.what());
  }
  require(failure_ == CUDA_SUCCESS, failure_);
  return loaded_;
}

Function* Module::find_function(const std::string& name) {
  const emulator::Function* const found = loaded()->module().find(name);
  return found != nullptr && found->entry && !found->declared_only ? function(name) : nullptr;
}

Function* Module::function(const std::string& name) {
  std::unique_ptr<Function>& found = functions_[name];
  if (!found) {
    found = std::make_unique<Function>();
    found->module = this;
    found->name = name;
    Machine::get().functions_.insert(found.get());
  }
  return found.get();
}

std::vector<Function*> Module::all_functions() {
  std::vector<Function*> all;
  for (const emulator::Function& each : loaded()->module().functions) {
    if (each.entry && !each.declared_only) all.push_back(function(std::string(each.name)));
  }
  return all;
}

std::pair<CUdeviceptr, std::size_t> Module::variable(const std::string& name) {
  const emulator::Module& parsed = loaded()->module();
  for (std::size_t i = 0; i < parsed.variables.size(); ++i) {
    const CUdeviceptr address = loaded()->addresses()[i];
    if (parsed.variables[i].name == name && address != 0) return {address, parsed.variables[i].size};
  }
  fail(CUDA_ERROR_NOT_FOUND);
}

// Graphs -------------------------------------------------------------------------------------------------------------

Node* Graph::add(Work work, CUgraphNodeType type, std::vector<Node*> dependencies) {
  nodes.push_back(std::make_unique<Node>(Node{this, std::move(work), type, std::move(dependencies), true}));
  return nodes.back().get();
}

std::vector<Node*> Graph::in_order() const {
  std::vector<Node*> order;
  std::set<const Node*> placed;
  while (order.size() < nodes.size()) {
    const std::size_t before = order.size();
    for (const auto& node : nodes) {
      if (placed.contains(node.get())) continue;
      if (!std::ranges::all_of(node->dependencies, [&](const Node* each) { return placed.contains(each); })) continue;
      placed.insert(node.get());
      order.push_back(node.get());
    }
    require(order.size() > before);  // a cycle
  }
  return order;
}

std::shared_ptr<Graph> Graph::clone(std::map<const Node*, Node*>* copies) const {
  auto copy = std::make_shared<Graph>();
  std::map<const Node*, Node*> own;
  for (const auto& node : nodes) {
    Node* const added = copy->add(node->work, node->type, {});
    added->enabled = node->enabled;
    if (auto* const child = std::get_if<ChildGraph>(&added->work)) child->graph = child->graph->clone();
    own[node.get()] = added;
  }
  for (const auto& node : nodes) {
    for (const Node* const each : node->dependencies) own[node.get()]->dependencies.push_back(own.at(each));
  }
  if (copies != nullptr) *copies = std::move(own);
  return copy;
}

// The machine --------------------------------------------------------------------------------------------------------

Machine& Machine::get() {
  static auto* const machine = new Machine;
  return *machine;
}

Machine::Machine()
    : settings(settings_of_environment()),
      target(*emulator::parse_emulated_target(settings.target)),
      properties(properties_of(target, settings)),
      memory_(std::make_shared<emulator::GlobalMemory>(settings.memory_bytes)),
      process_(getpid()) {
  report.program = program_name();
  null_stream.id = 0;
  legacy_stream.id = 1;
  per_thread_stream.id = 2;
  pools.insert(&default_pool);
}

emulator::EmulatorOptions Machine::emulator_options() const {
  emulator::EmulatorOptions options;
  options.check_global = settings.check_global;
  options.check_warps = settings.check_global;
  options.threads = settings.threads;
  options.steps_per_cta = settings.steps_per_cta;
  options.steps_setting = "--steps of tilewright emulate run";
  options.memory_bytes = settings.memory_bytes;
  return options;
}

// Memory -------------------------------------------------------------------------------------------------------------

CUdeviceptr Machine::allocate(std::size_t bytes, MemoryKind kind) {
  // Memory of all kinds counts, although each kind has an allocator of its own.
  const std::size_t left = free_bytes();
  if (bytes > left) {
    fail(CUDA_ERROR_OUT_OF_MEMORY, fmt::format("emulator: cannot allocate {} bytes: {} of {} bytes are free", bytes,
                                               left, settings.memory_bytes));
  }
  CUdeviceptr address = 0;
  if (kind == MemoryKind::device) {
    try {
      address = memory_->allocate(bytes);
    } catch (const OutOfMemory& error) {
      fail(CUDA_ERROR_OUT_OF_MEMORY, error.what());
    }
    unwritten_.add(address, address + bytes);
  } else {
    std::byte* const memory = host_watch_.allocate(bytes);
    if (memory == nullptr)
      fail(CUDA_ERROR_OUT_OF_MEMORY, fmt::format("emulator: the host has no {} bytes of memory left", bytes));
    memory_->lend(memory, bytes);
    address = reinterpret_cast<CUdeviceptr>(memory);
    order_.add_host_memory(address, address + bytes);
    host_bytes_ += bytes;
  }
  allocations_[address] = {kind, bytes};
  order_.forget(address, address + bytes);
  return address;
}

void Machine::release(CUdeviceptr address, const Allocation& allocation) {
  memory_->deallocate(address, allocation.kind != MemoryKind::registered);
  order_.remove_host_memory(address, address + allocation.bytes);
  if (host_watch_.free(reinterpret_cast<std::byte*>(address))) host_bytes_ -= allocation.bytes;
}

Allocate Machine::graph_allocation(std::size_t bytes) const {
  constexpr std::size_t kRedZone = 4096;
  const std::size_t size = (std::max<std::size_t>(bytes, 1) + kRedZone - 1) / kRedZone * kRedZone + 2 * kRedZone;
  std::shared_ptr<void> storage(std::aligned_alloc(kRedZone, size), &std::free);
  require(storage != nullptr, CUDA_ERROR_OUT_OF_MEMORY);
  return {reinterpret_cast<CUdeviceptr>(storage.get()) + kRedZone, bytes, std::move(storage)};
}

void Machine::allocate(const Allocate& allocation, const Line& line) {
  const CUdeviceptr begin = allocation.address;
  require(memory_->lend(reinterpret_cast<std::byte*>(begin), allocation.bytes));
  allocations_[begin] = {MemoryKind::graph, allocation.bytes};
  graph_storage_[begin] = allocation.storage;
  std::memset(reinterpret_cast<void*>(begin), 0xff, allocation.bytes);
  unwritten_.add(begin, begin + allocation.bytes);
  order_.forget(begin, begin + allocation.bytes);
  emulator::Footprint footprint;
  footprint.writes.add(begin, begin + allocation.bytes);
  note_accesses(line, "", "an allocation", std::move(footprint));
}

void Machine::note_allocation(CUdeviceptr address, std::size_t bytes, Stream* stream) {
  emulator::Footprint footprint;
  footprint.writes.add(address, address + bytes);
  note_accesses(line_of(stream), "", "cudaMallocAsync", std::move(footprint));
}

void Machine::free_in_order(CUdeviceptr address, Stream* stream) {
  const auto found = allocations_.find(address);
  if (found == allocations_.end()) free(address, {});  // fails, and says why
  emulator::Footprint footprint;
  footprint.writes.add(address, address + found->second.bytes);
  note_accesses(line_of(stream), "", "cudaFreeAsync", std::move(footprint));
  free(address, {MemoryKind::device, MemoryKind::managed, MemoryKind::graph});
}

void Machine::free(CUdeviceptr address, std::initializer_list<MemoryKind> kinds) {
  run_deferred();
  repeated_work_.forget();
  const auto found = allocations_.find(address);
  if (found == allocations_.end()) {
    fail(CUDA_ERROR_INVALID_VALUE,
         fmt::format("{:#x} is not the address of an allocation ({})", address, memory_->snapshot().describe(address)));
  }
  if (std::ranges::find(kinds, found->second.kind) == kinds.end()) {
    fail(CUDA_ERROR_INVALID_VALUE, fmt::format("{:#x} was allocated by {}", address, allocator_of(found->second.kind)));
  }
  unwritten_.remove(address, address + found->second.bytes);
  if (const auto pool = pooled.find(address); pool != pooled.end()) {
    pool->second->used -= found->second.bytes;
    pooled.erase(pool);
  }
  release(address, found->second);
  allocations_.erase(found);
  graph_storage_.erase(address);
}

void Machine::register_host(void* address, std::size_t bytes) {
  require(address != nullptr && bytes != 0);
  if (!memory_->lend(static_cast<std::byte*>(address), bytes)) {
    fail(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
         fmt::format("{} bytes at {} overlap an allocation of CUDA or memory that is registered", bytes, address));
  }
  const auto begin = reinterpret_cast<CUdeviceptr>(address);
  allocations_[begin] = {MemoryKind::registered, bytes};
  order_.add_host_memory(begin, begin + bytes);
}

void Machine::unregister_host(void* address) {
  const auto found = allocations_.find(reinterpret_cast<CUdeviceptr>(address));
  require(found != allocations_.end() && found->second.kind == MemoryKind::registered,
          CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  release(found->first, found->second);
  allocations_.erase(found);
}

std::pair<CUdeviceptr, const Allocation*> Machine::find(CUdeviceptr address) const {
  auto after = allocations_.upper_bound(address);
  if (after == allocations_.begin()) return {0, nullptr};
  --after;
  if (address - after->first >= std::max<std::size_t>(after->second.bytes, 1)) return {0, nullptr};
  return {after->first, &after->second};
}

std::optional<Machine::KnownMemory> Machine::known_memory(CUdeviceptr address) const {
  if (const auto [begin, found] = find(address); found != nullptr) return KnownMemory{found->kind, begin, found->bytes};
  const std::optional<emulator::Region> variable = memory_->find(address, 1);
  if (!variable) return std::nullopt;
  const auto has_address = [&](const auto& range) { return range.first <= address && address < range.second; };
  const bool is_managed = std::ranges::any_of(managed_variables_.ranges(), has_address);
  return KnownMemory{is_managed ? MemoryKind::managed : MemoryKind::device, variable->begin,
                     variable->end - variable->begin};
}

std::size_t Machine::free_bytes() const {
  const std::size_t used = memory_->allocated_bytes(emulator::Owner::caller) +
                           memory_->allocated_bytes(emulator::Owner::module) + host_bytes_;
  const auto total = static_cast<std::size_t>(settings.memory_bytes);
  return total - std::min(used, total);  // variables of modules may exceed it
}

void Machine::mark_written(CUdeviceptr address, std::size_t bytes) { unwritten_.remove(address, address + bytes); }

Pool& Machine::pool_of(CUdeviceptr address) {
  const auto found = pooled.find(address);
  return found == pooled.end() ? default_pool : *found->second;
}

bool Machine::is_inside(const std::byte* address, std::size_t bytes) const {
  return memory_->find(reinterpret_cast<CUdeviceptr>(address), bytes).has_value();
}

std::string Machine::why_outside(std::string_view what, const std::byte* address, std::size_t bytes) const {
  if (address == nullptr) return fmt::format("{} is a null pointer", what);
  const auto begin = reinterpret_cast<CUdeviceptr>(address);
  const std::string where = memory_->snapshot().describe(begin);
  return fmt::format("{}, {} bytes at {:#x}, is not inside one allocation ({})", what, bytes, begin, where);
}

void Machine::copy(const Copy& copy, const Line& line) {
  if (copy.width == 0 || copy.height == 0 || copy.depth == 0) return;
  if (copy.to == nullptr) fail(CUDA_ERROR_INVALID_VALUE, why_outside("the destination", copy.to, 0));
  if (copy.from == nullptr) fail(CUDA_ERROR_INVALID_VALUE, why_outside("the source", copy.from, 0));
  for_each_row(copy, [&](const CopyRow& row) { check_row(copy, row); });
  check_copy_of_unwritten(copy, line);
  emulator::Footprint footprint;
  for_each_row(copy, [&](const CopyRow& row) { copy_row(row, footprint, line); });
  note_accesses(line, "", "a copy", std::move(footprint));
  if (is_from_device(copy) && !is_inside(copy.to, 1)) order_.host_waits(*line.clock);  // to memory that is not pinned
}

void Machine::check_copy_of_unwritten(const Copy& copy, const Line& line) {
  const auto is_of_device = [&](const std::byte* address) {
    const Allocation* const found = find(reinterpret_cast<CUdeviceptr>(address)).second;
    return found != nullptr && found->kind == MemoryKind::device;
  };
  if (!is_of_device(copy.from) || is_of_device(copy.to)) return;
  bool is_unwritten = true;
  for_each_row(copy, [&](const CopyRow& row) {
    const auto begin = reinterpret_cast<CUdeviceptr>(row.from);
    const std::vector<emulator::UnwrittenBytes::Range> ranges = unwritten_within(begin, begin + row.bytes);
    is_unwritten = is_unwritten && ranges.size() == 1 &&
                   ranges.front() == emulator::UnwrittenBytes::Range(begin, begin + row.bytes);
  });
  if (!is_unwritten) return;
  Finding found;
  found.kind = FindingKind::uninitialised_global_read;
  found.severity = emulator::Severity::warning;
  found.address = reinterpret_cast<CUdeviceptr>(copy.from);
  found.detail = fmt::format(
      "copy of {} bytes at global address {:#x} to the host in {}, of which no one has written any: is a launch "
      "missing, or has one failed?",
      copy.width * copy.height * copy.depth, found.address, line.stream);
  report_finding(found);
}

void Machine::check_row(const Copy& copy, const CopyRow& row) const {
  const auto check = [&](std::string_view what, const std::byte* address, bool is_of_device) {
    // Memory of which only a part is allocated is out of bounds in any case.
    if (!is_inside(address, row.bytes) && (is_of_device || is_inside(address, 1)))
      fail(CUDA_ERROR_INVALID_VALUE, why_outside(what, address, row.bytes));
  };
  check("the destination", row.to, is_to_device(copy));
  check("the source", row.from, is_from_device(copy));
}

std::size_t Machine::bytes_in_host_block(std::string_view verb, const std::byte* address, std::size_t bytes,
                                         const Line& line) {
  const auto at = reinterpret_cast<std::uint64_t>(address);
  static const auto find_block = reinterpret_cast<decltype(&tilewright_find_host_block)>(
      dlsym(RTLD_DEFAULT, "tilewright_find_host_block"));  // null without the library that is preloaded
  std::uint64_t begin = 0, size = 0;
  if (find_block == nullptr || is_inside(address, 1) || !find_block(at, &begin, &size)) return bytes;
  const std::size_t left = begin + size - at;
  if (bytes <= left) return bytes;
  Finding found;
  found.kind = FindingKind::out_of_bounds_global;
  found.address = at;
  found.detail = fmt::format(
      "{} of {} bytes at address {:#x} of the host by a copy in {}, {} bytes of it past the end of a {}-byte block of "
      "malloc() or new, in which it begins at byte {}; the copy ended there",
      verb, bytes, at, line.stream, bytes - left, size, at - begin);
  found.location.ptx_text = fmt::format("{} {}", verb, size);  // copies of other blocks are other findings
  report_finding(found);
  return left;
}

void Machine::copy_row(const CopyRow& given, emulator::Footprint& footprint, const Line& line) {
  CopyRow row = given;
  row.bytes = bytes_in_host_block("write", row.to, row.bytes, line);
  row.bytes = bytes_in_host_block("read", row.from, row.bytes, line);
  std::memmove(row.to, row.from, row.bytes);
  const auto begin = reinterpret_cast<CUdeviceptr>(row.to);
  const auto source = reinterpret_cast<CUdeviceptr>(row.from);
  if (is_inside(row.to, row.bytes)) footprint.writes.add(begin, begin + row.bytes);
  if (is_inside(row.from, row.bytes)) footprint.reads.add(source, source + row.bytes);
  mark_written(begin, row.bytes);
  if (unwritten_.empty()) return;
  for (const auto& [low, high] : unwritten_.within(source, source + row.bytes))
    if (find(begin).second != nullptr) unwritten_.add(begin + (low - source), begin + (high - source));
}

void Machine::fill(const Fill& fill, const Line& line) {
  const std::size_t bytes = fill.width * fill.element_bytes;
  if (bytes == 0 || fill.height == 0) return;
  for (std::size_t y = 0; y < fill.height; ++y) {
    const auto* const row = reinterpret_cast<const std::byte*>(fill.to + y * fill.pitch);
    if (!is_inside(row, bytes)) fail(CUDA_ERROR_INVALID_VALUE, why_outside("the destination", row, bytes));
  }
  emulator::Footprint footprint;
  for (std::size_t y = 0; y < fill.height; ++y) {
    auto* const row = reinterpret_cast<std::byte*>(fill.to + y * fill.pitch);
    if (fill.element_bytes == 1) {
      std::memset(row, static_cast<int>(fill.value), bytes);
    } else {
      for (std::size_t i = 0; i < fill.width; ++i)
        std::memcpy(row + i * fill.element_bytes, &fill.value, fill.element_bytes);
    }
    const auto begin = reinterpret_cast<CUdeviceptr>(row);
    mark_written(begin, bytes);
    footprint.writes.add(begin, begin + bytes);
  }
  note_accesses(line, "", "a fill", std::move(footprint));
}

std::vector<emulator::UnwrittenBytes::Range> Machine::unwritten_within(CUdeviceptr begin, CUdeviceptr end) const {
  if (!settings.check_global || unwritten_.empty()) return {};
  return unwritten_.within(begin, end);
}

void Machine::call_library(const LibraryCall& call, const Line& line) {
  LibraryMemory memory(*this, call.function);
  call.run(memory);
  note_accesses(line, "", call.function, memory.footprint());
}

// Streams and events -------------------------------------------------------------------------------------------------

Stream* Machine::create_stream(unsigned flags, int priority) {
  auto created = std::make_unique<Stream>();
  created->id = next_id_++;
  created->flags = flags;
  created->priority = priority;
  has_streams_ = true;
  Stream* const stream = created.get();
  streams_[stream] = std::move(created);
  return stream;
}

void Machine::destroy_stream(CUstream handle) {
  run_deferred();
  const auto found = streams_.find(handle);
  require(found != streams_.end(), CUDA_ERROR_INVALID_HANDLE);
  if ((found->second->flags & CU_STREAM_NON_BLOCKING) == 0) null_stream.clock.join(found->second->clock);
  streams_.erase(found);
}

Stream* Machine::stream(CUstream handle) {
  if (handle == nullptr) return &null_stream;
  if (handle == CU_STREAM_LEGACY) return &legacy_stream;
  if (handle == CU_STREAM_PER_THREAD) {
    has_streams_ = true;
    return &per_thread_stream;
  }
  const auto found = streams_.find(handle);
  if (found == streams_.end()) fail(CUDA_ERROR_INVALID_HANDLE, "there is no such stream, or it was destroyed");
  return found->second.get();
}

Event* Machine::create_event(unsigned flags) {
  auto created = std::make_unique<Event>();
  created->flags = flags;
  Event* const event = created.get();
  events_[event] = std::move(created);
  return event;
}

void Machine::destroy_event(CUevent handle) { require(events_.erase(handle) != 0, CUDA_ERROR_INVALID_HANDLE); }

Event* Machine::event(CUevent handle) {
  const auto found = events_.find(handle);
  if (found == events_.end()) fail(CUDA_ERROR_INVALID_HANDLE, "there is no such event, or it was destroyed");
  return found->second.get();
}

void Machine::record(Event* event, Stream* stream) {
  event->capture = stream->capture;
  event->capture_id = stream->capture_id;
  event->tail = stream->tail;
  if (!stream->capture) record(event, *line_of(stream).clock);
}

void Machine::record(Event* event, const StreamClock& clock) {
  event->recorded = true;
  event->clock = clock;
  event->when = std::chrono::steady_clock::now();
}

void Machine::wait(Stream* stream, Event* event) {
  if (!event->capture) {
    if (!stream->capture) line_of(stream).clock->join(event->clock);
    return;
  }
  if (!stream->capture) {
    stream->capture = event->capture;
    stream->capture_id = event->capture_id;
    stream->captures_as_origin = false;
    stream->tail.clear();
  }
  require(stream->capture == event->capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  for (Node* const each : event->tail) {
    if (std::ranges::find(stream->tail, each) == stream->tail.end()) stream->tail.push_back(each);
  }
}

void Machine::begin_capture(Stream* stream, std::shared_ptr<Graph> graph, std::vector<Node*> tail) {
  require(stream != &null_stream && stream != &legacy_stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  require(!stream->capture, CUDA_ERROR_ILLEGAL_STATE);
  stream->capture = std::move(graph);
  stream->captures_as_origin = true;
  stream->capture_id = next_id_++;
  stream->tail = std::move(tail);
}

std::shared_ptr<Graph> Machine::end_capture(Stream* stream) {
  require(stream->capture != nullptr, CUDA_ERROR_ILLEGAL_STATE);
  require(stream->captures_as_origin, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  const std::shared_ptr<Graph> graph = stream->capture;
  std::set<const Node*> joined(stream->tail.begin(), stream->tail.end());
  for (std::vector<const Node*> left(joined.begin(), joined.end()); !left.empty();) {
    const Node* const node = left.back();
    left.pop_back();
    for (const Node* const each : node->dependencies) {
      if (joined.insert(each).second) left.push_back(each);
    }
  }
  bool is_joined = true;
  for (const auto& [handle, each] : streams_) {
    if (each->capture == graph) {
      is_joined &= std::ranges::all_of(each->tail, [&](const Node* node) { return joined.contains(node); });
      each->capture.reset();
      each->tail.clear();
    }
  }
  if (per_thread_stream.capture == graph) per_thread_stream.capture.reset();
  for (const auto& [handle, each] : events_) {
    if (each->capture == graph) each->capture.reset();
  }
  require(!graph->is_invalid, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  require(is_joined, CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  return graph;
}

void Machine::check_implicit_order() {
  for (const auto& [handle, each] : streams_) {
    if (!each->capture || (each->flags & CU_STREAM_NON_BLOCKING) != 0) continue;
    each->capture->is_invalid = true;
    fail(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  }
}

void Machine::check_unsafe_call(bool in_global_mode) {
  for (const auto& [handle, each] : streams_) {
    if (!each->capture || (in_global_mode && !each->prohibits_unsafe_calls)) continue;
    each->capture->is_invalid = true;
    fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
}

// Work ---------------------------------------------------------------------------------------------------------------

Node* Machine::enqueue(Stream* stream, Work work) {
  require(!stream->capture || !stream->capture->is_invalid, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  if (!stream->capture) {
    if (stream == &null_stream || stream == &legacy_stream) check_implicit_order();
    const std::string key = repeat_key(stream, work);
    if (leaves_out(stream, work, key)) return nullptr;
    noted_work_ = key.empty() ? nullptr : &work;
    noted_key_ = key;
    const auto end = [&] {
      if (std::exchange(noted_work_, nullptr) != nullptr) repeated_work_.forget();  // the work has accessed nothing
    };
    try {
      run(work, line_of(stream));
    } catch (...) {
      end();
      throw;
    }
    end();
    return nullptr;
  }
  static constexpr CUgraphNodeType kTypes[] = {
      CU_GRAPH_NODE_TYPE_EMPTY,      CU_GRAPH_NODE_TYPE_KERNEL,    CU_GRAPH_NODE_TYPE_MEMCPY,
      CU_GRAPH_NODE_TYPE_MEMSET,     CU_GRAPH_NODE_TYPE_HOST,      CU_GRAPH_NODE_TYPE_EVENT_RECORD,
      CU_GRAPH_NODE_TYPE_GRAPH,      CU_GRAPH_NODE_TYPE_MEM_ALLOC, CU_GRAPH_NODE_TYPE_MEM_FREE,
      CU_GRAPH_NODE_TYPE_WAIT_EVENT, CU_GRAPH_NODE_TYPE_KERNEL};
  if (const auto* const launch = std::get_if<KernelLaunch>(&work)) check_launch(*launch);
  const CUgraphNodeType type = kTypes[work.index()];
  Node* const node = stream->capture->add(std::move(work), type, stream->tail);
  stream->tail = {node};
  return node;
}

std::string Machine::repeat_key(const Stream* stream, const Work& work) const {
  if (!settings.skips_repeats) return {};
  if (const auto* const launched = std::get_if<KernelLaunch>(&work)) {
    return fmt::format("{} {}", stream->id, key_of(*launched));
  }
  if (const auto* const filled = std::get_if<Fill>(&work)) {
    return fmt::format("{} fill {:x} {} {} {} {} {}", stream->id, filled->to, filled->pitch, filled->width,
                       filled->height, filled->value, filled->element_bytes);
  }
  if (const auto* const called = std::get_if<LibraryCall>(&work); called != nullptr && !called->key.empty()) {
    return fmt::format("{} {} {}", stream->id, called->function, called->key);
  }
  return {};
}

bool Machine::leaves_out(Stream* stream, const Work& work, const std::string& key) {
  const auto verdict = key.empty() ? RepeatedWork::Verdict::run : repeated_work_.judge(key);
  if (verdict == RepeatedWork::Verdict::run) {
    run_deferred();
    return false;
  }
  own_report();
  ++report.skipped;
  deferred_.emplace_back(stream, work);
  if (verdict == RepeatedWork::Verdict::finish) deferred_.clear();
  return true;
}

void Machine::run_deferred() {
  if (deferred_.empty()) return;
  const auto deferred = std::exchange(deferred_, {});
  report.skipped -= deferred.size();
  for (const auto& [stream, work] : deferred) run(work, line_of(stream));
  repeated_work_.forget();
}

void Machine::note_for_repeats(const emulator::Footprint& footprint) {
  emulator::ByteRanges written = footprint.writes, accessed = footprint.reads;
  written.add(footprint.updates);
  written.normalise();
  accessed.add(written);
  accessed.normalise();
  const Work* const work = std::exchange(noted_work_, nullptr);
  if (work != nullptr && is_repeatable(*work, accessed)) {
    repeated_work_.note(noted_key_, std::move(written));
  } else {
    repeated_work_.forget();
  }
}

bool Machine::is_repeatable(const Work& work, const emulator::ByteRanges& accessed) const {
  if (const auto* const launched = std::get_if<KernelLaunch>(&work)) {
    const emulator::Program& program = launched->function->kernel->program();
    if (program.prints || program.uses_heap) return false;
  }
  emulator::ByteRanges of_host = managed_variables_;
  for (const auto& [begin, allocation] : allocations_) {
    if (allocation.kind != MemoryKind::device) of_host.add(begin, begin + allocation.bytes);
  }
  of_host.normalise();
  return !of_host.first_common(accessed);
}

Machine::Line Machine::line_of(Stream* stream) {
  Stream& on = stream == &legacy_stream ? null_stream : *stream;
  StreamClock& clock = on.clock;
  clock.join(order_.host());
  const auto blocking = [](const Stream& each) { return (each.flags & CU_STREAM_NON_BLOCKING) == 0; };
  if (&on == &null_stream) {  // waits for all streams that wait for it
    clock.join(per_thread_stream.clock);
    for (const auto& [handle, each] : streams_) {
      if (blocking(*each)) clock.join(each->clock);
    }
  } else if (blocking(on)) {
    clock.join(null_stream.clock);
  }
  const std::string name = on.id == null_stream.id         ? "the default stream"
                           : on.id == per_thread_stream.id ? "the per-thread default stream"
                                                           : fmt::format("stream {}", on.id);
  return {on.id, &clock, name};
}

void Machine::copy_and_wait(const Copy& copy) {
  check_implicit_order();
  run_deferred();
  run(copy, line_of(&null_stream));
  const auto is_device = [&](const std::byte* address) {
    const Allocation* const found = find(reinterpret_cast<CUdeviceptr>(address)).second;
    return found != nullptr && found->kind == MemoryKind::device;
  };
  if (!is_device(copy.to) || !is_device(copy.from)) wait_for(&null_stream);
}

void Machine::wait_for(Stream* stream) {
  run_deferred();
  order_.host_waits(*line_of(stream).clock);
}
void Machine::wait_for(Event* event) {
  require(!event->capture, CUDA_ERROR_CAPTURED_EVENT);
  run_deferred();
  order_.host_waits(event->clock);
}
void Machine::wait_for_all() {
  run_deferred();
  order_.host_waits_for_all();
}

void Machine::note_accesses(const Line& line, const std::string& kernel, std::string_view what,
                            emulator::Footprint footprint) {
  if (!settings.check_global) return;
  if (settings.skips_repeats) note_for_repeats(footprint);
  const std::string name = fmt::format("{} in {}", what, line.stream);
  early_starts_.erase(line.chain);
  const std::optional<Finding> race = order_.add(name, line.chain, *line.clock, std::move(footprint));
  if (race) report_finding(*race, kernel);
}

void Machine::check_early_accesses(const Line& line, const KernelLaunch& launch, emulator::Footprint early) {
  const auto before = early_starts_.find(line.chain);
  if (before == early_starts_.end()) return;
  const std::string name = fmt::format("kernel {} before griddepcontrol.wait (cudaGridDependencySynchronize())",
                                       demangled(launch.function->name));
  early.normalise();
  const std::string other =
      fmt::format("{}, which lets the next kernel start early (griddepcontrol.launch_dependents)", before->second.name);
  if (const std::optional<Finding> race = find_race(name, early, other, before->second.footprint))
    report_finding(*race, launch.function->name);
}

void Machine::run(const Work& work, const Line& line) {
  if (const auto* const kernel = std::get_if<KernelLaunch>(&work)) launch(*kernel, line);
  if (const auto* const copied = std::get_if<Copy>(&work)) copy(*copied, line);
  if (const auto* const filled = std::get_if<Fill>(&work)) fill(*filled, line);
  if (const auto* const call = std::get_if<HostCall>(&work)) {
    order_.host_waits(*line.clock);  // the function may tell other threads that the work before it is done
    call->function(call->data);
  }
  if (const auto* const child = std::get_if<ChildGraph>(&work)) run(*child->graph, line);
  if (const auto* const recorded = std::get_if<EventRecord>(&work)) record(recorded->event, *line.clock);
  if (const auto* const awaited = std::get_if<EventWait>(&work)) line.clock->join(awaited->event->clock);
  if (const auto* const allocation = std::get_if<Allocate>(&work)) allocate(*allocation, line);
  if (const auto* const freed = std::get_if<Free>(&work)) free(freed->address, {MemoryKind::graph});
  if (const auto* const called = std::get_if<LibraryCall>(&work)) call_library(*called, line);
}

void Machine::run(const Graph& graph, const Line& line) {
  // A node goes on with the chain of one that it depends on, if no other node has done so.
  std::map<const Node*, Line> lines;
  std::map<const Node*, StreamClock> clocks;
  std::set<Chain> ends;
  StreamClock after = *line.clock;
  for (const Node* const node : graph.in_order()) {
    StreamClock& clock = clocks[node] = *line.clock;
    Chain chain = 0;
    for (const Node* const each : node->dependencies) {
      clock.join(clocks[each]);
      if (chain == 0 && ends.erase(lines[each].chain) != 0) chain = lines[each].chain;
    }
    if (chain == 0) chain = order_.new_chain();
    ends.insert(chain);
    lines[node] = {chain, &clock, fmt::format("a graph launched in {}", line.stream)};
    if (node->enabled) run(node->work, lines[node]);
    after.join(clock);
  }
  *line.clock = std::move(after);
}

void Machine::launch_graph(const ExecutableGraph& executable, Stream* stream) {
  run_deferred();
  if ((executable.flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0) {
    for (const auto& node : executable.graph->nodes) {
      const auto* const allocation = std::get_if<Allocate>(&node->work);
      if (allocation != nullptr && allocations_.contains(allocation->address))
        free(allocation->address, {MemoryKind::graph});
    }
  }
  has_streams_ = true;
  run(*executable.graph, line_of(stream));
}

// Handles ------------------------------------------------------------------------------------------------------------

CUgraph Machine::keep(std::shared_ptr<Graph> graph) {
  auto* const handle = reinterpret_cast<CUgraph>(graph.get());
  graphs_[handle] = std::move(graph);
  return handle;
}

std::shared_ptr<Graph> Machine::graph(CUgraph handle) {
  const auto found = graphs_.find(handle);
  require(found != graphs_.end());
  return found->second;
}

void Machine::destroy(CUgraph handle) { require(graphs_.erase(handle) != 0); }

CUgraphExec Machine::keep(std::unique_ptr<ExecutableGraph> executable) {
  auto* const handle = reinterpret_cast<CUgraphExec>(executable.get());
  executables_[handle] = std::move(executable);
  return handle;
}

ExecutableGraph& Machine::executable(CUgraphExec handle) {
  const auto found = executables_.find(handle);
  require(found != executables_.end());
  return *found->second;
}

void Machine::destroy(CUgraphExec handle) { require(executables_.erase(handle) != 0); }

Module* Machine::add_module(std::function<std::string()> read_ptx) {
  auto created = std::make_unique<Module>(std::move(read_ptx));
  Module* const module = created.get();
  modules_[module] = std::move(created);
  return module;
}

void Machine::remove_module(Module* removed) {
  run_deferred();
  std::erase_if(functions_, [&](const Function* function) { return function->module == removed; });
  modules_.erase(removed);
}

Module* Machine::module(const void* handle) {
  const auto found = modules_.find(handle);
  require(found != modules_.end(), CUDA_ERROR_INVALID_HANDLE);
  return found->second.get();
}

Function* Machine::function(const void* handle) {
  auto* const function = static_cast<Function*>(const_cast<void*>(handle));
  require(functions_.contains(function), CUDA_ERROR_INVALID_HANDLE);
  return function;
}

emulator::EmulatedKernel& Machine::kernel(Function* function) {
  if (function->kernel) return *function->kernel;
  const std::shared_ptr<const emulator::LoadedPtx>& loaded = function->module->loaded();
  try {
    function->kernel =
        std::make_unique<emulator::EmulatedKernel>(properties, emulator_options(), loaded, function->name, 0);
  } catch (const emulator::EmulationFinding& finding) {
    report.add(function->name, finding.finding());
    write_report();
    fail(CUDA_ERROR_INVALID_PTX);
  } catch (const EmulationError&) {
    fail(CUDA_ERROR_NOT_FOUND);
  } catch (const InvalidArgument& error) {
    note(error.what());
    fail(CUDA_ERROR_INVALID_IMAGE);
  }
  function->max_dynamic_shared =
      static_cast<int>(kDefaultDynamicShared) -
      static_cast<int>(std::min(kDefaultDynamicShared, function->kernel->program().static_shared_bytes));
  return *function->kernel;
}

// Launches -----------------------------------------------------------------------------------------------------------

KernelLaunch Machine::make_launch(Function* function, const runtime::LaunchConfig& config, void** arguments,
                                  void** extra) {
  const emulator::Program& program = kernel(function).program();
  KernelLaunch launch{function, config, std::vector<std::byte>(program.parameter_bytes), {}};
  if (extra != nullptr) {
    if (arguments != nullptr)
      fail(CUDA_ERROR_INVALID_VALUE, "the kernel gets its parameters by `kernelParams` or by `extra`, not by both");
    const void* buffer = nullptr;
    std::size_t size = 0;
    for (void** at = extra; *at != CU_LAUNCH_PARAM_END; at += 2) {
      if (*at == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = at[1];
      if (*at == CU_LAUNCH_PARAM_BUFFER_SIZE && at[1] != nullptr) std::memcpy(&size, at[1], sizeof(size));
    }
    // A struct of the parameters may be longer than they are, by the padding at its end.
    constexpr std::size_t kLargestAlignment = alignof(CUtensorMap);
    const std::size_t needed = launch.parameters.size();
    if (buffer == nullptr || size < needed || size > round_up(needed, kLargestAlignment)) {
      fail(CUDA_ERROR_INVALID_VALUE,
           fmt::format("{} has {} bytes of parameters, and the buffer of `extra` {}", demangled(function->name), needed,
                       buffer == nullptr ? "is a null pointer" : fmt::format("has {}", size)));
    }
    std::memcpy(launch.parameters.data(), buffer, needed);
    return launch;
  }
  for (std::size_t i = 0; i < program.parameters.size(); ++i) {
    const emulator::ParameterRange& parameter = program.parameters[i];
    if (arguments == nullptr || arguments[i] == nullptr) {
      fail(CUDA_ERROR_INVALID_VALUE,
           fmt::format("{} has {} parameters, and {} is a null pointer", demangled(function->name),
                       program.parameters.size(),
                       arguments == nullptr ? "the array of arguments" : fmt::format("argument {}", i)));
    }
    std::memcpy(launch.parameters.data() + parameter.begin, arguments[i], parameter.size);
  }
  return launch;
}

int Machine::max_blocks_per_multiprocessor(Function* function, int threads, std::size_t dynamic_shared) {
  return threads <= 0 ? 0 : kernel(function).max_ctas_per_sm(static_cast<std::uint64_t>(threads), dynamic_shared);
}

void Machine::check_launch(const KernelLaunch& launch) {
  const runtime::LaunchConfig& config = launch.config;
  const runtime::Dim3& grid = config.grid;
  const runtime::Dim3& block = config.block;
  const emulator::Program& program = kernel(launch.function).program();
  const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  const auto refuse = [&](CUresult code, const std::string& limit) {
    fail(code, fmt::format("{} was not launched with a grid of {} and blocks of {}: {}",
                           demangled(launch.function->name), to_string(grid), to_string(block), limit));
  };
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > 0x7fffffff || grid.y > 0xffff || grid.z > 0xffff)
    refuse(kInvalidConfiguration, "a grid has 1 to (2147483647,65535,65535) CTAs");
  if (threads == 0 || threads > 1024 || block.x > 1024 || block.y > 1024 || block.z > 64)
    refuse(kInvalidConfiguration, "a block has 1 to 1024 threads, and extents of at most (1024,1024,64)");
  if (program.maximum_block != 0 && threads > program.maximum_block) {
    refuse(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
           fmt::format("its __launch_bounds__ allow {} threads per block", program.maximum_block));
  }
  if (config.dynamic_smem_bytes > static_cast<std::uint32_t>(std::max(0, launch.function->max_dynamic_shared))) {
    fail(
        CUDA_ERROR_INVALID_VALUE,
        fmt::format("{} was not launched with {} bytes of dynamic shared memory, more than the {} that it may use: set "
                    "cudaFuncAttributeMaxDynamicSharedMemorySize",
                    demangled(launch.function->name), config.dynamic_smem_bytes, launch.function->max_dynamic_shared));
  }
  const std::uint64_t ctas_per_cluster = std::uint64_t{config.cluster.x} * config.cluster.y * config.cluster.z;
  const std::uint64_t most_in_cluster = launch.function->non_portable_cluster ? 16 : 8;
  if (ctas_per_cluster > most_in_cluster) {
    fail(CUDA_ERROR_INVALID_CLUSTER_SIZE,
         fmt::format("{} was not launched with {} CTAs per cluster: it may have {}{}", demangled(launch.function->name),
                     ctas_per_cluster, most_in_cluster,
                     most_in_cluster == 8 ? ", or 16 with cudaFuncAttributeNonPortableClusterSizeAllowed" : ""));
  }
  if (config.cooperative && !fits(launch)) {
    const int resident =
        max_blocks_per_multiprocessor(launch.function, static_cast<int>(threads), config.dynamic_smem_bytes);
    refuse(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
           fmt::format("a cooperative launch of it has at most {} CTAs on each of the {} multiprocessors", resident,
                       properties.sm_count));
  }
}

bool Machine::fits(const KernelLaunch& launch) {
  const runtime::Dim3 &grid = launch.config.grid, &block = launch.config.block;
  const auto threads = static_cast<int>(block.x * block.y * block.z);
  const int resident = max_blocks_per_multiprocessor(launch.function, threads, launch.config.dynamic_smem_bytes);
  return std::uint64_t{grid.x} * grid.y * grid.z <=
         static_cast<std::uint64_t>(resident) * static_cast<std::uint64_t>(properties.sm_count);
}

void Machine::launch(const KernelLaunch& launch, const Line& line) {
  check_launch(launch);
  if (sticky != CUDA_SUCCESS) return;
  const auto begin = std::chrono::steady_clock::now();
  emulator::FindingLog log;
  emulator::Footprint footprint, early;
  emulator::EmulatedKernel& loaded = kernel(launch.function);
  const bool launches_dependents = loaded.program().launches_dependents;
  const bool notes_footprints =
      has_streams_ || host_watch_.has_memory() || settings.skips_repeats || launches_dependents;
  bool is_interrupted = false;
  try {
    const CaughtSignals signals;
    const ScopedInterruptCheck check([] {
      if (CaughtSignals::caught() != 0) throw Interrupted("interrupted");
    });
    runtime::LaunchConfig config = launch.config;
    config.cooperative = config.cooperative || (settings.cooperative && fits(launch));
    loaded.launch(config, launch.parameters,
                  {.log = &log,
                   .unwritten = &unwritten_,
                   .footprint = notes_footprints ? &footprint : nullptr,
                   .early = launch.starts_early ? &early : nullptr});
  } catch (const emulator::EmulationFinding& finding) {
    static_cast<void>(log.add_fatal(finding.finding(), 0, "launch"));
  } catch (const InvalidArgument& error) {
    note(error.what());
    fail(kInvalidConfiguration);
  } catch (const Interrupted&) {
    is_interrupted = true;
  }
  own_report();
  report.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  ++report.launches;
  const std::vector<Finding> findings = log.findings();
  for (const Finding& finding : findings) {
    if (sticky == CUDA_SUCCESS) sticky = error_of(finding);
    report.add(launch.function->name, finding);
  }
  if (is_interrupted) note(fmt::format("the launch of {} was interrupted", demangled(launch.function->name)));
  // A signal between two launches ends the program without a further report, so that this one must not be old.
  constexpr std::chrono::milliseconds kReportInterval(200);
  const bool is_old = std::chrono::steady_clock::now() - written_ > kReportInterval;
  if (!findings.empty() || is_old || CaughtSignals::caught() != 0) write_report();
  // Now that the signal has its default action again, the program ends as it would without the emulator.
  if (const int signal = CaughtSignals::caught(); signal != 0) std::raise(signal);
  if (launch.starts_early) check_early_accesses(line, launch, std::move(early));
  const std::string name = fmt::format("kernel {}", demangled(launch.function->name));
  std::optional<EarlyStart> early_start;
  if (launches_dependents && settings.check_global) {
    early_start = EarlyStart{name, footprint};
    early_start->footprint.normalise();
  }
  note_accesses(line, launch.function->name, name, std::move(footprint));
  if (early_start) early_starts_[line.chain] = *std::move(early_start);
}

// Calls of host code -------------------------------------------------------------------------------------------------

namespace {

/// Host blocks that are allocated while this is set belong to the emulator, not to the program. Every function of CUDA
/// sets it while it runs.
void ignore_host_blocks(bool ignore) {
  static const auto set = reinterpret_cast<decltype(&tilewright_ignore_host_blocks)>(
      dlsym(RTLD_DEFAULT, "tilewright_ignore_host_blocks"));  // null without the library that is preloaded
  if (set != nullptr) set(ignore);
}

}  // namespace

void Machine::begin_call() {
  if (calls_++ != 0) return;
  ignore_host_blocks(true);
  for (const HostAccess& access : host_watch_.unprotect()) {
    Finding found;
    found.kind = FindingKind::stream_race;
    found.address = access.address;
    found.detail = fmt::format(
        "{} of memory at address {:#x} by the host, at {}, not ordered after the {} by {}: the host has not waited for "
        "it",
        access.is_write ? "write" : "read", access.address, access.location, access.use.is_write ? "write" : "read",
        access.use.name);
    found.location.ptx_text = access.location;
    report_finding(found);
  }
}

void Machine::end_call() {
  if (--calls_ != 0) return;
  if (settings.check_global) host_watch_.protect(order_);
  ignore_host_blocks(false);
}

// Reports ------------------------------------------------------------------------------------------------------------

void Machine::own_report() {
  if (getpid() == process_) return;
  process_ = getpid();
  const std::string program = report.program;
  report = {};
  report.program = program;
}

void Machine::note(const std::string& text) {
  own_report();
  constexpr std::size_t kMostNotes = 200;
  if (report.notes.size() >= kMostNotes || std::ranges::find(report.notes, text) != report.notes.end()) return;
  report.notes.push_back(text);
  write_report();
}

void Machine::report_finding(const Finding& finding, const std::string& kernel) {
  own_report();
  report.add(kernel, finding);
  write_report();
}

void Machine::note_unsupported(const std::string& function) {
  own_report();
  if (report.unsupported[function]++ == 0) {
    fmt::print(stderr, "tilewright: {} is not emulated; it returns an error\n", function);
    write_report();
  }
}

void Machine::note_failure(std::string_view function, const ApiError& error) {
  const CUresult code = error.code;
  if ((code == CUDA_ERROR_NOT_SUPPORTED && error.reason.empty()) || code == CUDA_ERROR_NOT_READY) return;
  // Programs write cudaLaunchKernel() and cuMemFree(); the headers make __cudaLaunchKernel() and cuMemFree_v2() of it.
  function.remove_prefix(std::min(function.find_first_not_of('_'), function.size()));
  if (const std::size_t version = function.rfind("_v");
      version != std::string_view::npos && version + 3 == function.size())
    function.remove_suffix(3);
  const ErrorRow& row = error_row(code);
  note(fmt::format("{} returned {}: {}{}{}", function, row.runtime_name, row.text, error.reason.empty() ? "" : ": ",
                   error.reason));
}

void Machine::write_report() {
  if (settings.report_folder.empty()) return;
  written_ = std::chrono::steady_clock::now();
  const std::string path = fmt::format("{}/{}.json", settings.report_folder, process_);
  {
    std::ofstream file(path + ".part");
    file << to_json(report);
  }
  static_cast<void>(std::rename((path + ".part").c_str(), path.c_str()));
}

void Machine::reset() {
  run_deferred();
  for (const auto& [address, allocation] : allocations_) {
    if (allocation.kind == MemoryKind::registered) continue;
    unwritten_.remove(address, address + allocation.bytes);
    release(address, allocation);
  }
  std::erase_if(allocations_, [](const auto& each) { return each.second.kind != MemoryKind::registered; });
  pooled.clear();
  wait_for_all();
  streams_.clear();
  events_.clear();
  sticky = CUDA_SUCCESS;
}

}  // namespace tilewright::cuda_runtime
