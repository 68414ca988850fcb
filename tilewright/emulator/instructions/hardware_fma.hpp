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
#else
#define TILEWRIGHT_TARGET_FMA
inline bool has_hardware_fma() { return false; }
#endif

}  // namespace tilewright::emulator
