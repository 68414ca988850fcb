// Included by the planted bugs. Each kernel has a comment in front of it that begins with its launch, and names the
// error that the emulator must find and the thread in which it finds it: `<<<2, 64>>>: global_race in thread 32`, or
// `warning global_race`.
// The line of the bug ends in the comment BUG.
#pragma once

/// x has 256 ones, out has 256 uninitialised elements, n has 256 zeros.
#define KERNEL(name) extern "C" __global__ void name(const float* x, float* out, int* n)

__constant__ float kTable[60] = {1};

__device__ unsigned shared(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

__device__ void init_barrier_without_fence(unsigned long long* b, int count) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared(b)), "r"(count) : "memory");
}

__device__ void init_barrier(unsigned long long* b, int count) {
  init_barrier_without_fence(b, count);
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ void arrive(unsigned long long* b) {
  asm volatile("{ .reg .b64 s; mbarrier.arrive.shared.b64 s, [%0]; }" ::"r"(shared(b)) : "memory");
}

__device__ void expect(unsigned long long* b, int bytes) {
  asm volatile("{ .reg .b64 s; mbarrier.arrive.expect_tx.shared.b64 s, [%0], %1; }" ::"r"(shared(b)), "r"(bytes)
               : "memory");
}

__device__ void wait_for(unsigned long long* b, int parity) {
  asm volatile("{ .reg .pred p; L%=: mbarrier.try_wait.parity.shared.b64 p, [%0], %1; @!p bra L%=; }" ::"r"(shared(b)),
               "r"(parity)
               : "memory");
}

__device__ void bulk_load(void* to, const void* from, int bytes, unsigned long long* b) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared(to)),
      "l"(from), "r"(bytes), "r"(shared(b))
      : "memory");
}

__device__ void bulk_store(void* to, const void* from, int bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(shared(from)), "r"(bytes)
               : "memory");
  asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
}

__device__ void fence_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
