// The library's GEMM as a small program that tests change, and a product on the emulator that it computes.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "program_run.hpp"
#include "tests/unit/plan/gemm_cases.hpp"
#include "tilewright/base/float_format.hpp"
#include "tilewright/op/named_epilogue.hpp"
#include "tilewright/program/gemm.hpp"

namespace tilewright::program {

using plan::AtomMix;

struct Mix {
  AtomMix mix;
  int warps_m, warps_n;
  int cluster_m = 1;
};
constexpr int kTile = 64, kDepth = 32, kStages = 2;

inline Program gemm_of(const Mix& mix) {
  op::GemmSignature signature = plan::describe({DType::bf16, DType::bf16, DType::bf16, DType::f32});
  signature.epilogue = op::accumulator_alone();
  signature.has_c = false;
  plan::ProgramGemmDesign design;
  design.target = kSm90a;
  design.mix = mix.mix;
  design.tile = {kTile, kTile, kDepth};
  design.stages = kStages;
  design.warps_m = mix.warps_m;
  design.warps_n = mix.warps_n;
  design.cluster_m = mix.cluster_m;
  design.raster = {1, false};
  Program program = gemm("gemm", plan::plan_program_gemm(signature, design).value_or_throw());
  program.grid = {mix.cluster_m, 1, 1};  // one CTA or cluster computes all tiles, so that phases and buffers recur
  return program;
}

/// D = A * B of 72 x 136 x k on the device, with integers.
class Problem {
 public:
  static constexpr int kM = 72, kN = 136;

  explicit Problem(int k = 136)
      : k_(k),
        a_(upload(elements(kM, 5))),
        b_(upload(elements(kN, 3))),
        d_(upload(std::vector<std::uint16_t>(kM * kN, 0x7fff))) {}

  LaunchArguments arguments() const {
    LaunchArguments values;
    values.integer("m", kM).integer("n", kN).integer("k", k_).integer("batch", 1);
    for (const auto& [name, buffer] : {std::pair<std::string, const runtime::DeviceBuffer*>("a", &a_), {"b", &b_}}) {
      values.address(name, buffer->address()).integer("ld" + name, k_);
      values.integer("batch_stride_" + name, 8).integer("batches_" + name, 1).integer("step_" + name, 0);
    }
    values.address("d", d_.address()).integer("d_line", kN).integer("d_batch", 8);
    values.integer("d_stride_m", kN).integer("d_stride_batch", 8);
    return values;
  }

  /// The number of elements of D that are wrong.
  int wrong() const {
    const std::vector<std::uint16_t> a = elements(kM, 5), b = elements(kN, 3), d = download<std::uint16_t>(d_);
    int count = 0;
    for (int row = 0; row < kM; ++row) {
      for (int column = 0; column < kN; ++column) {
        float sum = 0;
        for (int k = 0; k < k_; ++k)
          sum += bf16_to_f32(a[static_cast<std::size_t>(row * k_ + k)]) *
                 bf16_to_f32(b[static_cast<std::size_t>(column * k_ + k)]);
        count += d[static_cast<std::size_t>(row * kN + column)] == f64_to_bf16(sum) ? 0 : 1;
      }
    }
    return count;
  }

 private:
  std::vector<std::uint16_t> elements(int lines, int factor) const {
    std::vector<std::uint16_t> values;
    for (int i = 0; i < lines * k_; ++i) values.push_back(f64_to_bf16(i * factor % 7 - 3));
    return values;
  }
  int k_;
  runtime::DeviceBuffer a_, b_, d_;
};

}  // namespace tilewright::program
