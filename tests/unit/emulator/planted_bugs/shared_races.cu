// Races in shared memory.
#include "planted_kernel.cuh"

struct Packed {
  unsigned low : 5, middle : 11, high : 16;
};

// <<<1, 64>>>: shared_race in thread 32
KERNEL(two_threads_write_two_bit_fields_of_a_word) {
  const int t = threadIdx.x;
  __shared__ Packed s[32];
  if (t < 32) s[t].low = n[t];
  if (t >= 32) s[t - 32].middle = t;  // BUG
}

// <<<1, 64>>>: shared_race in thread 32
KERNEL(missing_syncthreads_between_warps) {
  const int t = threadIdx.x;
  __shared__ float s[64];
  s[t] = x[t];  // BUG
  out[t] = s[63 - t];
}

// <<<1, 64>>>: shared_race in thread 0
KERNEL(missing_syncthreads_in_a_loop) {
  const int t = threadIdx.x;
  __shared__ float s[64];
  float sum = 0;
  for (int k = 0; k < 2; ++k) {
    s[t] = x[t + k];
    __syncthreads();
    sum += s[63 - t];  // BUG
  }
  out[t] = sum;
}

// <<<1, 32>>>: shared_race in thread 0
KERNEL(missing_syncwarp_in_a_reduction) {
  const int t = threadIdx.x;
  __shared__ float s[32];
  s[t] = x[t];
  __syncwarp();
  if (t < 16) s[t] += s[t + 16];
  if (t < 8) s[t] += s[t + 8];  // BUG
  __syncthreads();
  out[t] = s[t];
}

// <<<1, 32>>>: shared_race in thread 0
KERNEL(histogram_without_an_atomic) {
  const int t = threadIdx.x;
  __shared__ int s[4];
  if (t < 4) s[t] = 0;
  __syncthreads();
  s[t % 4] += 1;  // BUG
  __syncthreads();
  if (t < 4) out[t] = s[t];
}

// <<<1, 64>>>: shared_race in thread 0
KERNEL(an_array_is_reversed_in_place) {
  const int t = threadIdx.x;
  __shared__ float s[64];
  s[t] = x[t];
  __syncthreads();
  s[t] = s[63 - t];  // BUG
  __syncthreads();
  out[t] = s[t];
}

// <<<1, 64>>>: shared_race in thread 32
KERNEL(two_warps_write_one_shared_element) {
  const int t = threadIdx.x, lane = t % 32;
  __shared__ int s;
  if (lane == 0) s = t;  // BUG
  __syncthreads();
  out[t] = s;
}

// <<<1, 32>>>: shared_race in thread 1
KERNEL(lanes_write_one_shared_element) {
  const int t = threadIdx.x;
  __shared__ int s;
  s = t;  // BUG
  __syncthreads();
  out[t] = s;
}

// <<<1, 32>>>: shared_race in thread 0
KERNEL(a_neighbour_reads_without_syncwarp) {
  const int t = threadIdx.x;
  __shared__ float s[32];
  s[t] = x[t];
  out[t] = s[(t + 1) % 32];  // BUG
}

// <<<1, 32>>>: shared_race in thread 0
KERNEL(a_shuffle_is_taken_for_a_barrier) {
  const int t = threadIdx.x;
  __shared__ float s[32];
  s[t] = x[t];
  const float v = __shfl_xor_sync(~0u, x[t], 1);
  out[t] = v + s[31 - t];  // BUG
}

// <<<1, 32>>>: shared_race in thread 0
KERNEL(a_vote_is_taken_for_a_barrier) {
  const int t = threadIdx.x;
  __shared__ float s[32];
  s[t] = x[t];
  const int v = __any_sync(~0u, x[t] > 0);
  out[t] = v + s[31 - t];  // BUG
}

// <<<1, 64>>>: shared_race in thread 32
KERNEL(a_volatile_flag_in_shared_memory_without_a_fence) {
  const int t = threadIdx.x;
  __shared__ volatile int ready;
  __shared__ float s[32];
  if (t == 0) ready = 0;
  __syncthreads();
  if (t < 32) {
    s[t] = x[t];
    __syncwarp();
    if (t == 0) ready = 1;
  } else {
    while (ready == 0) {
    }
    out[t] = s[t - 32];  // BUG
  }
}

// <<<1, 64>>>: shared_race in thread 32
KERNEL(a_barrier_that_only_some_launches_reach) {
  const int t = threadIdx.x;
  __shared__ float s[64];
  s[t] = x[t];  // BUG
  if (x[0] > 2) __syncthreads();
  out[t] = s[t ^ 32];
}

// <<<1, 64>>>: shared_race in thread 0
KERNEL(a_barrier_in_every_second_step_of_two_buffers) {
  const int t = threadIdx.x;
  __shared__ float s[2][64];
  s[0][t] = s[1][t] = 0;
  __syncthreads();
  float sum = 0;
  for (int k = 0; k < 4; ++k) {
    s[k & 1][t] = x[t + k];  // BUG
    if (k & 1) __syncthreads();
    sum += s[k & 1][63 - t];
  }
  out[t] = sum;
}

