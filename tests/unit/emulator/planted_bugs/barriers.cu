// Barriers, warps and asynchronous copies: threads that do not meet, and data that nobody waits for.
#include "planted_kernel.cuh"

// <<<1, 32>>>: bad_warp_mask in thread 0
KERNEL(a_shuffle_mask_without_the_thread) {
  const int t = threadIdx.x, lane = t % 32;
  if (lane < 16) out[t] = __shfl_sync(0x0000fff0u, x[t], 4);  // BUG
}

// <<<1, 64>>>: bad_warp_mask in thread 32
KERNEL(a_shuffle_from_lanes_that_have_exited) {
  const int t = threadIdx.x;
  if (t >= 40) return;
  float v = x[t];
  v += __shfl_down_sync(0xffffffffu, v, 16);  // BUG
  out[t] = v;
}

// <<<1, 32>>>: barrier_divergence in thread 0
KERNEL(halves_of_a_warp_wait_for_each_other) {
  const int t = threadIdx.x, lane = t % 32;
  if (lane < 16) {
    __syncwarp();  // BUG
    out[t] = 1;
  } else {
    out[t] = 2;
    __syncwarp();
    out[t] += x[t];
  }
}

// <<<1, 32>>>: bad_warp_mask in thread 0
KERNEL(a_vote_with_a_mask_that_lacks_the_thread) {
  const int t = threadIdx.x, lane = t % 32;
  if (lane < 16) out[t] = __any_sync(0xffff0000u, x[t] > 0);  // BUG
}

// <<<1, 64>>>: deadlock in thread 0
KERNEL(a_named_barrier_that_waits_for_too_many) {
  const int t = threadIdx.x;
  asm volatile("bar.sync 1, 96;");  // BUG
  out[t] = x[t];
}

// <<<1, 64>>>: barrier_divergence in thread 32
KERNEL(thread_counts_of_a_named_barrier_differ) {
  const int t = threadIdx.x;
  const int count = t < 32 ? 64 : 32;
  asm volatile("bar.sync 1, %0;" ::"r"(count));  // BUG
  out[t] = x[t];
}

// <<<1, 32>>>: mbarrier_misuse in thread 0
KERNEL(an_mbarrier_that_is_not_initialised) {
  const int t = threadIdx.x;
  __shared__ unsigned long long b;
  const unsigned at = (unsigned)__cvta_generic_to_shared(&b);
  asm volatile("{ .reg .b64 s; mbarrier.arrive.shared.b64 s, [%0]; }" ::"r"(at));  // BUG
  out[t] = x[t];
}

// <<<1, 64>>>: async_write_in_flight in thread 0
KERNEL(an_asynchronous_copy_is_read_before_it_is_complete) {
  const int t = threadIdx.x;
  __shared__ float s[64];
  const unsigned to = (unsigned)__cvta_generic_to_shared(s + t);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(x + t));
  out[t] = s[t];  // BUG
}

// <<<1, 64>>>: async_write_in_flight in thread 0
KERNEL(the_wait_leaves_one_group_of_copies_in_flight) {
  const int t = threadIdx.x;
  __shared__ float s[64];
  const unsigned to = (unsigned)__cvta_generic_to_shared(s + t);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(x + t));
  asm volatile("cp.async.commit_group;");
  asm volatile("cp.async.wait_group 1;");
  out[t] = s[t];  // BUG
}

// <<<1, 32>>>: trap in thread 0
KERNEL(a_breakpoint) {
  const int t = threadIdx.x;
  if (x[t] == 1) __brkpt();  // BUG
  out[t] = 1;
}

// <<<1, 32>>>: no_progress in thread 0
KERNEL(an_endless_loop) {
  const int t = threadIdx.x;
  volatile float v = x[t];
  while (v > 0) v = v + 1;  // BUG
  out[t] = v;
}

// <<<2, 32>>>: deadlock in thread 0
KERNEL(a_wait_for_a_flag_that_no_cta_sets) {
  if (blockIdx.x == 0) {
    while (*(volatile int*)n == 0) {  // BUG
    }
  } else {
    atomicExch(n + 1, 1);
  }
}

// <<<4, 32>>>: deadlock in thread 0
KERNEL(a_barrier_of_the_grid_that_counts_one_cta_too_many) {
  const int t = threadIdx.x;
  __syncthreads();
  if (t == 0) {
    atomicAdd(n, 1);
    while (atomicAdd(n, 0) < 5) {  // BUG
    }
  }
  __syncthreads();
  out[t] = 1;
}

// <<<1, 64>>>: trap in thread 40
KERNEL(a_failed_assert) {
  const int t = threadIdx.x;
  if (!(t < 40)) __trap();  // BUG
  out[t] = 1;
}

// <<<1, 64>>>: deadlock in thread 0
KERNEL(an_mbarrier_that_counts_one_thread_too_many) {
  const int t = threadIdx.x;
  __shared__ unsigned long long b;
  if (t == 0) init_barrier(&b, 65);
  __syncthreads();
  arrive(&b);
  wait_for(&b, 0);  // BUG
  out[t] = 1;
}

// <<<1, 64>>>: warning mbarrier_misuse in thread 1
KERNEL(an_mbarrier_that_all_lanes_of_a_warp_initialise) {
  const int t = threadIdx.x;
  __shared__ unsigned long long b;
  if (t < 32) asm volatile("mbarrier.init.shared.b64 [%0], 64;" ::"r"(shared(&b)) : "memory");  // BUG
  __syncthreads();
  arrive(&b);
  wait_for(&b, 0);
  out[t] = x[t];
}

