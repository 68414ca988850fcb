// Races in global memory, between the CTAs of a launch, its warps and its lanes.
#include "planted_kernel.cuh"

// <<<2, 32>>>: global_race in thread 0
KERNEL(two_ctas_write_one_element) {
  const int t = threadIdx.x;
  out[t] = blockIdx.x;  // BUG
}

// <<<2, 32>>>: global_race in thread 0
KERNEL(a_sum_over_ctas_without_an_atomic) {
  const int t = threadIdx.x;
  if (t == 0) n[0] += 1;  // BUG
}

// <<<1, 64>>>: global_race in thread 32
KERNEL(two_warps_of_a_cta_update_one_element) {
  const int t = threadIdx.x, lane = t % 32;
  if (lane == 0) n[0] += 1;  // BUG
}

// <<<1, 32>>>: global_race in thread 1
KERNEL(lanes_store_different_values_to_one_element) {
  const int t = threadIdx.x;
  n[0] = t;  // BUG
}

// <<<2, 32>>>: global_race in thread 0
KERNEL(read_of_another_ctas_result) {
  const int t = threadIdx.x;
  if (blockIdx.x == 0) {
    out[t] = 1;
    return;
  }
  out[t + 64] = out[t] + x[t];  // BUG
}

// <<<1, 64>>>: global_race in thread 32
KERNEL(another_warp_reads_what_one_wrote_to_global_memory) {
  const int t = threadIdx.x;
  n[t] = t;
  if (t >= 32) out[t] = n[t - 32];  // BUG
}

// <<<1, 32>>>: global_race in thread 0
KERNEL(a_lane_reads_what_its_neighbour_wrote_to_global_memory) {
  const int t = threadIdx.x;
  n[t] = t;
  out[t] = n[t ^ 1];  // BUG
}

// <<<2, 32>>>: global_race in thread 0
KERNEL(tiles_of_ctas_overlap) {
  const int t = threadIdx.x, i = blockIdx.x * blockDim.x + threadIdx.x;
  out[blockIdx.x * 31 + t] = i;  // BUG
}

// <<<2, 32>>>: global_race in thread 1
KERNEL(a_stencil_in_place) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  n[i] = n[i + 1] + 1;  // BUG
}

// <<<2, 32>>>: global_race in thread 0
KERNEL(a_flag_between_ctas_without_a_fence) {
  const int t = threadIdx.x;
  if (blockIdx.x == 0) {
    out[t] = 1;
    __syncwarp();
    if (t == 0) *(volatile int*)n = 1;
  } else {
    while (*(volatile int*)n == 0) {
    }
    out[64 + t] = out[t];  // BUG
  }
}

// <<<2, 32>>>: global_race in thread 0
KERNEL(a_fence_of_the_ctas_scope_publishes_to_another_cta) {
  const int t = threadIdx.x;
  if (blockIdx.x == 0) {
    out[t] = 1;
    __threadfence_block();
    __syncwarp();
    if (t == 0) *(volatile int*)n = 1;
  } else {
    while (*(volatile int*)n == 0) {
    }
    __threadfence();
    out[64 + t] = out[t];  // BUG
  }
}

// <<<2, 32>>>: global_race in thread 0
KERNEL(an_atomic_of_the_ctas_scope_on_a_counter_of_all_ctas) {
  const int t = threadIdx.x;
  if (t == 0) atomicAdd_block(n, 1);  // BUG
}

// <<<2, 32>>>: global_race in thread 0
KERNEL(a_release_of_the_ctas_scope_between_ctas) {
  const int t = threadIdx.x;
  if (blockIdx.x == 0) {
    if (t == 0) asm volatile("st.release.cta.global.s32 [%0], 1;" ::"l"(n) : "memory");
  } else if (t == 0) {
    int ready = 0;
    while (ready == 0) asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(ready) : "l"(n) : "memory");  // BUG
  }
}

// <<<2, 32>>>: global_race in thread 0
KERNEL(an_acquire_of_the_ctas_scope_between_ctas) {
  const int t = threadIdx.x;
  if (blockIdx.x == 0) {
    if (t == 0) asm volatile("st.release.gpu.global.s32 [%0], 1;" ::"l"(n) : "memory");
  } else if (t == 0) {
    int ready = 0;
    while (ready == 0) asm volatile("ld.acquire.cta.global.s32 %0, [%1];" : "=r"(ready) : "l"(n) : "memory");  // BUG
  }
}

