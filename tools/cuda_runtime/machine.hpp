// The emulated GPU of a process, which libcudart and libcuda share: memory, modules, streams, graphs and launches.
//
// Work runs when it is enqueued, on the calling thread. That is one of the orders that streams and events allow.
#pragma once

#include <cuda.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "tilewright/emulator/emulated_kernel.hpp"
#include "tilewright/emulator/global_memory.hpp"
#include "tilewright/emulator/unwritten_bytes.hpp"
#include "tools/cuda_runtime/host_watch.hpp"
#include "tools/cuda_runtime/library_call.hpp"
#include "tools/cuda_runtime/repeated_work.hpp"
#include "tools/cuda_runtime/run_report.hpp"
#include "tools/cuda_runtime/stream_order.hpp"

namespace tilewright::cuda_runtime {

/// Thrown by what a function of CUDA calls; the function returns the code. The codes of the runtime are the same.
struct ApiError {
  CUresult code;
  std::string reason = {};  // for the report; empty: the code says all
};

[[noreturn]] inline void fail(CUresult code, std::string reason = {}) { throw ApiError{code, std::move(reason)}; }
inline void require(bool condition, CUresult code = CUDA_ERROR_INVALID_VALUE) {
  if (!condition) fail(code);
}

class Module;

/// A kernel: a CUfunction, CUkernel, cudaFunction_t or cudaKernel_t.
struct Function {
  Module* module = nullptr;
  std::string name;
  int max_dynamic_shared = 0;  // bytes of dynamic shared memory that a launch may ask for, once loaded
  bool non_portable_cluster = false;
  std::unique_ptr<emulator::EmulatedKernel> kernel;  // null until it is first needed
};

/// The PTX of a fat binary or of a file, which is parsed when a kernel or a variable of it is first needed.
class Module {
 public:
  explicit Module(std::function<std::string()> read_ptx) : read_ptx_(std::move(read_ptx)) {}

  /// @throws ApiError
  const std::shared_ptr<const emulator::LoadedPtx>& loaded();
  /// Null if there is no such kernel. @throws ApiError
  Function* find_function(const std::string& name);
  /// The function of this name, without a check that the PTX has it.
  Function* function(const std::string& name);
  std::vector<Function*> all_functions();
  /// Address and size of a variable. @throws ApiError CUDA_ERROR_NOT_FOUND
  std::pair<CUdeviceptr, std::size_t> variable(const std::string& name);

 private:
  std::function<std::string()> read_ptx_;
  std::shared_ptr<const emulator::LoadedPtx> loaded_;
  CUresult failure_ = CUDA_SUCCESS;
  std::map<std::string, std::unique_ptr<Function>> functions_;
};

enum class MemoryKind : std::uint8_t { device, managed, pinned, registered, graph };

struct Allocation {
  MemoryKind kind = MemoryKind::device;
  std::size_t bytes = 0;
};

// Work ---------------------------------------------------------------------------------------------------------------

struct KernelLaunch {
  Function* function = nullptr;
  runtime::LaunchConfig config;
  std::vector<std::byte> parameters;      // the kernel's parameter space
  std::vector<void*> parameter_pointers;  // into `parameters`, for cudaGraphKernelNodeGetParams
  bool starts_early = false;              // programmatic stream serialization: before the kernel in front of it ends
};

/// A box of bytes. A copy between rows has a pitch and a height for each side.
struct Copy {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  std::size_t to_pitch = 0, to_height = 0, from_pitch = 0, from_height = 0;
  std::size_t width = 0, height = 1, depth = 1;
  enum class Kind : std::uint8_t { host_to_host, host_to_device, device_to_host, device_to_device, inferred };
  Kind kind = Kind::inferred;
};

/// Bytes that follow each other in both tensors of a copy.
struct CopyRow {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  std::size_t bytes = 0;
};

struct Fill {
  CUdeviceptr to = 0;
  std::size_t pitch = 0, width = 0, height = 1;  // width in elements
  std::uint32_t value = 0;
  std::size_t element_bytes = 1;
};

struct HostCall {
  void (*function)(void*) = nullptr;
  void* data = nullptr;
};

struct Event;
struct Graph;
struct Nothing {};
struct EventRecord {
  Event* event = nullptr;
};
struct EventWait {
  Event* event = nullptr;
};
struct ChildGraph {
  std::shared_ptr<Graph> graph;
};
/// Memory of a graph: each launch allocates it at the same address.
struct Allocate {
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
  std::shared_ptr<void> storage;
};
struct Free {
  CUdeviceptr address = 0;
};
using Work = std::variant<Nothing, KernelLaunch, Copy, Fill, HostCall, EventRecord, ChildGraph, Allocate, Free,
                          EventWait, LibraryCall>;

struct Node {
  Graph* graph = nullptr;
  Work work;
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  std::vector<Node*> dependencies;
  bool enabled = true;
};

struct Graph {
  std::vector<std::unique_ptr<Node>> nodes;
  bool is_invalid = false;  // a call that is not allowed has ended its capture

