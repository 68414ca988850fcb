// Kernels with a workspace in CUDA graphs: every family with split-K, repacked operands and reductions, captured in
// every mode on two streams and replayed many times. Each result must have the bits of a run without a graph.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "capture.hpp"
#include "gpu_engine_test.hpp"
#include "tests/unit/engine/host_problem.hpp"
#include "tilewright/engine/engine.hpp"
#include "tilewright/engine/host_operands.hpp"
#include "tilewright/op/epilogue_text.hpp"
#include "tilewright/runtime/stream.hpp"

namespace tilewright::engine {
namespace {

/// A problem, and the kernels that are wanted for it.
struct WorkspaceCase {
  std::string name;
  std::string family;
  std::function<std::unique_ptr<HostProblem>()> problem;
  std::function<bool(const plan::FlatDesign&)> is_wanted;
};
std::ostream& operator<<(std::ostream& out, const WorkspaceCase& each) { return out << each.name; }

std::vector<WorkspaceCase> workspace_cases() {
  const auto make = [](std::int64_t m, std::int64_t n, std::int64_t k, DType type, op::MatrixLayout b) {
    return std::make_unique<HostProblem>(
        m, n, k, HostProblemOptions{.type = type, .d_type = type == DType::s8 ? DType::s32 : type, .b = b});
  };
  constexpr auto kRow = op::MatrixLayout::row_major, kColumn = op::MatrixLayout::column_major;
  const auto reductions = [make](DType type) {
    return [make, type] {
      auto problem = make(200, 136, 512, type, kColumn);
      const char* const text = "D = acc; row(columns) = sum(acc); column(rows) = max(acc); total = sum(acc)";
      problem->set_epilogue(op::parse_epilogue(text, DType::f32).value_or_throw());
      return problem;
    };
  };
  const auto splits = [](const plan::FlatDesign& design) { return design.split_k > 1; };
  const auto repacks = [](const plan::FlatDesign& design) { return design.repacks_operands && design.split_k == 1; };
  const auto both = [](const plan::FlatDesign& design) { return design.repacks_operands && design.split_k > 1; };
  const auto whole = [](const plan::FlatDesign& design) { return design.split_k == 1; };
  return {
      {"simt_split_k", "simt_gemm", [=] { return make(64, 64, 8192, DType::f32, kColumn); }, splits},
      {"sm80_split_k", "sm80_gemm", [=] { return make(64, 64, 8192, DType::f16, kColumn); }, splits},
      {"sm90_split_k", "sm90_gemm", [=] { return make(64, 64, 8192, DType::f16, kColumn); }, splits},
      {"sm90_repacked", "sm90_gemm", [=] { return make(1031, 901, 1433, DType::f16, kRow); }, repacks},
      {"sm90_repacked_split_k", "sm90_gemm", [=] { return make(64, 72, 8191, DType::f16, kRow); }, both},
      {"sm90_repacked_transposed", "sm90_gemm", [=] { return make(512, 512, 512, DType::s8, kRow); }, repacks},
      {"simt_reductions", "simt_gemm", reductions(DType::f32), whole},
      {"sm80_reductions", "sm80_gemm", reductions(DType::f16), whole},
      {"sm90_reductions", "sm90_gemm", reductions(DType::f16), whole},
      {"simt_reductions_split_k", "simt_gemm", reductions(DType::f32), splits},
      {"sm80_reductions_split_k", "sm80_gemm", reductions(DType::f16), splits},
      {"sm90_reductions_split_k", "sm90_gemm", reductions(DType::f16), splits},
  };
}

/// A captured call on a stream of its own, with its own operands.
class CapturedCall {
 public:
  CapturedCall(Engine& engine, const std::shared_ptr<runtime::CudaContext>& context, const WorkspaceCase& wanted)
      : device_(engine.device()), host_(wanted.problem()), operands_(host_->gemm, device_, nullptr), stream_(context) {
    for (const RankedKernel& ranked : engine.find_kernels(operands_.on_device())) {
      const registry::KernelMetadata& metadata = ranked.kernel->metadata();
      if (metadata.family != wanted.family) continue;
      if (!wanted.is_wanted(plan::flatten(metadata.design, metadata.signature.gemm()))) continue;
      kernel_ = ranked.kernel;
      break;
    }
    if (kernel_ == nullptr) return;
    prepared_ = engine.prepare(operands_.on_device(), kernel_);
    poison();
    prepared_.run(stream_.handle());
    expected_ = outputs();
  }
  ~CapturedCall() { forget_graph(); }
  CapturedCall(const CapturedCall&) = delete;
  CapturedCall& operator=(const CapturedCall&) = delete;

  const registry::Kernel* kernel() const { return kernel_.get(); }
  std::size_t workspace_bytes() const { return prepared_.workspace_bytes(); }

