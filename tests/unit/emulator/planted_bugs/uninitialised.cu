// Values of memory that nobody has written decide what a kernel does.
#include "planted_kernel.cuh"

// <<<1, 64>>>: uninitialised_shared_read in thread 56
KERNEL(shared_memory_that_is_not_initialised) {
  const int t = threadIdx.x;
  __shared__ float s[64];
  if (t != 7) s[t] = x[t];
  __syncthreads();
  out[t] = s[63 - t];  // BUG
}

// <<<1, 64>>>: uninitialised_global_read in thread 0
KERNEL(an_accumulator_in_global_memory_that_is_not_initialised) {
  const int t = threadIdx.x;
  out[t] += x[t];  // BUG
}

// <<<1, 32>>>: uninitialised_shared_read in thread 0
KERNEL(an_atomic_on_shared_memory_that_is_not_initialised) {
  const int t = threadIdx.x;
  __shared__ int s;
  atomicAdd(&s, 1);  // BUG
  __syncthreads();
  out[t] = s;
}

// <<<1, 32>>>: uninitialised_shared_read in thread 0
KERNEL(an_uninitialised_flag_decides_a_branch) {
  const int t = threadIdx.x;
  __shared__ int stop;
  if (x[0] > 2 && t == 0) stop = n[0];
  __syncthreads();
  if (stop) out[t] = 1;  // BUG
}

// <<<1, 32>>>: uninitialised_local_read in thread 0
KERNEL(an_element_of_a_local_array_that_is_not_initialised) {
  const int t = threadIdx.x;
  float v[4];
  for (int k = 0; k < 3; ++k) v[(k + n[k]) % 4] = x[t];
  out[t] = v[n[1] + 3];  // BUG
}

// <<<1, 64>>>: uninitialised_local_read in thread 32
KERNEL(uninitialised_shared_memory_that_passes_through_a_local_array) {
  const int t = threadIdx.x;
  __shared__ float s[64];
  float v[4];
  if (t < 32) s[t] = x[t];
  __syncthreads();
  for (int k = 0; k < 4; ++k) v[(k + n[k]) % 4] = s[t + n[k]];
  out[t] = v[n[t] % 4];  // BUG
}

// <<<1, 32>>>: uninitialised_shared_read in thread 26
KERNEL(cp_async_copies_what_no_one_has_written) {
  const int t = threadIdx.x;
  __shared__ float s[32];
  const unsigned to = (unsigned)__cvta_generic_to_shared(s + t);
  if (t != 5) out[t] = x[t];
  __syncwarp();
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(out + t));
  asm volatile("cp.async.wait_all;");
  __syncwarp();
  out[32 + t] = s[31 - t];  // BUG
}

// <<<1, 32>>>: uninitialised_shared_read in thread 7
KERNEL(ldmatrix_of_a_row_that_no_one_has_written_in_a_product) {
  const int t = threadIdx.x;
  __shared__ __align__(16) unsigned s[32];
  const unsigned at = (unsigned)__cvta_generic_to_shared(s + t % 8 * 4);
  if (t < 28) s[t] = 0;
  __syncwarp();
  unsigned b;
  float d[4] = {0, 0, 0, 0};
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(b) : "r"(at));  // BUG
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%4}, {%5}, {%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(0), "r"(b));
  out[t] = d[0];
}

// <<<1, 32>>>: uninitialised_shared_read in thread 0
KERNEL(an_uninitialised_index) {
  __shared__ int k;
  if (x[0] > 2) k = n[0];
  __syncthreads();
  out[k & 31] = 1;  // BUG
}

// <<<1, 64>>>: uninitialised_global_read in thread 0
KERNEL(uninitialised_global_memory_decides_a_branch) {
  const int t = threadIdx.x;
  if (out[t] > 0) n[t] = 1;  // BUG
}

// <<<1, 32>>>: uninitialised_global_read in thread 0
KERNEL(an_uninitialised_global_index) {
  const int t = threadIdx.x;
  n[(int)out[t]] = 1;  // BUG
}

// <<<1, 64>>>: uninitialised_shared_read in thread 0
KERNEL(half_of_a_word_is_uninitialised) {
  const int t = threadIdx.x;
  __shared__ short s[64];
  if (t % 2 == 0) s[t] = 1;
  __syncthreads();
  if (t < 32) n[t] = ((const int*)s)[t];  // BUG
}

// <<<1, 32>>>: uninitialised_shared_read in thread 0
KERNEL(the_padding_of_a_structure_decides_a_branch) {
  const int t = threadIdx.x;
  __shared__ struct {
    int number;
    long long large;
  } s[32];
  s[t].number = t;
  s[t].large = t;
  __syncthreads();
  if (*(const volatile unsigned long long*)&s[t] >> 40 > 5) n[t] = 1;  // BUG
}

struct Packed {
  unsigned low : 5, middle : 11, high : 16;
};

// <<<1, 32>>>: uninitialised_shared_read in thread 0
KERNEL(a_bit_field_that_is_not_initialised_decides_a_branch) {
  const int t = threadIdx.x;
  __shared__ Packed s[32];
  s[t].low = n[t];
  __syncthreads();
  if (s[31 - t].middle > 2) n[t] = 1;  // BUG
}

// <<<1, 32>>>: uninitialised_local_read in thread 0
KERNEL(a_bit_field_of_a_local_array_that_is_not_initialised) {
  const int t = threadIdx.x;
  Packed v[4];
  const int one = x[t];
  for (int k = 0; k < 4; ++k) v[(k + one) % 4].middle = t;
  n[t] = v[one + 1].low;  // BUG
}

// <<<1, 32>>>: uninitialised_global_read in thread 0
KERNEL(a_bit_field_of_global_memory_that_is_not_initialised) {
  const int t = threadIdx.x;
  Packed* const packed = (Packed*)out;
  packed[t].low = t;
  if (((volatile Packed*)packed)[t].middle > 2) n[t] = 1;  // BUG
}

// <<<1, 32>>>: uninitialised_shared_read in thread 0
KERNEL(a_mask_that_is_one_bit_too_wide) {
  const int t = threadIdx.x;
  __shared__ unsigned s[32];
  s[t] = (s[t] & ~15u) | 5;
  __syncthreads();
  if ((s[31 - t] & 31) > 7) n[t] = 1;  // BUG
}

// <<<1, 32>>>: uninitialised_shared_read in thread 0
KERNEL(a_sign_that_is_not_initialised) {
  const int t = threadIdx.x;
  __shared__ int s[32];
  s[t] = (s[t] & ~0x7fff) | 0x1234;
  __syncthreads();
  if ((short)s[31 - t] < 0) n[t] = 1;  // BUG
}
