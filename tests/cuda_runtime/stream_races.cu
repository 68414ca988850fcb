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

int main(int, char** arguments) {
  int *x = nullptr, *y = nullptr, *z = nullptr, *host = nullptr;
  cudaMalloc(&x, kBytes);
  cudaMalloc(&y, kBytes);
  cudaMalloc(&z, kBytes);
  cudaMallocHost(&host, kBytes);
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
  const std::map<std::string, std::function<void()>> cases = {
      {"race_of_kernels", [&] { write_in(a), read_in(b); }},
      {"race_after_a_read", [&] { read_in(a), write_in(b); }},
      {"race_with_the_default_stream", [&] { write_in(nullptr), read_in(free_running); }},
      {"race_with_a_fill", [&] { cudaMemsetAsync(x, 1, kBytes, a), read_in(free_running); }},
      {"race_with_a_copy", [&] { cudaMemcpyAsync(x, host, kBytes, to_device, a), read_in(b); }},
      {"race_of_pinned_memory",
       [&] {
         cudaMemcpyAsync(x, host, kBytes, to_device, a);
         cudaMemcpyAsync(host, z, kBytes, cudaMemcpyDeviceToHost, b);
       }},
      {"race_as_the_event_is_too_early", [&] { cudaEventRecord(event, a), write_in(a), cudaStreamWaitEvent(b, event), read_in(b); }},
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
         cudaLaunchHostFunc(free_running, [](void*) {}, nullptr);
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