  /// Captures `runs` runs of the call. Returns whether the driver accepted the graph.
  bool capture(int mode, int runs) {
    forget_graph();
    if (driver_.begin(stream_.handle(), mode) != 0) return false;
    for (int i = 0; i < runs; ++i) prepared_.run(stream_.handle());
    return driver_.end(stream_.handle(), &graph_) == 0 && driver_.instantiate(&executable_, graph_, 0) == 0;
  }
  void poison() {
    for (const op::ConstOperand& operand : written())
      device_->fill(operand.tensor->address, 0xff, static_cast<std::size_t>(op::span_bytes(*operand.tensor)),
                    stream_.handle());
  }
  void run() const { prepared_.run(stream_.handle()); }
  bool launch() { return driver_.launch(executable_, stream_.handle()) == 0; }
  /// Waits for the stream, and returns whether the outputs have the bits of the run without a graph.
  bool is_right() { return outputs() == expected_; }

 private:
  std::vector<op::ConstOperand> written() const {
    std::vector<op::ConstOperand> outputs = op::operands(operands_.on_device());
    std::erase_if(outputs, [](const op::ConstOperand& operand) { return !op::is_written(operand.access); });
    return outputs;
  }
  std::vector<std::byte> outputs() {
    std::vector<std::byte> all;
    for (const op::ConstOperand& operand : written()) {
      std::vector<std::byte> one(static_cast<std::size_t>(op::span_bytes(*operand.tensor)));
      device_->copy_out(one.data(), operand.tensor->address, one.size(), stream_.handle());
      device_->synchronize(stream_.handle());
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }
  void forget_graph() {
    if (executable_ != nullptr) driver_.destroy_executable(executable_);
    if (graph_ != nullptr) driver_.destroy(graph_);
    executable_ = graph_ = nullptr;
  }

  runtime::Capture driver_;
  std::shared_ptr<runtime::Device> device_;
  std::unique_ptr<HostProblem> host_;
  HostOperands operands_;
  runtime::Stream stream_;
  registry::KernelPtr kernel_;
  PreparedCall prepared_;
  std::vector<std::byte> expected_;
  void* graph_ = nullptr;
  void* executable_ = nullptr;
};

constexpr std::array kModes{0, 1, 2};  // global, which is the default; thread-local; relaxed

class Graphs : public GpuEngineTest, public testing::WithParamInterface<WorkspaceCase> {
 protected:
  void SetUp() override {
    GpuEngineTest::SetUp();
    if (IsSkipped()) return;
    for (std::unique_ptr<CapturedCall>& call : calls_)
      call = std::make_unique<CapturedCall>(*engine_, device_->context(), GetParam());
    if (calls_[0]->kernel() == nullptr) GTEST_SKIP() << "this GPU has no such kernel";
    ASSERT_GT(calls_[0]->workspace_bytes(), 0U) << calls_[0]->kernel()->name();
  }

  std::array<std::unique_ptr<CapturedCall>, 2> calls_;
};

TEST_P(Graphs, AreReplayedOnTwoStreams) {
  for (const int mode : kModes) {
    SCOPED_TRACE(fmt::format("mode {}: {}", mode, calls_[0]->kernel()->name()));
    for (const auto& call : calls_) ASSERT_TRUE(call->capture(mode, 1));
    for (int replay = 0; replay < 1000; ++replay) {
      for (const auto& call : calls_) {
        call->poison();
        ASSERT_TRUE(call->launch());
      }
      for (const auto& call : calls_) ASSERT_TRUE(call->is_right()) << "replay " << replay;
    }
  }
}

// A graph must not overlap with itself, but its launches on one stream are ordered, so the caller need not wait.
TEST_P(Graphs, AreLaunchedTwiceWithoutWaiting) {
  for (const int mode : kModes) {
    SCOPED_TRACE(fmt::format("mode {}: {}", mode, calls_[0]->kernel()->name()));
    for (const auto& call : calls_) ASSERT_TRUE(call->capture(mode, 3));
    for (int repeat = 0; repeat < 100; ++repeat) {
      for (const auto& call : calls_) call->poison();
      for (int launch = 0; launch < 2; ++launch) {
        for (const auto& call : calls_) ASSERT_TRUE(call->launch());
      }
      for (const auto& call : calls_) ASSERT_TRUE(call->is_right()) << "repeat " << repeat;
    }
  }
}

// A run on the same stream, outside of the graph, uses the stream's workspace and not the graph's.
TEST_P(Graphs, AreReplayedBetweenOtherRuns) {
  CapturedCall& call = *calls_[0];
  ASSERT_TRUE(call.capture(0, 2));
  for (int repeat = 0; repeat < 100; ++repeat) {
    call.poison();
    ASSERT_TRUE(call.launch());
    call.run();
    ASSERT_TRUE(call.launch());
    call.run();
    ASSERT_TRUE(call.is_right()) << "repeat " << repeat;
  }
}

INSTANTIATE_TEST_SUITE_P(Workspaces, Graphs, testing::ValuesIn(workspace_cases()),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace tilewright::engine
