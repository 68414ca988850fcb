// Kernels that use memory in suspicious ways and are right: the emulator must find nothing.
#include "planted_kernel.cuh"

// <<<1, 64>>>
KERNEL(what_lies_past_a_tile_is_read_but_not_used) {
  const int t = threadIdx.x;
  __shared__ float s[64];
  if (t < 48) s[t] = x[t];
  __syncthreads();
  float v = s[t];
  v = v * 2 + 1;
  if (t < 48) out[t] = v;
}

// <<<1, 64>>>
KERNEL(an_uninitialised_value_is_selected_away) {
  const int t = threadIdx.x;
  __shared__ float s[64];
  if (t < 48) s[t] = x[t];
  __syncthreads();
  const float v = s[t];
  out[t] = t < 48 ? v : 0.0f;
}

// <<<1, 64>>>
KERNEL(uninitialised_values_are_exchanged_and_dropped) {
  const int t = threadIdx.x;
  __shared__ float s[64], r[64];
  if (t < 48) s[t] = x[t];
  __syncthreads();
  r[t] = s[t];
  __syncthreads();
  if (t < 48) out[t] = r[47 - t];
}

// <<<1, 64>>>
KERNEL(neighbouring_bytes_by_neighbouring_warps) {
  const int t = threadIdx.x;
  __shared__ char s[64];
  s[t % 32 * 2 + t / 32] = t;
  __syncthreads();
  out[t] = s[t];
}

// <<<1, 32>>>
KERNEL(a_loop_over_a_volatile_value) {
  const int t = threadIdx.x;
  float sum = 0;
  for (int k = 0; k < 2000; ++k) sum += *(const volatile float*)x;
  out[t] = sum;
}

// <<<1, 32>>>
KERNEL(a_local_array_of_which_all_read_elements_are_initialised) {
  const int t = threadIdx.x;
  float v[8];
  for (int k = 0; k < 4; ++k) v[(k + n[k]) % 8] = x[t + k];
  out[t] = v[n[t] + 2];
}

// <<<1, 64>>>
KERNEL(uninitialised_bytes_that_are_copied_and_not_used) {
  const int t = threadIdx.x;
  __shared__ float s[64];
  float v[4];
  if (t < 32) s[t] = x[t];
  __syncthreads();
  for (int k = 0; k < 4; ++k) v[(k + n[k]) % 4] = s[(t + 32 * k) % 64];
  out[t] = t < 32 ? v[n[t]] : v[n[t] + 1];
}

// <<<1, 32>>>
KERNEL(ldmatrix_of_rows_that_no_one_has_written_whose_elements_are_not_used) {
  const int t = threadIdx.x;
  __shared__ __align__(16) unsigned s[32];
  const unsigned at = (unsigned)__cvta_generic_to_shared(s + t % 8 * 4);
  if (t < 28) s[t] = 0;
  __syncwarp();
  unsigned b;
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(b) : "r"(at));
  out[t] = t < 28 ? b : 1;
}

// <<<1, 64>>>
KERNEL(aligned_vectors) {
  const int t = threadIdx.x;
  ((float4*)out)[t] = ((const float4*)x)[t];
}

// <<<1, 64>>>
KERNEL(a_local_array_within_its_bounds) {
  const int t = threadIdx.x;
  float a[4];
  for (int k = 0; k < 4; ++k) a[(k + n[k]) & 3] = x[k];
  out[t] = a[(n[t] + t) & 3];
}

// <<<1, 64>>>
KERNEL(memory_is_allocated_and_freed) {
  const int t = threadIdx.x;
  int* const p = (int*)malloc(16);
  p[0] = t;
  out[t] = p[0];
  free(p);
}

// <<<1, 64>>>
KERNEL(bytes_are_written_words_are_read) {
  const int t = threadIdx.x;
  __shared__ int s[16];
  ((char*)s)[t] = (char)t;
  __syncthreads();
  if (t < 16) n[t] = s[t];
}

// <<<1, 64>>>
KERNEL(a_buffer_is_used_again_for_another_type) {
  const int t = threadIdx.x;
  __shared__ float s[64];
  s[t] = x[t];
  __syncthreads();
  const float v = s[63 - t];
  __syncthreads();
  ((int*)s)[63 - t] = t;
  __syncthreads();
  out[t] = v + ((int*)s)[t];
}

// <<<2, 32>>>
KERNEL(each_thread_changes_its_own_element) {
  const int t = threadIdx.x, i = blockIdx.x * blockDim.x + threadIdx.x;
  n[i] = t;
  n[i] += 2;
  n[i] *= 3;
  out[i] = n[i];
}

