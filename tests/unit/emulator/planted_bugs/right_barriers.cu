// Right use of barriers, warps and asynchronous copies: the emulator must find nothing.
#include "planted_kernel.cuh"

// <<<1, 64>>>
KERNEL(threads_exit_before_a_barrier) {
  const int t = threadIdx.x;
  __shared__ float s[64];
  if (t >= 40) return;
  s[t] = x[t];
  __syncthreads();
  out[t] = s[39 - t];
}

// <<<1, 32>>>
KERNEL(a_reduction_in_one_warp_with_syncwarp) {
  const int t = threadIdx.x;
  __shared__ float s[32];
  s[t] = x[t];
  __syncwarp();
  for (int d = 16; d > 0; d /= 2) {
    float v = s[(t + d) % 32];
    __syncwarp();
    s[t] += v;
    __syncwarp();
  }
  out[t] = s[t];
}

// <<<1, 64>>>
KERNEL(a_reduction_by_shuffles) {
  const int t = threadIdx.x, lane = t % 32;
  float v = x[t];
  for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(~0u, v, d);
  if (lane == 0) out[t] = v;
}

// <<<1, 20>>>
KERNEL(a_shuffle_in_a_partial_warp_whose_result_is_dropped) {
  const int t = threadIdx.x;
  float v = x[t];
  v = __shfl_down_sync(~0u, v, 8);
  if (t < 12) out[t] = v;
}

// <<<1, 64>>>
KERNEL(a_ballot_before_a_shuffle_in_a_branch) {
  const int t = threadIdx.x, lane = t % 32;
  const unsigned mask = __ballot_sync(~0u, lane % 3 == 0);
  if (lane % 3 == 0) out[t] = __shfl_sync(mask, x[t], 0);
}

// <<<1, 64>>>
KERNEL(a_scan_that_drops_what_comes_from_below_lane_0) {
  const int t = threadIdx.x, lane = t % 32;
  float v = x[t];
  for (int d = 1; d < 32; d *= 2) {
    const float u = __shfl_up_sync(~0u, v, d);
    if (lane >= d) v += u;
  }
  out[t] = v;
}

// <<<1, 64>>>
KERNEL(each_warp_has_its_own_part_of_shared_memory) {
  const int t = threadIdx.x, lane = t % 32;
  __shared__ float s[2][33];
  s[t / 32][lane] = x[t];
  __syncwarp();
  out[t] = s[t / 32][31 - lane];
}

// <<<1, 64>>>
KERNEL(two_buffers_and_one_barrier_for_each_step) {
  const int t = threadIdx.x;
  __shared__ float s[2][64];
  float sum = 0;
  for (int k = 0; k < 4; ++k) {
    s[k % 2][t] = x[t + k];
    __syncthreads();
    sum += s[k % 2][63 - t];
  }
  out[t] = sum;
}

// <<<1, 64>>>
KERNEL(asynchronous_copies_with_a_wait_and_a_barrier) {
  const int t = threadIdx.x;
  __shared__ float s[64];
  const unsigned to = (unsigned)__cvta_generic_to_shared(s + t);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(x + t));
  asm volatile("cp.async.wait_all;");
  __syncthreads();
  out[t] = s[63 - t];
}

// <<<1, 64>>>
KERNEL(each_thread_waits_for_its_own_copy) {
  const int t = threadIdx.x;
  __shared__ float s[64];
  const unsigned to = (unsigned)__cvta_generic_to_shared(s + t);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(x + t));
  asm volatile("cp.async.wait_all;");
  out[t] = s[t];
}

// <<<1, 64>>>
KERNEL(one_warp_works_all_wait) {
  const int t = threadIdx.x;
  __shared__ float s[32];
  if (t < 32) s[t] = x[t];
  __syncthreads();
  out[t] = s[t % 32];
}

// <<<1, 64>>>
KERNEL(a_named_barrier_of_one_warp) {
  const int t = threadIdx.x, lane = t % 32;
  __shared__ float s[64];
  s[t] = x[t];
  asm volatile("bar.sync %0, 32;" ::"r"(1 + t / 32) : "memory");
  out[t] = s[t / 32 * 32 + 31 - lane];
}

// <<<1, 64>>>
KERNEL(active_lanes_vote_in_a_branch) {
  const int t = threadIdx.x, lane = t % 32;
  if (lane % 3 == 0) out[t] = __popc(__ballot_sync(__activemask(), x[t] > 0));
}

// <<<1, 32>>>
KERNEL(a_sum_over_the_warp_by_redux) {
  const int t = threadIdx.x;
  n[t] = __reduce_add_sync(~0u, t);
}

// <<<1, 32>>>
KERNEL(lanes_with_equal_values_find_each_other) {
  const int t = threadIdx.x;
  n[t] = __match_any_sync(~0u, t % 4);
}

// <<<1, 16>>>
KERNEL(the_mask_of_a_partial_warp_names_all_its_lanes) {
  const int t = threadIdx.x;
  n[t] = __popc(__ballot_sync(0xffffu, t < 10));
}

// <<<1, 64>>>
KERNEL(counting_by_a_barrier) {
  const int t = threadIdx.x;
  n[t] = __syncthreads_count(t % 2 == 0);
}