// <<<1, 32>>>: mbarrier_misuse in thread 1
KERNEL(an_mbarrier_that_lanes_initialise_with_different_counts) {
  const int t = threadIdx.x;
  __shared__ unsigned long long b;
  if (t < 2) asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared(&b)), "r"(t + 1) : "memory");  // BUG
  __syncthreads();
  out[t] = x[t];
}

// <<<1, 32>>>: mbarrier_misuse in thread 0
KERNEL(an_mbarrier_that_is_initialised_twice) {
  const int t = threadIdx.x;
  __shared__ unsigned long long b;
  for (int i = 0; i < 2; ++i) {
    if (t == 0) init_barrier_without_fence(&b, 32);  // BUG
  }
  out[t] = x[t];
}

// <<<1, 64>>>: mbarrier_misuse in thread 32
KERNEL(an_arrival_without_a_barrier_after_the_initialisation) {
  const int t = threadIdx.x;
  __shared__ unsigned long long b;
  if (t == 0) init_barrier(&b, 64);
  arrive(&b);  // BUG
  wait_for(&b, 0);
  out[t] = 1;
}

// <<<1, 32>>>: mbarrier_misuse in thread 31
KERNEL(an_mbarrier_of_one_arrival_less_than_threads) {
  const int t = threadIdx.x;
  __shared__ unsigned long long b;
  if (t == 0) init_barrier(&b, 31);
  __syncthreads();
  arrive(&b);  // BUG
  wait_for(&b, 0);
  out[t] = x[t];
}

// <<<1, 64>>>: warning missing_proxy_fence in thread 0
KERNEL(a_bulk_copy_that_completes_on_an_mbarrier_whose_init_has_no_fence) {
  const int t = threadIdx.x;
  __shared__ __align__(16) float s[64];
  __shared__ unsigned long long b;
  if (t == 0) init_barrier_without_fence(&b, 1);
  __syncthreads();
  if (t == 0) {
    expect(&b, 256);
    bulk_load(s, x, 256, &b);  // BUG
  }
  wait_for(&b, 0);
  out[t] = s[t];
}

// <<<1, 64>>>: transaction_mismatch in thread 0
KERNEL(a_bulk_copy_of_fewer_bytes_than_are_expected) {
  const int t = threadIdx.x;
  __shared__ __align__(16) float s[64];
  __shared__ unsigned long long b;
  if (t == 0) init_barrier(&b, 1);
  __syncthreads();
  if (t == 0) {
    expect(&b, 512);
    bulk_load(s, x, 256, &b);
  }
  wait_for(&b, 0);  // BUG
  out[t] = s[t];
}

// <<<1, 64>>>: missing_proxy_fence in thread 0
KERNEL(a_bulk_store_without_a_proxy_fence) {
  const int t = threadIdx.x;
  __shared__ __align__(16) float s[64];
  s[t] = x[t];
  __syncthreads();
  if (t == 0) bulk_store(out, s, 256);  // BUG
}

// <<<1, 32>>>: bad_warp_mask in thread 31
KERNEL(a_warp_barrier_with_a_mask_that_lacks_a_thread) {
  const int t = threadIdx.x;
  out[t] = 1;
  __syncwarp(0x7fffffffu);  // BUG
  out[t] += x[t];
}

// <<<1, 64>>>: missing_proxy_fence in thread 0
KERNEL(a_bulk_copy_reads_global_memory_that_threads_have_just_written) {
  const int t = threadIdx.x;
  __shared__ __align__(16) float s[64];
  __shared__ unsigned long long b;
  if (t == 0) init_barrier(&b, 1);
  out[t] = x[t];
  __syncthreads();
  if (t == 0) {
    expect(&b, 256);
    bulk_load(s, out, 256, &b);  // BUG
  }
  wait_for(&b, 0);
  out[64 + t] = s[t];
}

// <<<2, 32>>>: missing_proxy_fence in thread 0
KERNEL(a_bulk_copy_reads_what_another_cta_has_published_with_no_proxy_fence) {
  const int t = threadIdx.x;
  __shared__ __align__(16) float s[32];
  __shared__ unsigned long long b;
  if (t == 0) init_barrier(&b, 1);
  if (blockIdx.x == 0) {
    out[t] = x[t];
    __syncthreads();
    __threadfence();
    if (t == 0) atomicExch(n, 1);
    return;
  }
  if (t == 0) {
    while (atomicAdd(n, 0) == 0) {
    }
    __threadfence();
    expect(&b, 128);
    bulk_load(s, out, 128, &b);  // BUG
  }
  wait_for(&b, 0);
  out[64 + t] = s[t];
}

// <<<2, 32>>>: global_race in thread 0
KERNEL(a_bulk_copy_reads_what_another_cta_writes) {
  const int t = threadIdx.x;
  __shared__ __align__(16) float s[32];
  __shared__ unsigned long long b;
  if (t == 0) init_barrier(&b, 1);
  if (blockIdx.x == 0) {
    out[t] = x[t];
    return;
  }
  if (t == 0) {
    expect(&b, 128);
    bulk_load(s, out, 128, &b);  // BUG
  }
  wait_for(&b, 0);
  out[64 + t] = s[t];
}