  Node* add(Work work, CUgraphNodeType type, std::vector<Node*> dependencies);
  /// In an order that dependencies allow. @throws ApiError for a cycle
  std::vector<Node*> in_order() const;
  std::shared_ptr<Graph> clone(std::map<const Node*, Node*>* copies = nullptr) const;
};

/// An instantiated graph: a copy, so that later changes of the graph do not change it.
struct ExecutableGraph {
  std::shared_ptr<Graph> graph;
  std::map<const Node*, Node*> copies;  // by the node of the graph that was instantiated
  std::vector<const Node*> originals;   // in the order of their creation
  unsigned long long flags = 0;         // of its instantiation
};

struct Stream {
  std::uint64_t id = 0;
  unsigned flags = 0;
  int priority = 0;
  // While it is captured:
  std::shared_ptr<Graph> capture;
  bool captures_as_origin = false;
  bool prohibits_unsafe_calls = false;  // cudaStreamCaptureModeGlobal
  std::uint64_t capture_id = 0;
  std::vector<Node*> tail;  // nodes that the next work depends on
  StreamClock clock;        // what happens before its next work
};

struct Event {
  unsigned flags = 0;
  bool recorded = false;
  std::chrono::steady_clock::time_point when;
  std::shared_ptr<Graph> capture;  // of the stream that recorded it last, if that was captured
  std::uint64_t capture_id = 0;
  std::vector<Node*> tail;
  StreamClock clock;  // what happens before it
};

struct Pool {
  std::uint64_t release_threshold = 0;
  std::uint64_t high_water = 0;
  std::uint64_t used = 0;
};

// The machine --------------------------------------------------------------------------------------------------------

class Machine {
 public:
  /// Never destroyed, as programs use CUDA in destructors of static objects.
  static Machine& get();

  std::recursive_mutex mutex;
  const Settings settings;
  const Target target;
  const runtime::DeviceProperties properties;
  RunReport report;

  emulator::EmulatorOptions emulator_options() const;
  const std::shared_ptr<emulator::GlobalMemory>& memory() const { return memory_; }

  // Memory.
  CUdeviceptr allocate(std::size_t bytes, MemoryKind kind);
  /// Memory that is allocated when a launch of a graph runs the work. @throws ApiError
  Allocate graph_allocation(std::size_t bytes) const;
  /// @throws ApiError if the address is not the start of an allocation of one of these kinds
  void free(CUdeviceptr address, std::initializer_list<MemoryKind> kinds);
  /// Frees memory of a pool or a graph in the stream's order.
  void free_in_order(CUdeviceptr address, Stream* stream);
  void register_host(void* address, std::size_t bytes);
  void unregister_host(void* address);
  /// The allocation that the address is in, and its start; nothing for other memory.
  std::pair<CUdeviceptr, const Allocation*> find(CUdeviceptr address) const;
  /// An allocation, or a variable of a module, whose kind is device or managed.
  struct KnownMemory {
    MemoryKind kind = MemoryKind::device;
    CUdeviceptr begin = 0;
    std::size_t bytes = 0;
  };
  /// What the address is in; nothing for other memory.
  std::optional<KnownMemory> known_memory(CUdeviceptr address) const;
  /// Of `Settings::memory_bytes`, what device, managed and pinned memory and variables of modules leave.
  std::size_t free_bytes() const;
  void mark_written(CUdeviceptr address, std::size_t bytes);
  void note_managed_variable(CUdeviceptr address, std::size_t bytes) {
    managed_variables_.add(address, address + bytes);
  }
  /// The parts of [begin, end) that no one has written. None if global memory is not checked.
  std::vector<emulator::UnwrittenBytes::Range> unwritten_within(CUdeviceptr begin, CUdeviceptr end) const;
  Pool& pool_of(CUdeviceptr address);

