// Right use of atomics, fences and flags, between CTAs and within one: the emulator must find nothing.
#include "planted_kernel.cuh"

// <<<4, 64>>>
KERNEL(ctas_add_by_atomics) {
  const int t = threadIdx.x, i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(n, 1);
  out[i] = x[t];
}

// <<<4, 32>>>
KERNEL(the_last_cta_sums_the_others_results) {
  const int t = threadIdx.x;
  __shared__ bool last;
  if (t == 0) {
    out[blockIdx.x] = 1;
    __threadfence();
    last = atomicAdd(n, 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  __threadfence();
  if (t == 0) {
    float sum = 0;
    for (int k = 0; k < gridDim.x; ++k) sum += ((volatile float*)out)[k];
    out[100] = sum;
  }
}

// <<<8, 64>>>
KERNEL(a_barrier_of_the_grid_in_an_ordinary_launch) {
  const int t = threadIdx.x;
  if (t == 32) out[blockIdx.x] = 1;
  __syncthreads();
  if (t == 0) {
    __threadfence();
    atomicAdd(n, 1);
    while (*(volatile int*)n < gridDim.x) {
    }
    __threadfence();
  }
  __syncthreads();
  if (t == 0) out[blockIdx.x + 16] = out[(blockIdx.x + 1) % gridDim.x];
}

// <<<3, 32>>>
KERNEL(a_cta_waits_for_a_later_one_by_compare_and_swap) {
  const int t = threadIdx.x;
  if (t != 0) return;
  if (blockIdx.x != 2) {
    int polls = 0;
    while (atomicCAS(n + blockIdx.x, 1, 2) != 1) ++polls;
    __threadfence();
    out[blockIdx.x] = out[100] + (polls < 0);
  } else {
    out[100] = 5;
    __threadfence();
    atomicExch(n, 1);
    atomicExch(n + 1, 1);
  }
}

// <<<2, 32>>>
KERNEL(ctas_take_turns_many_times) {
  const int t = threadIdx.x;
  if (t != 0) return;
  for (int i = 0; i < 100; ++i) {
    while (*(volatile int*)n != 2 * i + blockIdx.x) {
    }
    __threadfence();
    *(volatile int*)n = 2 * i + blockIdx.x + 1;
  }
}

// <<<1, 64>>>
KERNEL(a_histogram_by_shared_atomics) {
  const int t = threadIdx.x;
  __shared__ int s[4];
  if (t < 4) s[t] = 0;
  __syncthreads();
  atomicAdd(s + t % 4, 1);
  __syncthreads();
  if (t < 4) out[t] = s[t];
}

// <<<2, 32>>>
KERNEL(a_flag_between_ctas_with_fences) {
  const int t = threadIdx.x;
  if (blockIdx.x == 0) {
    out[t] = 1;
    __threadfence();
    __syncwarp();
    if (t == 0) *(volatile int*)n = 1;
  } else {
    while (*(volatile int*)n == 0) {
    }
    __threadfence();
    out[64 + t] = out[t];
  }
}

// <<<1, 64>>>
KERNEL(fences_and_atomics_of_the_ctas_scope_in_one_cta) {
  const int t = threadIdx.x;
  if (t == 0) {
    out[0] = 1;
    __threadfence_block();
    atomicExch_block(n, 1);
  } else if (t == 32) {
    while (atomicAdd_block(n, 0) == 0) {
    }
    __threadfence_block();
    out[1] = out[0];
  }
}

// <<<2, 64>>>
KERNEL(atomics_of_the_ctas_scope_on_a_counter_of_each_cta) { atomicAdd_block(n + blockIdx.x, 1); }

// <<<2, 64>>>
KERNEL(a_release_of_the_gpus_scope_after_an_acquire_of_the_ctas) {
  const int t = threadIdx.x;
  __shared__ volatile int written;
  int ready = 0;
  if (t == 0) written = 0;
  __syncthreads();
  if (blockIdx.x == 0 && t == 32) {
    out[0] = 1;
    __threadfence_block();
    written = 1;
  } else if (blockIdx.x == 0 && t == 0) {
    while (written == 0) {
    }
    __threadfence();
    asm volatile("st.release.gpu.global.s32 [%0], 1;" ::"l"(n) : "memory");
  } else if (blockIdx.x == 1 && t == 0) {
    while (ready == 0) asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(ready) : "l"(n) : "memory");
    out[1] = out[0];
  }
}

// <<<2, 64>>>
KERNEL(fences_before_a_barrier_then_an_atomic_of_one_thread) {
  const int t = threadIdx.x;
  __shared__ bool last;
  out[blockIdx.x * 64 + t] = 1;
  __threadfence();
  __syncthreads();
  if (t == 0) last = atomicAdd(n, 1) == gridDim.x - 1;
  __syncthreads();
  if (!last) return;
  __threadfence();
  if (t == 0) n[1] = (int)(out[0] + out[64]);
}

// <<<4, 32>>>
KERNEL(a_lock_by_atomiccas) {
  const int t = threadIdx.x;
  if (t == 0) {
    while (atomicCAS(n, 0, 1) != 0) {
    }
    __threadfence();
    n[1] += 1;
    __threadfence();
    atomicExch(n, 0);
  }
}

// <<<4, 32>>>
KERNEL(a_cta_waits_for_an_earlier_one) {
  const int t = threadIdx.x;
  if (t == 0) {
    if (blockIdx.x > 0)
      while (atomicAdd(n + blockIdx.x - 1, 0) == 0) {
      }
    __threadfence();
    atomicExch(n + blockIdx.x, 1);
  }
}

// <<<4, 64>>>
KERNEL(threads_of_other_ctas_read_what_none_writes) {
  const int t = threadIdx.x, i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = x[0] + x[t];
}

// <<<1, 64>>>
KERNEL(a_lock_that_the_lanes_of_a_warp_take_in_turn) {
  const int t = threadIdx.x;
  __shared__ int lock, sum;
  if (t == 0) lock = sum = 0;
  __syncthreads();
  for (bool done = false; !done;) {
    if (atomicCAS(&lock, 0, 1) == 0) {
      __threadfence_block();
      sum += 1;
      __threadfence_block();
      atomicExch(&lock, 0);
      done = true;
    }
  }
  __syncthreads();
  n[t] = sum;
}

// <<<1, 64>>>
KERNEL(lanes_with_the_same_key_share_an_atomic) {
  const int t = threadIdx.x, lane = t % 32;
  const unsigned same = __match_any_sync(~0u, t % 5);
  const int leader = __ffs(same) - 1;
  int base = 0;
  if (lane == leader) base = atomicAdd(n + t % 5, __popc(same));
  out[t] = __shfl_sync(same, base, leader);
}

// <<<4, 32>>>
KERNEL(the_last_cta_resets_the_counter) {
  const int t = threadIdx.x;
  __shared__ bool is_last;
  out[32 * blockIdx.x + t] = x[t];
  __threadfence();
  if (t == 0) is_last = atomicAdd(n, 1) == gridDim.x - 1;
  __syncthreads();
  if (!is_last) return;
  if (t == 0) *n = 0;
}

// <<<2, 64>>>
KERNEL(a_loop_of_compare_and_swap_begins_with_a_plain_read) {
  int old = *n, assumed;
  do {
    assumed = old;
    old = atomicCAS(n, assumed, __float_as_int(__int_as_float(assumed) + x[threadIdx.x]));
  } while (assumed != old);
  if (threadIdx.x % 32 > n[1]) atomicMax(n + 1, threadIdx.x % 32);
  out[64 * blockIdx.x + threadIdx.x] = 1;
}

// <<<2, 32>>>
KERNEL(a_poll_that_gives_up) {
  const volatile int* const flag = n;
  int polls = 0;
  for (int i = 0; i < 100000 && *flag == 0; ++i) ++polls;
  out[32 * blockIdx.x + threadIdx.x] = polls;
}

// <<<1, 64>>>
KERNEL(a_counter_is_read_after_a_barrier) {
  const int t = threadIdx.x;
  __shared__ int counter;
  if (t == 0) counter = 0;
  __syncthreads();
  atomicAdd(&counter, 1);
  __syncthreads();
  out[t] = counter;
  __syncthreads();
  if (t == 40) counter = 5;
}

// <<<2, 32>>>
KERNEL(loads_of_read_only_memory) {
  const int t = threadIdx.x, i = blockIdx.x * blockDim.x + threadIdx.x;
  const float4 v = __ldg((const float4*)x + t);
  n[i] = __ldg(n + 128 + t % 3);
  out[i] = v.x + v.y + v.z + v.w + __ldg(x + i);
}
