// std::fma is a library call unless the code is compiled for a CPU that has the instruction. Loops around it exist
// twice: as they are, and compiled for such a CPU, by TILEWRIGHT_FOR_FMA; which one runs is decided once.
#pragma once

namespace tilewright::emulator {

#if defined(__x86_64__)
#define TILEWRIGHT_FOR_FMA [[gnu::target("avx2,fma")]]
inline bool has_hardware_fma() { return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0; }
#else
#define TILEWRIGHT_FOR_FMA
inline bool has_hardware_fma() { return false; }
#endif

}  // namespace tilewright::emulator
