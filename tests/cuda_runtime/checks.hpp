// CHECK and EXPECT of the programs in this folder: the first failure is printed with its line, and ends the program.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

/// A program says with failure_text() what an error code of the API that it calls means.
#define CHECK(expression)                                                                  \
  do {                                                                                     \
    if (const auto code = (expression); static_cast<int>(code) != 0) {                     \
      std::printf("line %d: %s: %s\n", __LINE__, #expression, failure_text(code).c_str()); \
      std::exit(1);                                                                        \
    }                                                                                      \
  } while (0)

#define EXPECT(condition)                                           \
  do {                                                              \
    if (!(condition)) {                                             \
      std::printf("line %d: not true: %s\n", __LINE__, #condition); \
      std::exit(1);                                                 \
    }                                                               \
  } while (0)

#ifdef CUDA_VERSION  // cuda.h is included
inline std::string failure_text(CUresult code) {
  const char* name = "?";
  cuGetErrorName(code, &name);
  return name;
}
#endif
#ifdef __CUDA_RUNTIME_API_H__
inline std::string failure_text(cudaError_t code) {
  return std::string(cudaGetErrorName(code)) + " (" + cudaGetErrorString(code) + ")";
}
#endif
/// The number of a status of another library, such as cuBLAS.
template <class Status>
std::string failure_text(Status code) {
  return std::to_string(static_cast<int>(code));
}
