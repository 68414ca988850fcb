// A user-defined operation on a GPU: it is run, prepared, and replayed from a CUDA graph, as a GEMM is.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "capture.hpp"
#include "gpu_engine_test.hpp"
#include "tests/unit/engine/stencil.hpp"
#include "tilewright/engine/engine.hpp"
#include "tilewright/engine/host_operands.hpp"
#include "tilewright/runtime/stream.hpp"

namespace tilewright::engine {
namespace {

class GpuOperations : public GpuEngineTest {
 protected:
  static constexpr std::int64_t kHeight = 200, kWidth = 300;

  void SetUp() override {
    GpuEngineTest::SetUp();
    if (IsSkipped()) return;
    engine_->registry().add(std::make_shared<stencil::StencilProvider>()).or_throw();
    op::fill_integers(op::matrix(x_.data(), DType::f32, kHeight, kWidth), -4, 4, 1);
  }

  op::Problem problem() const {
    return op::Custom::make(std::make_shared<stencil::Stencil>(),
                            {{"x", op::matrix(x_.data(), DType::f32, kHeight, kWidth)},
                             {"out", op::matrix(out_.data(), DType::f32, kHeight, kWidth)}});
  }

  std::vector<float> x_ = std::vector<float>(kHeight * kWidth);
  std::vector<float> out_ = std::vector<float>(kHeight * kWidth, std::nanf(""));
};

TEST_F(GpuOperations, AStencilRuns) {
  const op::Problem stencil = problem();
  engine_->run(stencil);
  const op::Comparison comparison = op::compare(stencil);
  EXPECT_TRUE(comparison.is_within_bound()) << op::to_string(comparison);
}

TEST_F(GpuOperations, APreparedStencilIsReplayedFromAGraph) {
  const runtime::Capture capture;
  const op::Problem stencil = problem();
  HostOperands operands(stencil, engine_->device(), nullptr);
  const PreparedCall prepared = engine_->prepare(operands.on_device());
  engine_->device()->synchronize(nullptr);
  const runtime::Stream stream(device_->context());
  ASSERT_EQ(capture.begin(stream.handle(), 0), 0);
  prepared.run(stream.handle());
  void* graph = nullptr;
  void* executable = nullptr;
  ASSERT_EQ(capture.end(stream.handle(), &graph), 0);
  ASSERT_EQ(capture.instantiate(&executable, graph, 0), 0);
  ASSERT_EQ(capture.launch(executable, stream.handle()), 0);
  stream.synchronize();
  operands.copy_out();
  EXPECT_TRUE(op::compare(stencil).is_within_bound());
  capture.destroy_executable(executable);
  capture.destroy(graph);
}

}  // namespace
}  // namespace tilewright::engine
