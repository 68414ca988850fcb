// std::fma is a library call unless the code is compiled for a CPU with FMA instructions. Loops around it are therefore
// compiled twice, once with TILEWRIGHT_TARGET_FMA; has_hardware_fma() selects one at run time.
#pragma once

namespace tilewright::emulator {

#if defined(__x86_64__)
#define TILEWRIGHT_TARGET_FMA [[gnu::target("avx2,fma,f16c")]]
inline bool has_hardware_fma() {
  // CPUs with AVX2 have F16C, too; clang-tidy does not know its name.
  static const bool has = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
  return has;
}
// The same with vectors of 64 bytes, which the compiler uses where loops of f64 or of integers are long.
#if defined(__clang__)
#define TILEWRIGHT_TARGET_AVX512 [[gnu::target("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl")]]
#else
#define TILEWRIGHT_TARGET_AVX512 \
  [[gnu::target("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")]]
#endif
inline bool has_avx512() {
  static const bool has = has_hardware_fma() && __builtin_cpu_supports("avx512f") != 0 &&
                          __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
                          __builtin_cpu_supports("avx512vl") != 0;
  return has;
}
#else
#define TILEWRIGHT_TARGET_FMA
#define TILEWRIGHT_TARGET_AVX512
inline bool has_hardware_fma() { return false; }
inline bool has_avx512() { return false; }
#endif

}  // namespace tilewright::emulator