// <<<1, 64>>>
KERNEL(half_of_the_threads_wait_for_the_other_half) {
  const int t = threadIdx.x;
  __shared__ float s[64];
  if (t < 32) {
    s[t] = x[t];
    s[t + 32] = x[t];
    asm volatile("bar.arrive 1, 64;" ::: "memory");
  } else {
    asm volatile("bar.sync 1, 64;" ::: "memory");
    out[t] = s[t] + s[t - 32];
  }
}

// <<<1, 64>>>
KERNEL(a_bulk_store_after_a_proxy_fence) {
  const int t = threadIdx.x;
  __shared__ __align__(16) float s[64];
  s[t] = x[t];
  fence_async();
  __syncthreads();
  if (t == 0) bulk_store(out, s, 256);
}

// <<<1, 64>>>
KERNEL(a_ring_of_one_stage_whose_values_are_used_before_it_is_released) {
  const int t = threadIdx.x;
  __shared__ __align__(16) float s[64];
  __shared__ unsigned long long full, empty;
  if (t == 0) {
    init_barrier(&full, 1);
    init_barrier(&empty, 32);
  }
  __syncthreads();
  if (t == 32) {
    for (int k = 0; k < 3; ++k) {
      if (k > 0) wait_for(&empty, (k - 1) & 1);
      expect(&full, 256);
      bulk_load(s, x + 64 * k, 256, &full);
    }
  } else if (t < 32) {
    float sum = 0;
    for (int k = 0; k < 3; ++k) {
      wait_for(&full, k & 1);
      sum += s[t] * s[t + 32];
      arrive(&empty);
    }
    out[t] = sum;
  }
}

// <<<1, 64>>>
KERNEL(an_mbarrier_that_waits_for_the_copies_of_threads) {
  const int t = threadIdx.x;
  __shared__ unsigned long long b;
  __shared__ float s[64];
  if (t == 0) init_barrier(&b, 64);
  __syncthreads();
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared(s + t)), "l"(x + t));
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(shared(&b)) : "memory");
  wait_for(&b, 0);
  out[t] = s[63 - t];
}

// <<<1, 64>>>
KERNEL(a_scan_that_alternates_between_two_buffers) {
  const int t = threadIdx.x;
  __shared__ float s[2][64];
  s[0][t] = x[t];
  int now = 0;
  for (int d = 1; d < 64; d *= 2) {
    __syncthreads();
    s[1 - now][t] = s[now][t] + (t >= d ? s[now][t - d] : 0);
    now ^= 1;
  }
  out[t] = s[now][t];
}

// <<<1, 64>>>
KERNEL(half_a_cta_exits_in_whole_warps) {
  const int t = threadIdx.x;
  if (t >= 32) return;
  __syncthreads();
  out[t] = x[t];
}

// <<<1, 32>>>
KERNEL(all_threads_store_one_value_to_a_flag_of_the_cta) {
  const int t = threadIdx.x;
  __shared__ int any;
  if (t == 0) any = 0;
  __syncthreads();
  if (x[t] > 0) any = 1;
  __syncthreads();
  out[t] = any;
}

// <<<1, 128>>>
KERNEL(a_row_that_all_warps_have_read_is_overwritten) {
  const int t = threadIdx.x;
  __shared__ float s[64];
  __shared__ short bytes[64];
  if (t < 64) s[t] = x[t];
  if (t < 64) bytes[t] = t;
  __syncthreads();
  const float v = s[t % 32] + s[t % 32 + 1] + bytes[t % 64];
  __syncthreads();
  if (t >= 96) s[t % 32] = v + 1;
  if (t == 40) reinterpret_cast<char*>(bytes)[2 * 31 + 1] = 1;
  __syncthreads();
  out[t] = v + s[t % 32] + bytes[t % 64];
}

// <<<1, 64>>>
KERNEL(a_bulk_copy_of_global_memory_after_a_proxy_fence) {
  const int t = threadIdx.x;
  __shared__ __align__(16) float s[64];
  __shared__ unsigned long long b;
  if (t == 0) init_barrier(&b, 1);
  out[t] = x[t];
  __syncthreads();
  if (t == 0) {
    asm volatile("fence.proxy.async.global;" ::: "memory");
    expect(&b, 256);
    bulk_load(s, out, 256, &b);
  }
  wait_for(&b, 0);
  out[64 + t] = s[t];
}

// <<<2, 32>>>
KERNEL(a_bulk_copy_of_what_another_cta_has_fenced_and_published) {
  const int t = threadIdx.x;
  __shared__ __align__(16) float s[32];
  __shared__ unsigned long long b;
  if (t == 0) init_barrier(&b, 1);
  if (blockIdx.x == 0) {
    out[t] = x[t];
    asm volatile("fence.proxy.async;" ::: "memory");
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
    bulk_load(s, out, 128, &b);
  }
  wait_for(&b, 0);
  out[64 + t] = s[t];
}

// <<<1, 32>>>
KERNEL(a_bulk_copy_of_what_a_bulk_copy_has_stored) {
  const int t = threadIdx.x;
  __shared__ __align__(16) float s[32], r[32];
  __shared__ unsigned long long b;
  if (t == 0) init_barrier(&b, 1);
  out[t] = 0;
  s[t] = x[t];
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();
  if (t == 0) {
    bulk_store(out, s, 128);
    expect(&b, 128);
    bulk_load(r, out, 128, &b);
  }
  wait_for(&b, 0);
  out[64 + t] = r[t];
}
