#include "arguments.hpp"

namespace tilewright::bench {
namespace {

op::Tensor tensor(std::uint64_t address, const StoredMatrix& stored, const op::MemoryDevice& device) {
  return op::matrix(address, stored.dtype, stored.rows, stored.columns, stored.layout, stored.ld, device);
}

}  // namespace

Result<op::Gemm> gemm(const Problem& problem, const Addresses& addresses, int ordinal) {
  if (problem.batch != 1) return refuse("one call computes one product, got a batch of {}", problem.batch);
  if (problem.fast_accumulate && !op::parse_math_operation(kFastAccumulate))
    return refuse("there is no {}", kFastAccumulate);
  const op::MemoryDevice device{.kind = op::MemoryDevice::Kind::cuda, .ordinal = ordinal};
  op::Gemm result;
  result.a = tensor(addresses.a, stored_a(problem), device);
  result.b = tensor(addresses.b, stored_b(problem), device);
  result.d = tensor(addresses.d, stored_d(problem), device);
  result.c = result.d;
  result.accumulator = problem.accumulator;
  result.math = problem.math;
  result.epilogue = op::linear_combination(op::default_compute(problem.accumulator, problem.out));
  if (const Support valid = op::validate(result); !valid) return Refusal{valid.reason()};
  return result;
}

}  // namespace tilewright::bench
