// One line of a problem file: a GEMM to run, without memory.
#pragma once

#include <cstdint>
#include <istream>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/base/support.hpp"
#include "tilewright/op/gemm.hpp"

namespace tilewright::bench {

struct Problem {
  std::string line;          // as written, without its comment
  DType dtype = DType::f32;  // of A and B
  DType out = DType::f32;    // of D
  DType accumulator = DType::f32;
  op::MathOperation math = op::MathOperation::multiply_add;
  std::int64_t m = 0, n = 0, k = 0;
  op::MatrixLayout a = op::MatrixLayout::row_major;
  op::MatrixLayout b = op::MatrixLayout::row_major;
  op::MatrixLayout d = op::MatrixLayout::row_major;
  std::string kernel;  // only kernels whose name contains this

  bool operator==(const Problem&) const = default;
};

/// "dtype=f16 m=128 n=128 k=64 a=row b=col d=row out=f16 acc=f32 math=multiply_add kernel=sm80". dtype, m, n and k are
/// required; layouts are row unless told, out is dtype (s32 for integers), acc as op::default_accumulator. dtype=tf32
/// is f32 with math=multiply_add_tf32.
Result<Problem> parse_problem(std::string_view line);

/// Every problem of a file; '#' begins a comment. @throws InvalidArgument with the number of the line that is wrong
std::vector<Problem> read_problems(std::istream& file, const std::string& file_name);

/// "f16 8192x8192x8192 row col row"
std::string title(const Problem& problem);

/// The problem over memory, on the GPU `ordinal`. alpha = 1, beta = 0.
op::Gemm gemm(const Problem& problem, std::uint64_t a, std::uint64_t b, std::uint64_t d, int ordinal);

}  // namespace tilewright::bench
