// The functions that tilewright/weights.py calls: the operation weight_gemm, and the packed layout of narrow weights.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "python/bindings/dtype.hpp"
#include "python/bindings/engine.hpp"
#include "python/bindings/module.hpp"
#include "tilewright/kernels/weight_gemm.hpp"
#include "tilewright/layout/layout.hpp"
#include "tilewright/op/custom.hpp"
#include "tilewright/program/packed_weights.hpp"

namespace nb = nanobind;

namespace tilewright::python {
namespace {

/// The (extent, stride) of each leaf of a layout's mode, the fastest first.
using Leaves = std::vector<std::tuple<std::int64_t, std::int64_t>>;
Leaves leaves_of(const layout::Layout& mode) {
  const layout::Layout flat = flatten(mode);
  Leaves leaves;
  for (int leaf = 0; leaf < flat.rank(); ++leaf)
    leaves.emplace_back(flat.mode(leaf).shape().value(), flat.mode(leaf).stride().value());
  return leaves;
}

}  // namespace

void bind_weights(nb::module_& module) {
  module.def("_weight_gemm_operation",
             [] { return std::const_pointer_cast<op::Operation>(kernels::weight_gemm_operation()); });
  module.def(
      "_packed_chunk",
      [](nb::handle type) {
        const layout::Layout chunk = program::weight_packing(read_dtype(type)).chunk;
        return std::tuple(leaves_of(chunk.mode(0)), leaves_of(chunk.mode(1)));
      },
      nb::arg("dtype"),
      "The layout of a chunk of packed weights: the extent and the stride of each part of a row number and of a column "
      "number, the fastest part first.");
}

}  // namespace tilewright::python
