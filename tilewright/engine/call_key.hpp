// What two calls must share to run the same prepared kernel: everything but addresses and the values of scalars.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tilewright/op/gemm.hpp"

namespace tilewright::engine {

struct CallKey {
  op::GemmDescription description;
  std::array<std::int64_t, 4> extents{};  // m, n, k, batch
  bool reads_source = false, reads_product = false, stores_sums = false;
  std::array<std::int64_t, 12> strides{};      // rows, columns, batch of A, B, C (where it is read) and D
  std::vector<std::int64_t> tensor_strides{};  // the same of the epilogue's tensors, in its order

  /// Equal but for the values of scalars, which are launch arguments.
  bool operator==(const CallKey& other) const;
};

CallKey make_call_key(const op::Gemm& arguments);

struct CallKeyHash {
  std::size_t operator()(const CallKey& key) const;
};

}  // namespace tilewright::engine
