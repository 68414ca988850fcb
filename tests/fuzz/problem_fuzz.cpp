// A problem file is refused with a reason, or every problem in it describes valid matrices.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>

#include "bench/problem.hpp"
#include "tilewright/base/error.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace bench = tilewright::bench;
  std::istringstream file(std::string(reinterpret_cast<const char*>(data), size));
  try {
    for (const bench::Problem& problem : bench::read_problems(file, "problems.txt")) {
      if (bench::title(problem).empty() || !(bench::operations(problem) > 0.0)) std::abort();
      for (const bench::StoredMatrix& matrix :
           {bench::stored_a(problem), bench::stored_b(problem), bench::stored_d(problem), bench::stored_c(problem)}) {
        if (matrix.ld < 1 || matrix.batch_stride() < 1 || matrix.bytes() < 1) std::abort();
      }
      static_cast<void>(bench::stored_tensors(problem));
      static_cast<void>(bench::plain(problem));
    }
  } catch (const tilewright::InvalidArgument& refused) {
    if (*refused.what() == '\0') std::abort();
  }
  return 0;
}