  // Streams and events. A handle that is none is CUDA_ERROR_INVALID_HANDLE.
  Stream* create_stream(unsigned flags, int priority);
  void destroy_stream(CUstream stream);
  Stream* stream(CUstream handle);
  Event* create_event(unsigned flags);
  void destroy_event(CUevent event);
  Event* event(CUevent handle);
  void record(Event* event, Stream* stream);
  void wait(Stream* stream, Event* event);
  void begin_capture(Stream* stream, std::shared_ptr<Graph> graph, std::vector<Node*> tail);
  std::shared_ptr<Graph> end_capture(Stream* stream);
  /// Before work of the legacy stream, or a wait for it: a stream that is captured and waits for it must not exist.
  void check_implicit_order();
  /// Before a call that waits for the device or, with `in_global_mode` only, that may do so: if a stream is captured,
  /// the capture becomes invalid. @throws ApiError CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
  void check_unsafe_call(bool in_global_mode);

  /// Runs the work or, if the stream is captured, adds it to the graph. Returns the node then.
  Node* enqueue(Stream* stream, Work work);
  /// Runs a copy in the default stream, and waits for it unless both sides are device memory.
  void copy_and_wait(const Copy& copy);
  void launch_graph(const ExecutableGraph& executable, Stream* stream);
  /// The stream's memory is allocated, in its order.
  void note_allocation(CUdeviceptr address, std::size_t bytes, Stream* stream);
  /// The host waits for the work of a stream or before an event, or for all.
  void wait_for(Stream* stream);
  void wait_for(Event* event);
  void wait_for_all();

  // Graphs and modules are kept here, by their handles.
  CUgraph keep(std::shared_ptr<Graph> graph);
  std::shared_ptr<Graph> graph(CUgraph handle);
  void destroy(CUgraph handle);
  CUgraphExec keep(std::unique_ptr<ExecutableGraph> executable);
  ExecutableGraph& executable(CUgraphExec handle);
  void destroy(CUgraphExec handle);
  Module* add_module(std::function<std::string()> read_ptx);
  void remove_module(Module* module);
  Module* module(const void* handle);
  /// @throws ApiError for a handle that is no kernel
  Function* function(const void* handle);
  emulator::EmulatedKernel& kernel(Function* function);

  /// Kernel parameters from an array of pointers to them or, if `extra` is not null, from the buffer that it names (as
  /// for cuLaunchKernel()). @throws ApiError for both, for null pointers, and for a buffer of another size
  KernelLaunch make_launch(Function* function, const runtime::LaunchConfig& config, void** arguments,
                           void** extra = nullptr);
  int max_blocks_per_multiprocessor(Function* function, int threads, std::size_t dynamic_shared);

  // Errors.
  /// The error that a kernel has left behind, which every later call returns.
  CUresult sticky = CUDA_SUCCESS;
  void note(const std::string& text);
  /// Adds a finding to the report: of a kernel, or of a copy, a fill or a library's function.
  void report_finding(const emulator::Finding& finding, const std::string& kernel = {});
  void note_unsupported(const std::string& function);
  /// A function has failed: programs may not look at the code that it returns.
  void note_failure(std::string_view function, const ApiError& error);
  void write_report();
  void reset();
  /// A function of CUDA begins or ends; see MachineLock.
  void begin_call();
  void end_call();

  Pool default_pool;
  std::set<Pool*> pools;
  Stream null_stream, legacy_stream, per_thread_stream;
  std::unordered_map<CUdeviceptr, Pool*> pooled;

