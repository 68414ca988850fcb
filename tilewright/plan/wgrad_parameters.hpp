// The parameters of the kernels of filter gradients: WgradParameters of device/tilewright/conv/wgrad_parameters.cuh.
#pragma once

#include <cstdint>

#include "tilewright/op/gemm_view.hpp"
#include "tilewright/plan/im2col.hpp"
#include "tilewright/plan/parameters.hpp"

namespace tilewright::plan {

/// The numbers of a call that follow from the plan and not from the operands alone.
struct WgradWork {
  std::int64_t tiles = 1;   // of D, which CTAs compute together
  std::int64_t blocks = 0;  // of output pixels
  std::int64_t workspace_bytes = 0;
};

/// Describes WgradParameters. `arguments` may be null, and work() is not called, for a sink that asks for no values.
template <class Sink, class Work>
void describe_wgrad_parameters(Sink& sink, const op::Epilogue& epilogue, const op::GemmView* arguments,
                               const Work& work) {
  const auto stride_of_c = [&](const char* name, const auto& get) {
    sink.field(name, [&] { return arguments->reads_source ? std::int64_t{get()} : std::int64_t{0}; });
  };
  describe_im2col_matrix(sink, "matrix", [&]() -> const op::Im2col& { return arguments->b.im2col; });
  sink.field("gradient", [&] { return arguments->a.tensor.address; });
  sink.field("images", [&] { return arguments->b.tensor.address; });
  sink.field("c", [&] { return arguments->reads_source ? arguments->c.tensor.address : std::uint64_t{0}; });
  sink.field("d", [&] { return arguments->d.tensor.address; });
  sink.workspace("workspace", [&] { return static_cast<std::size_t>(work().workspace_bytes); });
  sink.field("pitch", [&] { return arguments->a.tensor.column_stride(); });
  stride_of_c("ldc", [&] { return arguments->c.tensor.row_stride(); });
  sink.field("ldd", [&] { return arguments->d.tensor.row_stride(); });
  stride_of_c("batch_stride_c", [&] { return arguments->c.tensor.batch_stride(); });
  sink.field("batch_stride_d", [&] { return arguments->d.tensor.batch_stride(); });
  sink.int32("filters", [&] { return arguments->m(); });
  sink.int32("tiles", [&] { return work().tiles; });
  sink.int32("blocks", [&] { return work().blocks; });
  describe_epilogue(sink, epilogue, arguments, false);
  sink.finish();
}

}  // namespace tilewright::plan