// <<<1, 64>>>: shared_race in thread 0
KERNEL(a_counter_is_read_before_all_have_counted) {
  const int t = threadIdx.x;
  __shared__ int count, list[64];
  if (t == 0) count = 0;
  list[t] = 0;
  __syncthreads();
  if (x[t] > 0) list[atomicAdd(&count, 1)] = t;  // BUG
  n[t] = list[t];
}

// <<<1, 64>>>: shared_race in thread 32
KERNEL(a_sum_over_the_warp_that_a_barrier_of_the_warp_does_not_publish) {
  const int t = threadIdx.x, lane = t % 32;
  __shared__ float part[2];
  float v = x[t];
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(~0u, v, d);
  if (lane == 0) part[t / 32] = v;  // BUG
  __syncwarp();
  out[t] = part[0] + part[1];
}

// <<<1, 64>>>: shared_race in thread 0
KERNEL(a_phase_that_had_completed_before) {
  const int t = threadIdx.x;
  __shared__ unsigned long long b;
  __shared__ float s[32];
  if (t == 0) init_barrier(&b, 32);
  __syncthreads();
  if (t < 32) {
    s[t] = x[t];  // BUG
    arrive(&b);
  } else {
    wait_for(&b, 1);
    out[t] = s[t - 32];
  }
}

// <<<1, 128>>>: shared_race in thread 0
KERNEL(one_of_four_readers_is_left_out_of_a_barrier) {
  const int t = threadIdx.x;
  __shared__ float s[32];
  if (t < 32) s[t] = x[t];
  __syncthreads();
  const float v = s[t % 32];
  if (t / 32 != 1) asm volatile("bar.sync 1, 96;");  // all warps but warp 1
  if (t < 32) s[t] = v + 1;                          // BUG
  __syncthreads();
  out[t] = v + s[t % 32];
}

// <<<1, 64>>>: shared_race in thread 8
KERNEL(the_last_element_of_a_shifted_row_is_overwritten) {
  const int t = threadIdx.x;
  __shared__ float s[64];
  s[t] = x[t];
  __syncthreads();
  const float v = t < 32 ? 0 : s[t - 31];
  if (t == 8) s[32] = 5;  // BUG
  __syncthreads();
  out[t] = v + s[t];
}

// <<<1, 64>>>: shared_race in thread 0
KERNEL(one_byte_of_an_element_is_overwritten) {
  const int t = threadIdx.x;
  __shared__ short s[64];
  s[t] = t;
  __syncthreads();
  const short v = t < 32 ? 0 : s[t];
  if (t == 0) reinterpret_cast<char*>(s)[2 * 63 + 1] = 1;  // BUG
  __syncthreads();
  out[t] = v + s[t];
}

// <<<1, 64>>>: shared_race in thread 32
KERNEL(the_last_word_of_the_last_vector_is_overwritten) {
  const int t = threadIdx.x;
  __shared__ float4 s[32];
  if (t < 32) s[t] = make_float4(t, 1, 2, 3);
  if (t == 32) s[31].w = 7;  // BUG
  __syncthreads();
  out[t] = s[t % 32].w;
}

// <<<1, 32>>>: shared_race in thread 5
KERNEL(a_lane_overwrites_what_all_lanes_read) {
  const int t = threadIdx.x;
  __shared__ float s;
  if (t == 0) s = x[t];
  __syncthreads();
  const float v = s;
  if (t == 5) s = v + 1;  // BUG
  __syncthreads();
  out[t] = s + v;
}

// <<<1, 32>>>: shared_race in thread 1
KERNEL(a_row_that_other_lanes_have_written_is_read_without_syncwarp) {
  const int t = threadIdx.x;
  __shared__ float s[32];
  s[t * 3 % 32] = x[t];  // lane 0 writes its own element
  out[t] = s[t];  // BUG
}

// <<<1, 32>>>: shared_race in thread 1
KERNEL(a_row_that_other_lanes_have_read_is_written_without_syncwarp) {
  const int t = threadIdx.x;
  __shared__ float s[32];
  s[t] = x[t];
  __syncwarp();
  const float value = s[t * 3 % 32];
  s[t] = value + 1;  // BUG
  __syncwarp();
  out[t] = s[31 - t];
}

// <<<1, 64>>>: shared_race in thread 0
KERNEL(a_counter_is_reset_beside_atomics) {
  const int t = threadIdx.x;
  __shared__ int counter;
  if (t == 0) counter = 0;
  __syncthreads();
  if (t >= 32) atomicAdd(&counter, 1);
  if (t == 0) counter = 0;  // BUG
  __syncthreads();
  out[t] = counter;
}

// <<<1, 64>>>: warning shared_race in thread 0
KERNEL(a_counter_is_read_beside_atomics) {
  const int t = threadIdx.x;
  __shared__ int counter;
  if (t == 0) counter = 0;
  __syncthreads();
  if (t >= 32)
    atomicAdd(&counter, 1);
  else
    out[t] = counter;  // BUG
}
