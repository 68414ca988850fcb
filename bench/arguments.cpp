#include "arguments.hpp"

namespace tilewright::bench {

op::Tensor tensor(std::uint64_t address, const StoredMatrix& stored, const op::MemoryDevice& device) {
  const op::Tensor one =
      op::matrix(address, stored.dtype, stored.rows, stored.columns, stored.layout, stored.ld, device);
  return stored.batch == 1 ? one : op::batched(one, stored.batch, stored.batch_stride());
}

Result<op::Gemm> gemm(const Problem& problem, const Addresses& addresses, const op::MemoryDevice& device) {
  op::Gemm result;
  result.a = tensor(addresses.a, stored_a(problem), device);
  result.b = tensor(addresses.b, stored_b(problem), device);
  result.d = tensor(problem.epilogue == nullptr ? addresses.plain : addresses.d, stored_d(problem), device);
  result.accumulator = problem.accumulator;
  result.math = problem.math;
  result.epilogue = graph(problem);
  if (problem.epilogue != nullptr) {
    result.beta = problem.epilogue->beta;
    if (result.beta != 0.0) result.c = tensor(addresses.c, stored_c(problem), device);
    std::size_t index = 0;
    for (const StoredTensor& each : stored_tensors(problem)) {
      result.tensors.push_back({std::string(each.row.label), tensor(addresses.tensors[index++], each.stored, device)});
    }
  }
  if (const Support valid = op::validate(result); !valid) return Refusal{valid.reason()};
  return result;
}

}  // namespace tilewright::bench