 private:
  Machine();
  /// Where work runs: in a stream, or in a graph that was launched in the stream.
  struct Line {
    Chain chain = 0;
    StreamClock* clock = nullptr;
    std::string stream;  // its name
  };
  /// The line of the next work of a stream.
  Line line_of(Stream* stream);
  /// Notes what the work has accessed, and reports a race with other work.
  void note_accesses(const Line& line, const std::string& kernel, std::string_view what, emulator::Footprint footprint);
  /// Reports a race of what a launch has accessed before griddepcontrol.wait with the kernel in front of it.
  void check_early_accesses(const Line& line, const KernelLaunch& launch, emulator::Footprint early);
  static void record(Event* event, const StreamClock& clock);
  void run(const Work& work, const Line& line);
  void run(const Graph& graph, const Line& line);
  void launch(const KernelLaunch& launch, const Line& line);
  void copy(const Copy& copy, const Line& line);
  /// Fails if a row of a copy is not inside one allocation, as memory of the device must be.
  void check_row(const Copy& copy, const CopyRow& row) const;
  /// A copy to the host of memory of the device that no one has written at all is a finding.
  void check_copy_of_unwritten(const Copy& copy, const Line& line);
  /// Copies a row, and adds its accesses to memory of the device to `footprint`.
  void copy_row(const CopyRow& row, emulator::Footprint& footprint, const Line& line);
  /// How many of the bytes are in the block of host memory that they begin in. If not all are, that is a finding.
  std::size_t bytes_in_host_block(std::string_view verb, const std::byte* address, std::size_t bytes, const Line& line);
  void fill(const Fill& fill, const Line& line);
  void allocate(const Allocate& allocation, const Line& line);
  void call_library(const LibraryCall& call, const Line& line);
  /// With Settings::skips_repeats: what RepeatedWork knows the work by; empty for work that always runs.
  std::string repeat_key(const Stream* stream, const Work& work) const;
  /// Whether the work is left out, at least for now.
  bool leaves_out(Stream* stream, const Work& work, const std::string& key);
  /// Runs what was left out of a sequence that does not go on, because its results are needed now.
  void run_deferred();
  /// Tells RepeatedWork of the work that runs.
  void note_for_repeats(const emulator::Footprint& footprint);
  /// Whether the results of the work depend only on memory that no host code writes, and it does nothing else.
  bool is_repeatable(const Work& work, const emulator::ByteRanges& accessed) const;
  void check_launch(const KernelLaunch& launch);
  /// Whether all CTAs of the launch are resident at the same time.
  bool fits(const KernelLaunch& launch);
  bool is_inside(const std::byte* address, std::size_t bytes) const;
  /// Memory of one of allocations_ is no longer accessible.
  void release(CUdeviceptr address, const Allocation& allocation);
  /// "the destination, 64 bytes at 0x1000, is not inside one allocation (0 bytes past the end of ...)"
  std::string why_outside(std::string_view what, const std::byte* address, std::size_t bytes) const;
  /// A forked child reports only its own findings.
  void own_report();

  std::shared_ptr<emulator::GlobalMemory> memory_;
  std::map<CUdeviceptr, Allocation> allocations_;
  std::map<CUdeviceptr, std::shared_ptr<void>> graph_storage_;  // of allocations of graphs
  emulator::UnwrittenBytes unwritten_;
  StreamOrder order_;
  HostWatch host_watch_;
  std::size_t host_bytes_ = 0;  // of managed and pinned allocations
  int calls_ = 0;               // functions of CUDA that run: a host function of a stream may call others
  /// The last work of a chain, if it is a kernel that lets dependent launches start before it ends.
  struct EarlyStart {
    std::string name;
    emulator::Footprint footprint;
  };
  std::map<Chain, EarlyStart> early_starts_;
  emulator::ByteRanges managed_variables_;
  RepeatedWork repeated_work_;
  std::vector<std::pair<Stream*, Work>> deferred_;  // of a sequence that RepeatedWork recognises
  const Work* noted_work_ = nullptr;                // runs, and will be noted in repeated_work_ under this key
  std::string noted_key_;
  bool has_streams_ = false;  // other than the default stream, so that launches may race
  std::map<const void*, std::unique_ptr<Module>> modules_;
  std::set<const Function*> functions_;
  std::map<const void*, std::unique_ptr<Stream>> streams_;
  std::map<const void*, std::unique_ptr<Event>> events_;
  std::map<const void*, std::shared_ptr<Graph>> graphs_;
  std::map<const void*, std::unique_ptr<ExecutableGraph>> executables_;
  std::uint64_t next_id_ = 3;
  std::int64_t process_ = 0;
  std::chrono::steady_clock::time_point written_;  // when the report was written last

  friend class Module;
};

/// The machine's lock while a function of CUDA runs. Host code that accesses memory in use outside of such functions is
/// a finding.
class MachineLock {
 public:
  explicit MachineLock(Machine& machine) : machine_(machine), lock_(machine.mutex) { machine_.begin_call(); }
  ~MachineLock() { machine_.end_call(); }
  MachineLock(const MachineLock&) = delete;
  MachineLock& operator=(const MachineLock&) = delete;

 private:
  Machine& machine_;
  const std::scoped_lock<std::recursive_mutex> lock_;
};

}  // namespace tilewright::cuda_runtime
