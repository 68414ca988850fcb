// Work in several streams; the argument chooses a case by its name. Those that begin with "race" lack an order.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>

constexpr int kSize = 256;
constexpr int kBytes = kSize * sizeof(int);

__global__ void write(int* x) { x[threadIdx.x] = static_cast<int>(threadIdx.x); }
__global__ void read(const int* x, int* y) { y[threadIdx.x] = x[threadIdx.x]; }
__global__ void count(int* x) { atomicAdd(x, 1); }
__global__ void write_and_signal(int* x, volatile int* done) {
  x[threadIdx.x] = static_cast<int>(threadIdx.x);
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x == 0) *done = 1;
}

// Kernels for programmatic dependent launches.
__device__ void launch_dependents() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
__device__ void wait_for_grids() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
__global__ void write_and_let_start(int* x) {
  launch_dependents();
  x[threadIdx.x] = static_cast<int>(threadIdx.x);
}
__global__ void read_after_wait(const int* x, int* y) {
  wait_for_grids();
  y[threadIdx.x] = x[threadIdx.x];
}
__global__ void read_before_wait(const int* x, int* y) {
  const int value = x[threadIdx.x];
  wait_for_grids();
  y[threadIdx.x] = value;
}
__global__ void read_after_the_wait_of_a_thread(const int* x, int* y) {
  if (threadIdx.x == 0) wait_for_grids();
  __syncthreads();
  y[threadIdx.x] = x[threadIdx.x];
}