// <<<2, 32>>>
KERNEL(a_loop_over_the_grid) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int k = i; k < 256; k += gridDim.x * blockDim.x) out[k] = x[k];
}

// <<<1, 64>>>
KERNEL(an_unused_part_of_shared_memory_stays_uninitialised) {
  const int t = threadIdx.x;
  __shared__ float s[256];
  s[t] = x[t];
  __syncthreads();
  out[t] = s[63 - t];
}

// <<<1, 64>>>
KERNEL(a_value_of_each_lane_goes_through_shared_memory_of_its_own) {
  const int t = threadIdx.x;
  __shared__ float s[64];
  s[t] = x[t];
  s[t] += 1;
  out[t] = s[t];
}

// <<<1, 64>>>
KERNEL(a_struct_with_padding_goes_through_shared_memory) {
  const int t = threadIdx.x;
  struct Pair {
    char first;
    float second;
  };
  __shared__ Pair s[64];
  Pair pair;
  pair.first = 1;
  pair.second = x[t];
  s[t] = pair;
  __syncthreads();
  out[t] = s[63 - t].second;
}

// Global memory whose first and last page have one place in the cache of its shadow's pages.
__device__ int pages[(1 << 18) + 1024];

// <<<1, 64>>>
KERNEL(two_warps_write_pages_that_share_a_place_in_the_cache) {
  const int t = threadIdx.x;
  int* const p = pages + (t < 32 ? t : (1 << 18) + t - 32);
  for (int i = 0; i < 3; ++i) *p += t;
}

struct Padded {
  int number;  // followed by 4 bytes that no one writes
  long long large;
};

__device__ int lower_half(unsigned long long word) { return (int)word; }

// <<<1, 32>>>
KERNEL(padding_of_structures_is_copied_in_words) {
  const int t = threadIdx.x;
  __shared__ Padded s[32];
  __shared__ unsigned long long copy[64];
  s[t].number = t;
  s[t].large = n[t];
  __syncthreads();
  const volatile unsigned long long* words = (const unsigned long long*)s;
  for (int k = 0; k < 64; k += 32) copy[t + k] = words[t + k];
  __syncthreads();
  const unsigned long long word = ((const volatile unsigned long long*)copy)[2 * t];
  // The number as the low half, by a shift and by a mask, and after an exchange in words.
  const int number = __shfl_xor_sync(0xffffffffu, lower_half(word), 1);
  const unsigned upper = __shfl_xor_sync(0xffffffffu, (unsigned)(word >> 32), 1);
  const unsigned long long joined = (unsigned long long)upper << 32 | (unsigned)number;
  if ((joined & 0xffffffffu) < 100) n[lower_half(joined << 32 >> 32)] = lower_half(word & 0xff);
  ((unsigned long long*)out)[t] = word;
}

struct Packed {
  unsigned low : 5, middle : 11, high : 16;
};

// <<<1, 32>>>
KERNEL(bit_fields_of_shared_memory_are_written_one_by_one) {
  const int t = threadIdx.x;
  __shared__ Packed s[32];
  s[t].low = n[t] + 3;
  __syncthreads();
  if (s[31 - t].low > 2) out[t] = 1;
  __syncthreads();
  s[t].middle = t;
  __syncthreads();
  n[s[31 - t].middle] = s[t].low;
  __syncthreads();
  s[t].high = n[t];
  __syncthreads();
  const Packed packed = s[31 - t];
  n[t] = packed.low + packed.middle + packed.high;
  n[32 + t] = *(const int*)&s[t];
}

// <<<1, 32>>>
KERNEL(bit_fields_of_a_local_array_are_written_one_by_one) {
  const int t = threadIdx.x;
  Packed v[4];
  const int one = x[t];
  for (int k = 0; k < 4; ++k) {
    v[(k + one) % 4].middle = t + k;
    v[(k + one) % 4].low = k;
  }
  if (v[one].middle < 40) n[t] = v[one + 1].low;
}

// <<<1, 32>>>
KERNEL(bit_fields_of_global_memory_are_written_one_by_one) {
  const int t = threadIdx.x;
  Packed* const packed = (Packed*)out;
  packed[t].low = t;
  if (packed[t].low == 3) n[t] = 1;
  packed[t].middle = 5;
  if (((volatile Packed*)packed)[t].middle == 5) n[t] = 2;
}

// <<<1, 32>>>
KERNEL(a_word_with_unused_bits_is_copied) {
  const int t = threadIdx.x;
  __shared__ struct {
    unsigned low : 5, middle : 13;
  } s[32];
  s[t].low = t;
  s[t].middle = 2;
  __syncthreads();
  ((unsigned*)out)[t] = *(unsigned*)&s[31 - t];
  __syncwarp();
  ((unsigned*)out)[32 + t] = *(unsigned*)&s[t] ^ 1;
}

