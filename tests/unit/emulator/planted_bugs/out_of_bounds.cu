// Accesses outside of arrays, and misaligned ones.
#include "planted_kernel.cuh"

// <<<1, 64>>>: out_of_bounds_global in thread 56
KERNEL(global_read_past_the_end) {
  const int t = threadIdx.x;
  out[t] = x[t + 200];  // BUG
}

// <<<3, 96>>>: out_of_bounds_global in thread 64
KERNEL(missing_bounds_check_in_the_last_cta) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (x[i] > 5) out[0] = 1;  // BUG
}

// <<<1, 64>>>: out_of_bounds_shared in thread 63
KERNEL(shared_write_past_the_end) {
  const int t = threadIdx.x;
  __shared__ float s[64];
  s[t + 1] = x[t];  // BUG
  __syncthreads();
  out[t] = t ? s[t] : 0;
}

// <<<1, 64>>>: misaligned_access in thread 1
KERNEL(misaligned_float4) {
  const int t = threadIdx.x;
  float4 v = *(const float4*)(x + t);  // BUG
  out[t] = v.x + v.y + v.z + v.w;
}

// <<<1, 64>>>: out_of_bounds_global in thread 0
KERNEL(global_write_before_the_start) {
  const int t = threadIdx.x;
  out[t - 1] = x[t];  // BUG
}

// <<<1, 64>>>: out_of_bounds_global in thread 0
KERNEL(a_null_pointer) {
  const int t = threadIdx.x;
  float* const p = (float*)(unsigned long long)n[0];
  p[t] = 1;  // BUG
}

// <<<1, 64>>>: out_of_bounds_global in thread 28
KERNEL(float2_past_the_end) {
  const int t = threadIdx.x;
  ((float2*)out)[t + 100] = make_float2(1, 1);  // BUG
}

// <<<1, 64>>>: out_of_bounds_global in thread 61
KERNEL(a_byte_past_the_end) {
  const int t = threadIdx.x;
  ((char*)out)[t * 17] = 1;  // BUG
}

// <<<1, 64>>>: out_of_bounds_global in thread 0
KERNEL(an_atomic_past_the_end) {
  const int t = threadIdx.x;
  atomicAdd(n + 256 + t, 1);  // BUG
}

// <<<1, 32>>>: out_of_bounds_local in thread 4
KERNEL(a_local_array_past_its_end) {
  const int t = threadIdx.x;
  float a[4];
  for (int k = 0; k < 4; ++k) a[(k + n[k]) & 3] = x[k];
  out[t] = a[n[t] + t];  // BUG
}

// <<<1, 64>>>: out_of_bounds_shared in thread 0
KERNEL(shared_read_before_the_start) {
  const int t = threadIdx.x;
  __shared__ float s[64];
  s[t] = x[t];
  __syncthreads();
  out[t] = s[t - 1];  // BUG
}

// <<<1, 64>>>: out_of_bounds_shared in thread 0
KERNEL(dynamic_shared_memory_that_the_launch_does_not_give) {
  const int t = threadIdx.x;
  extern __shared__ float d[];
  d[t] = x[t];  // BUG
}

// <<<1, 64>>>: out_of_bounds_shared in thread 63
KERNEL(a_row_that_is_one_column_too_long) {
  const int t = threadIdx.x;
  __shared__ float s[8][8];
  s[t / 8][t % 8 + (t == 63)] = x[t];  // BUG
  __syncthreads();
  if (t == 0) out[t] = s[n[0]][0];
}

// <<<1, 64>>>: misaligned_access in thread 0
KERNEL(misaligned_double) {
  const int t = threadIdx.x;
  *(double*)(out + 2 * t + 1) = 1;  // BUG
}

// <<<1, 64>>>: misaligned_access in thread 33
KERNEL(misaligned_vector_in_shared_memory) {
  const int t = threadIdx.x;
  __shared__ __align__(16) float s[128];
  s[t] = s[t + 64] = x[t];
  __syncthreads();
  const float4 v = *(const float4*)(s + t);  // BUG
  out[t] = v.x + v.y + v.z + v.w;
}

// <<<1, 64>>>: misaligned_access in thread 0
KERNEL(misaligned_atomic) {
  atomicAdd((int*)((char*)n + 2), 1);  // BUG
}

// <<<1, 64>>>: out_of_bounds_global in thread 56
KERNEL(an_asynchronous_copy_from_past_the_end) {
  const int t = threadIdx.x;
  __shared__ float s[64];
  const unsigned to = (unsigned)__cvta_generic_to_shared(s + t);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(x + t + 200));  // BUG
  asm volatile("cp.async.wait_all;");
  out[t] = s[t];
}

// <<<1, 32>>>: invalid_free in thread 0
KERNEL(memory_is_freed_twice) {
  const int t = threadIdx.x;
  char* const p = (char*)malloc(8);
  free(p);
  n[t] = p == nullptr;
  free(p);  // BUG
}

// <<<1, 64>>>: out_of_bounds_global in thread 60
KERNEL(a_constant_array_past_its_end) {
  const int t = threadIdx.x;
  out[t] = kTable[t + n[0]];  // BUG
}

// <<<1, 64>>>: misaligned_access in thread 0
KERNEL(a_bulk_copy_to_a_misaligned_address) {
  const int t = threadIdx.x;
  __shared__ __align__(16) float s[68];
  __shared__ unsigned long long b;
  if (t == 0) {
    init_barrier(&b, 1);
    expect(&b, 256);
    bulk_load(s + 1, x, 256, &b);  // BUG
  }
  __syncthreads();
  wait_for(&b, 0);
  out[t] = s[t + 1];
}