int main(int, char** arguments) {
  int *x = nullptr, *y = nullptr, *z = nullptr, *host = nullptr, *managed = nullptr, *large = nullptr;
  cudaMalloc(&x, kBytes);
  cudaMalloc(&y, kBytes);
  cudaMalloc(&z, kBytes);
  cudaMallocHost(&host, kBytes);
  cudaMallocManaged(&managed, kBytes);
  cudaMallocManaged(&large, 100 * kBytes);
  cudaStream_t a, b, free_running;
  cudaStreamCreate(&a);
  cudaStreamCreate(&b);
  cudaStreamCreateWithFlags(&free_running, cudaStreamNonBlocking);
  cudaEvent_t event, other;
  cudaEventCreate(&event);
  cudaEventCreate(&other);
  cudaMemset(x, 0, kBytes);
  cudaMemset(z, 0, kBytes);
  cudaDeviceSynchronize();
  const auto to_device = cudaMemcpyHostToDevice;
  const auto write_in = [&](cudaStream_t stream) { write<<<1, kSize, 0, stream>>>(x); };
  const auto read_in = [&](cudaStream_t stream) { read<<<1, kSize, 0, stream>>>(x, y); };
  const auto start_early = [&](void (*kernel)(const int*, int*)) {
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = 1;
    config.blockDim = kSize;
    config.stream = a;
    config.attrs = &attribute;
    config.numAttrs = 1;
    cudaLaunchKernelEx(&config, kernel, static_cast<const int*>(x), y);
  };
  const auto write_and_let_start_in = [&](cudaStream_t stream) { write_and_let_start<<<1, kSize, 0, stream>>>(x); };
  const auto launch_graph = [&](bool joins) {
    cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal);
    cudaEventRecord(event, a);
    cudaStreamWaitEvent(b, event);
    write_in(b);
    if (joins) cudaEventRecord(other, b);
    if (joins) cudaStreamWaitEvent(a, other);
    read_in(a);
    if (!joins) cudaEventRecord(other, b);
    if (!joins) cudaStreamWaitEvent(a, other);
    cudaGraph_t graph;
    cudaStreamEndCapture(a, &graph);
    cudaGraphExec_t executable;
    cudaGraphInstantiate(&executable, graph, 0);
    cudaGraphLaunch(executable, a);
    cudaGraphLaunch(executable, a);
  };
  volatile int* const seen = managed;  // what the host reads, and the compiler must not leave out
  const auto write_managed = [&] { write<<<1, kSize, 0, a>>>(managed); };
  const auto copy_to_host = [&] { cudaMemcpyAsync(host, x, kBytes, cudaMemcpyDeviceToHost, a); };
  const std::map<std::string, std::function<void()>> cases = {
      {"race_of_a_read_by_the_host", [&] { write_managed(), static_cast<void>(seen[3]); }},
      {"race_of_a_write_by_the_host",
       [&] { read<<<1, kSize, 0, a>>>(managed, y), *static_cast<volatile int*>(managed) = 1; }},
      {"race_of_a_copy_and_the_host", [&] { copy_to_host(), static_cast<void>(static_cast<volatile int*>(host)[5]); }},
      {"race_of_the_host_in_a_large_array",
       [&] {
         for (int i = 0; i < 100; ++i) write<<<1, kSize, 0, a>>>(large + i * kSize);
         cudaMemsetAsync(large, 0, 100 * kBytes, a);
         static_cast<void>(static_cast<volatile int*>(large)[50 * kSize]);
       }},
      {"race_after_an_event_of_earlier_work",
       [&] { cudaEventRecord(event, a), write_managed(), cudaEventSynchronize(event), static_cast<void>(seen[3]); }},
      {"host_after_a_wait", [&] { write_managed(), cudaStreamSynchronize(a), static_cast<void>(seen[3]); }},
      {"host_after_a_query",
       [&] {
         write_managed(), cudaEventRecord(event, a);
         while (cudaEventQuery(event) != cudaSuccess) {
         }
         static_cast<void>(seen[3]);
       }},
      {"host_after_a_copy",
       [&] { write_managed(), cudaMemcpy(host, x, 4, cudaMemcpyDeviceToHost), static_cast<void>(seen[3]); }},
      {"host_after_a_signal",
       [&] {
         write_and_signal<<<1, kSize, 0, a>>>(managed, large);
         while (static_cast<volatile int*>(large)[0] == 0) {
         }
         static_cast<void>(seen[3]);
       }},
      {"host_reads_what_a_copy_reads",
       [&] { cudaMemcpyAsync(x, host, kBytes, to_device, a), static_cast<void>(static_cast<volatile int*>(host)[5]); }},
      {"host_and_kernel_in_other_bytes",
       [&] { write<<<1, kSize, 0, a>>>(large), static_cast<volatile int*>(large)[kSize] = 1; }},
      {"host_function_of_the_stream",
       [&] {
         write_managed();
         cudaLaunchHostFunc(
             a, [](void* to) { ++*static_cast<int*>(to); }, managed);
       }},
      {"race_of_kernels", [&] { write_in(a), read_in(b); }},
      {"race_of_an_early_start", [&] { write_and_let_start_in(a), start_early(read); }},
      {"race_before_the_wait", [&] { write_and_let_start_in(a), start_early(read_before_wait); }},
      {"early_start_with_a_wait", [&] { write_and_let_start_in(a), start_early(read_after_wait); }},
      {"early_start_with_one_wait", [&] { write_and_let_start_in(a), start_early(read_after_the_wait_of_a_thread); }},
      {"early_start_after_a_kernel_that_does_not_allow_it", [&] { write_in(a), start_early(read); }},
      {"early_start_after_a_fill",
       [&] { write_and_let_start_in(a), cudaMemsetAsync(z, 0, kBytes, a), start_early(read); }},
      {"race_after_a_read", [&] { read_in(a), write_in(b); }},
      {"race_with_the_default_stream", [&] { write_in(nullptr), read_in(free_running); }},
      {"race_with_a_fill", [&] { cudaMemsetAsync(x, 1, kBytes, a), read_in(free_running); }},
      {"race_with_a_copy", [&] { cudaMemcpyAsync(x, host, kBytes, to_device, a), read_in(b); }},
      {"race_of_pinned_memory",
       [&] {
         cudaMemcpyAsync(x, host, kBytes, to_device, a);
         cudaMemcpyAsync(host, z, kBytes, cudaMemcpyDeviceToHost, b);
       }},
      {"race_as_the_event_is_too_early",
       [&] { cudaEventRecord(event, a), write_in(a), cudaStreamWaitEvent(b, event), read_in(b); }},
      {"race_in_a_graph", [&] { launch_graph(false); }},
      {"race_with_an_atomic", [&] { count<<<1, 32, 0, a>>>(x), read_in(b); }},
      {"race_of_the_per_thread_stream", [&] { write_in(cudaStreamPerThread), read_in(a); }},
      {"race_with_a_free",
       [&] {
         int* pooled = nullptr;
         cudaMallocAsync(&pooled, kBytes, a);
         cudaMemsetAsync(pooled, 0, kBytes, a);
         cudaEventRecord(event, a);
         cudaStreamWaitEvent(b, event);
         read<<<1, kSize, 0, b>>>(pooled, y);
         cudaFreeAsync(pooled, a);
       }},
      {"event", [&] { write_in(a), cudaEventRecord(event, a), cudaStreamWaitEvent(b, event), read_in(b); }},
      {"event_of_an_event",
       [&] {
         write_in(a), cudaEventRecord(event, a), cudaStreamWaitEvent(free_running, event);
         cudaEventRecord(other, free_running), cudaStreamWaitEvent(b, other), read_in(b);
       }},
      {"event_of_the_host", [&] { write_in(a), cudaEventRecord(event, a), cudaEventSynchronize(event), read_in(b); }},
      {"synchronised_stream", [&] { write_in(a), cudaStreamSynchronize(a), read_in(b); }},
      {"synchronised_device", [&] { write_in(free_running), cudaDeviceSynchronize(), read_in(b); }},
      {"default_stream", [&] { write_in(a), read_in(nullptr), write_in(b); }},
      {"default_stream_of_a_thread", [&] { write_in(cudaStreamPerThread), read_in(nullptr), write_in(a); }},
      {"destroyed_stream", [&] { write_in(a), cudaStreamDestroy(a), read_in(nullptr); }},
      {"copy_of_the_host", [&] { cudaMemcpy(x, host, kBytes, to_device), read_in(free_running); }},
      {"reads_of_both", [&] { read_in(a), read<<<1, kSize, 0, b>>>(x, z); }},
      {"atomics_of_both", [&] { count<<<1, 32, 0, a>>>(x), count<<<1, 32, 0, b>>>(x); }},
      {"halves",
       [&] { write<<<1, kSize / 2, 0, a>>>(x), write<<<1, kSize / 2, 0, b>>>(x + kSize / 2), read_in(nullptr); }},
      {"graph", [&] { launch_graph(true), read_in(a); }},
      {"callback",
       [&] {
         write_in(free_running);
         cudaLaunchHostFunc(
             free_running, [](void*) {}, nullptr);
         read_in(b);
       }},
      {"pool",
       [&] {
         int *first = nullptr, *second = nullptr;
         cudaMallocAsync(&first, kBytes, a);
         write<<<1, kSize, 0, a>>>(first);
         cudaFreeAsync(first, a);
         cudaMallocAsync(&second, kBytes, b);
         write<<<1, kSize, 0, b>>>(second);
         cudaFreeAsync(second, b);
       }},
      {"memory_that_is_used_again",
       [&] {
         for (const cudaStream_t stream : {a, b}) {
           int* memory = nullptr;
           cudaMalloc(&memory, kBytes);
           write<<<1, kSize, 0, stream>>>(memory);
           cudaFree(memory);
         }
       }},
  };
  if (arguments[1] == nullptr) {
    for (const auto& [name, run] : cases) std::printf("%s\n", name.c_str());
    return 0;
  }
  cases.at(arguments[1])();
  return cudaDeviceSynchronize() == cudaSuccess ? 0 : 3;
}