// <<<1, 32>>>
KERNEL(bit_fields_of_whole_bytes_are_written_one_by_one) {
  const int t = threadIdx.x;
  struct Color {
    unsigned red : 8, green_and_blue : 16, alpha : 8;
  };
  Color* const colors = (Color*)out;
  colors[t].green_and_blue = t;
  if (colors[t].green_and_blue > 3) n[t] = 1;
  unsigned* const words = (unsigned*)out + 64;
  words[t] = (words[t] & 0xff0000ffu) | t << 8;
  if ((words[t] >> 8 & 0xffff) > 3) n[t] = 1;
}

// <<<1, 32>>>
KERNEL(parts_of_a_byte_are_written_one_by_one) {
  const int t = threadIdx.x;
  __shared__ unsigned char s[32];
  s[t] = (s[t] & 0xf0) | (n[t] & 15);
  __syncthreads();
  if ((s[31 - t] & 15) > 3) n[t] = 1;
  s[31 - t] = (s[31 - t] & 0x0f) | t << 4;
  __syncthreads();
  n[t] = s[t];
}

// <<<1, 32>>>
KERNEL(undefined_bits_are_moved_and_masked_away) {
  const int t = threadIdx.x;
  __shared__ unsigned s[64];
  s[t] = (s[t] & ~255u) | 77;  // eight bits of each word are defined
  __syncthreads();
  const unsigned word = s[31 - t], other = s[t];
  unsigned bits, inserted, three, lowest, halves;
  asm volatile("bfe.u32 %0, %1, 2, 4;" : "=r"(bits) : "r"(word));
  asm volatile("bfi.b32 %0, %1, %2, 8, 24;" : "=r"(inserted) : "r"(n[t]), "r"(word));
  asm volatile("lop3.b32 %0, %1, %2, 255, 0x80;" : "=r"(three) : "r"(word), "r"(other));
  asm volatile("shf.r.wrap.b32 %0, %1, %2, 28;" : "=r"(lowest) : "r"(0), "r"(word));
  asm volatile("add.u16x2 %0, %1, %1;" : "=r"(halves) : "r"(inserted & 0xffff0000u | word & 0xff));
  const unsigned reversed = __brev(word) >> 24, permuted = __byte_perm(word, other, 0x4040) & 0xff00ff;
  const unsigned sum = word + 3 & 7, product = (word * 5 & 31);
  const unsigned chosen = (t & 1 ? word : other) & 1, exchanged = __shfl_xor_sync(0xffffffffu, word, 1) & 255;
  const unsigned long long wide = (unsigned long long)word << 32 | (word & 255);
  if (bits + inserted + three + (lowest & 0xff0) + halves + reversed + permuted + sum + product + chosen + exchanged +
          (unsigned)wide >
      7)
    n[t] = 1;
}

// <<<1, 32>>>
KERNEL(a_comparison_does_not_depend_on_the_undefined_bits) {
  const int t = threadIdx.x;
  __shared__ unsigned s[32];
  s[t] = (s[t] & 255) | 0x4000;
  __syncthreads();
  unsigned word = s[31 - t] & 0x7fff, is_less, is_equal;
  asm volatile("{ .reg .pred p; setp.lt.u32 p, %1, 0x3000; selp.u32 %0, 1, 0, p; }" : "=r"(is_less) : "r"(word));
  asm volatile("{ .reg .pred p; setp.eq.u32 p, %1, 0x2000; selp.u32 %0, 1, 0, p; }" : "=r"(is_equal) : "r"(word));
  if (is_less + is_equal == 2) n[t] = 1;
}

// <<<1, 64>>>
KERNEL(cooperative_groups_have_reserved_shared_memory) {
  const int t = threadIdx.x;
  __shared__ float s[64];
  unsigned begin, end, reserved, first, last;
  asm volatile("mov.u32 %0, %%reserved_smem_offset_begin;" : "=r"(begin));
  asm volatile("mov.u32 %0, %%reserved_smem_offset_end;" : "=r"(end));
  asm volatile("mov.u32 %0, %%reserved_smem_offset_1;" : "=r"(reserved));
  asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(first) : "r"(reserved));
  asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(last) : "r"(reserved + 284));
  s[t] = x[t];
  const bool is_apart = shared(s) >= end && begin <= reserved && reserved + 288 <= end;
  if (first != 0 || last != 0 || !is_apart) __trap();
  out[t] = s[t];
}