// <<<4, 32>>>: global_race in thread 0
KERNEL(the_last_cta_sums_results_that_no_fence_publishes) {
  const int t = threadIdx.x;
  __shared__ bool last;
  if (t == 0) {
    out[blockIdx.x] = 1;
    last = atomicAdd(n, 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last || t != 0) return;
  float sum = 0;
  for (int k = 0; k < gridDim.x; ++k) sum += out[k];  // BUG
  out[100] = sum;
}

// The shadow of global memory is kept by pages of 4096 bytes, of which a cache finds one of each 256.
__device__ int pages[(1 << 18) + 4096];
__device__ int* second_page() { return (int*)(((unsigned long long)(pages + 1024) + 4095) & ~4095ull); }

// <<<1, 64>>>: global_race in thread 32
KERNEL(the_last_element_of_a_page_is_written_by_two_warps) {
  const int t = threadIdx.x;
  int* const p = second_page();
  if (t < 32) {
    for (int i = -64; i < 64; i += 32) p[i + t] = t;
  }
  if (t == 32) p[-1] = 5;  // BUG
}

// <<<1, 64>>>: global_race in thread 32
KERNEL(the_first_element_of_a_page_is_written_by_two_warps) {
  const int t = threadIdx.x;
  int* const p = second_page();
  if (t < 32) {
    for (int i = -64; i < 64; i += 32) p[i + t] = t;
  }
  if (t == 32) p[0] = 5;  // BUG
}

// <<<1, 64>>>: global_race in thread 32
KERNEL(a_row_across_two_pages_is_overwritten) {
  const int t = threadIdx.x;
  int* const p = second_page() - 16;
  if (t < 32) p[t] = t;
  if (t == 32) p[20] = 5;  // BUG
}

// <<<1, 64>>>: global_race in thread 32
KERNEL(a_page_that_another_one_has_replaced_in_the_cache) {
  const int t = threadIdx.x;
  if (t < 32) {
    pages[t] = t;
    pages[(1 << 18) + t] = t;
  }
  if (t == 32) pages[3] = 5;  // BUG
}

// <<<1, 128>>>: global_race in thread 0
KERNEL(one_of_four_readers_of_global_memory_is_left_out_of_a_barrier) {
  const int t = threadIdx.x;
  if (t < 32) n[t] = t;
  __syncthreads();
  const int v = n[t % 32];
  if (t / 32 != 2) asm volatile("bar.sync 1, 96;");
  if (t < 32) n[t] = v + 1;  // BUG
  __syncthreads();
  out[t] = v;
}

// <<<1, 96>>>: global_race in thread 32
KERNEL(one_element_of_a_strided_row_is_overwritten) {
  const int t = threadIdx.x;
  if (t < 64) pages[t] = t;
  __syncthreads();
  int v = 0;
  if (t >= 64) v = pages[2 * (t - 64)];
  if (t == 32) pages[46] = 5;  // BUG
  out[t] = v;
}

// <<<2, 32>>>: global_race in thread 0
KERNEL(a_global_counter_is_reset_beside_atomics) {
  if (blockIdx.x == 0)
    atomicAdd(n, 1);
  else if (threadIdx.x == 0)
    *n = 0;  // BUG
}

// <<<2, 32>>>: warning global_race in thread 0
KERNEL(a_global_counter_is_read_beside_atomics) {
  if (blockIdx.x == 0)
    atomicAdd(n, 1);
  else
    out[threadIdx.x] = *n;  // BUG
}

// <<<2, 32>>>: warning global_race in thread 0
KERNEL(a_global_counter_is_counted_up_beside_reads) {
  if (blockIdx.x == 0)
    out[threadIdx.x] = *n;
  else
    atomicAdd(n, 1);  // BUG
}

// <<<1, 64>>>: warning non_coherent_read in thread 32
KERNEL(a_load_of_read_only_memory_reads_what_the_kernel_has_written) {
  const int t = threadIdx.x;
  n[t] = t;
  __syncthreads();
  out[t] = __ldg(n + 63 - t);  // BUG
}

// <<<1, 32>>>: warning non_coherent_read in thread 0
KERNEL(a_load_of_read_only_memory_reads_what_an_atomic_has_written) {
  const int t = threadIdx.x;
  atomicAdd(n + t, 1);
  __syncthreads();
  if (t < 8) out[t] = __ldg((const short*)n + 4 * t);  // BUG
}
