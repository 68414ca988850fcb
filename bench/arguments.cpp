#include "arguments.hpp"

namespace tilewright::bench {
namespace {

op::Tensor tensor(std::uint64_t address, const StoredMatrix& stored, std::int64_t batch,
                  const op::MemoryDevice& device) {
  const op::Tensor one =
      op::matrix(address, stored.dtype, stored.rows, stored.columns, stored.layout, stored.ld, device);
  return batch == 1 ? one : op::batched(one, batch, stored.batch_stride());
}

}  // namespace

Result<op::Gemm> gemm(const Problem& problem, const Addresses& addresses, int ordinal) {
  const op::MemoryDevice device{.kind = op::MemoryDevice::Kind::cuda, .ordinal = ordinal};
  op::Gemm result;
  result.a = tensor(addresses.a, stored_a(problem), problem.batch, device);
  result.b = tensor(addresses.b, stored_b(problem), problem.batch, device);
  result.d = tensor(addresses.d, stored_d(problem), problem.batch, device);
  result.accumulator = problem.accumulator;
  result.math = problem.math;
  result.epilogue = op::linear_combination(op::default_compute(problem.accumulator, problem.out));
  if (const Support valid = op::validate(result); !valid) return Refusal{valid.reason()};
  return result;
}

}  // namespace tilewright::bench
