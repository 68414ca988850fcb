// The library's GEMM as a program, changed as data: its two lowerings execute the same instructions with the same
// numbers, and the emulator finds what a changed program does wrong and names the program's line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "program_run.hpp"
#include "tests/unit/plan/gemm_cases.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/base/float_format.hpp"
#include "tilewright/emulator/checks.hpp"
#include "tilewright/op/named_epilogue.hpp"
#include "tilewright/program/gemm.hpp"
#include "tilewright/program/instructions.hpp"

namespace tilewright::program {
namespace {

using plan::AtomMix;

struct Mix {
  AtomMix mix;
  int warps_m, warps_n;
  int cluster_m = 1;
};
constexpr int kTile = 64, kDepth = 32, kStages = 2;

Program gemm_of(const Mix& mix) {
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

/// D = A * B of 72 x 136 x 136 on the device, with integers.
class Problem {
 public:
  static constexpr int kM = 72, kN = 136, kK = 136;

  Problem()
      : a_(upload(elements(kM, 5))),
        b_(upload(elements(kN, 3))),
        d_(upload(std::vector<std::uint16_t>(kM * kN, 0x7fff))) {}

  LaunchArguments arguments() const {
    LaunchArguments values;
    values.integer("m", kM).integer("n", kN).integer("k", kK).integer("batch", 1);
    for (const auto& [name, buffer] : {std::pair<std::string, const runtime::DeviceBuffer*>("a", &a_), {"b", &b_}}) {
      values.address(name, buffer->address()).integer("ld" + name, kK);
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
        for (int k = 0; k < kK; ++k)
          sum += bf16_to_f32(a[static_cast<std::size_t>(row * kK + k)]) *
                 bf16_to_f32(b[static_cast<std::size_t>(column * kK + k)]);
        count += d[static_cast<std::size_t>(row * kN + column)] == f64_to_bf16(sum) ? 0 : 1;
      }
    }
    return count;
  }

 private:
  static std::vector<std::uint16_t> elements(int lines, int factor) {
    std::vector<std::uint16_t> values;
    for (int i = 0; i < lines * kK; ++i) values.push_back(f64_to_bf16(i * factor % 7 - 3));
    return values;
  }
  runtime::DeviceBuffer a_, b_, d_;
};

// Traces.

/// An executed instruction: its line and its first numbers.
constexpr int kNumbers = 6, kWords = 1 + kNumbers, kMaxEntries = 800;

bool is_traced(const Instruction& instruction) {
  for (const std::string_view part : {"cp.async", "mbarrier", "wgmma", "fence", "barrier."}) {
    if (instruction.text.find(part) != std::string::npos) return true;
  }
  return false;
}

/// Lets each thread append an entry to its trace after each instruction that is_traced() accepts. `trace` is an
/// argument of the launch, with a number of entries and kMaxEntries entries for each thread.
Program traced(Program program) {
  number_lines(program);
  const Value trace{.id = static_cast<std::int32_t>(program.counts.size()), .type = RegisterType::b64};
  program.counts.push_back(1);
  program.types.push_back(RegisterType::b64);
  program.parameter_bytes = (program.parameter_bytes + 7) / 8 * 8;
  program.parameters.push_back({.name = "trace",
                                .kind = Parameter::Kind::address,
                                .offset = program.parameter_bytes,
                                .alignment = 4,
                                .value = trace});
  program.parameter_bytes += 8;
  const Number thread =
      (program.variables.block[0] * program.cluster[1] + program.variables.block[1]) * program.threads +
      program.variables.thread;
  for_each_block(program.body, [&](Block& block) {
    Block with_traces;
    for (Statement& statement : block) {
      with_traces.push_back(statement);
      const auto* const instruction = std::get_if<Instruction>(&with_traces.back().node);
      if (instruction == nullptr || !is_traced(*instruction)) continue;
      std::string text = fmt::format(
          "{{\n.reg .b32 n;\n.reg .b64 at, entry;\nmad.wide.u32 at, $1, {}, $0;\nld.global.u32 n, [at];\n"
          "mad.wide.u32 entry, n, {}, at;\nst.global.u32 [entry+4], $2;\n",
          4 * (1 + kMaxEntries * kWords), 4 * kWords);
      std::vector<Operand> operands{input(trace), number(thread), number(statement.line)};
      for (const Operand& operand : instruction->operands) {
        if (operand.kind != Operand::Kind::number || operand.type == RegisterType::b64) continue;
        if (operands.size() == 3 + kNumbers) break;
        text += fmt::format("st.global.u32 [entry+{}], ${};\n", 4 * (operands.size() - 1), operands.size());
        operands.push_back(number(operand.number));
      }
      text += "add.u32 n, n, 1;\nst.global.u32 [at], n;\n}";
      with_traces.push_back({.node = Instruction{std::move(text), std::move(operands), Effect::memory}});
    }
    block = std::move(with_traces);
  });
  number_lines(program);
  return program;
}

class TracedLowerings : public testing::TestWithParam<Mix> {};

TEST_P(TracedLowerings, ExecuteTheSameInstructionsInEachThread) {
#ifndef TILEWRIGHT_HAS_MLIR
  GTEST_SKIP() << "there is no MLIR";
#endif
  const Program program = traced(gemm_of(GetParam()));
  std::vector<std::vector<std::uint32_t>> traces;
  for (const bool by_mlir : {false, true}) {
    const Problem problem;
    const int ctas = 132;
    const auto trace = upload(
        std::vector<std::uint32_t>(static_cast<std::size_t>(ctas * program.threads * (1 + kMaxEntries * kWords)), 0));
    const compile::Artifact artifact = by_mlir ? compile_as_mlir(program) : compile_as_cuda(program);
    run(program, artifact.ptx, problem.arguments().address("trace", trace.address()));
    EXPECT_EQ(problem.wrong(), 0);
    traces.push_back(download<std::uint32_t>(trace));
  }
  ASSERT_EQ(traces[0].size(), traces[1].size());
  constexpr std::size_t kOfThread = 1 + kMaxEntries * kWords;
  std::uint32_t entries = 0;
  for (std::size_t thread = 0; thread < traces[0].size() / kOfThread; ++thread) {
    const auto of = [&](int lowering) {
      const auto first =
          traces[static_cast<std::size_t>(lowering)].begin() + static_cast<std::ptrdiff_t>(thread * kOfThread);
      return std::vector<std::uint32_t>(first, first + kOfThread);
    };
    const std::vector<std::uint32_t> by_cuda = of(0), by_mlir = of(1);
    entries = std::max(entries, by_cuda[0]);
    ASSERT_LE(by_cuda[0], static_cast<std::uint32_t>(kMaxEntries));
    ASSERT_EQ(by_cuda, by_mlir) << "thread " << thread;
  }
  EXPECT_GT(entries, 100U);  // the threads that multiply or load have executed each stage's instructions
}

std::string mix_name(const testing::TestParamInfo<Mix>& tested) {
  return std::string(plan::name(tested.param.mix)) + (tested.param.cluster_m > 1 ? "_of_clusters" : "");
}

constexpr Mix kWgmma{AtomMix::tma_wgmma, 4, 1};
INSTANTIATE_TEST_SUITE_P(Mixes, TracedLowerings,
                         testing::Values(kWgmma, Mix{AtomMix::tma_wgmma, 4, 1, 2}, Mix{AtomMix::cp_async_wgmma, 4, 1},
                                         Mix{AtomMix::tma_mma, 2, 2}, Mix{AtomMix::tma_register_wgmma, 4, 1}),
                         mix_name);

// Faults.

struct Fault {
  const char* name;
  AtomMix mix;
  const char* text;  // a part of the instruction that is changed
  int number;        // which of those with that text, from 0 on, in the order of the listing
  /// Changes the instruction; false: removes it.
  bool (*change)(Instruction&);
  const char* finding;  // what the emulator says
};

bool remove(Instruction&) { return false; }
/// Waits for the other phase.
bool flip(Instruction& instruction) {
  instruction.operands[1].number = instruction.operands[1].number ^ 1;
  return true;
}
bool add_arrival(Instruction& instruction) {
  instruction.operands[1].number = instruction.operands[1].number + 1;
  return true;
}
bool drop_arrival(Instruction& instruction) {
  instruction.operands[1].number = instruction.operands[1].number - 1;
  return true;
}

/// The program with one changed instruction, which must exist.
Program changed(const Fault& fault) {
  Program program = gemm_of({fault.mix, fault.mix == AtomMix::tma_mma ? 2 : 4, fault.mix == AtomMix::tma_mma ? 2 : 1});
  change_instruction(program, fault.text, fault.number, fault.change);
  return program;
}

class FaultyProgram : public testing::TestWithParam<Fault> {};

TEST_P(FaultyProgram, IsFoundWithItsLine) {
  const Program program = changed(GetParam());
  const Problem problem;
  try {
    run(program, compile_as_cuda(program).ptx, problem.arguments());
    FAIL() << "nothing was found, " << problem.wrong() << " elements are wrong";
  } catch (const emulator::EmulationFinding& found) {
    EXPECT_THAT(found.what(), testing::HasSubstr(GetParam().finding));
    ASSERT_FALSE(found.finding().location.source.empty()) << found.what();
    EXPECT_THAT(found.what(), testing::HasSubstr("gemm.tw:"));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Programs, FaultyProgram,
    testing::Values(Fault{"FenceOfStagedD", AtomMix::tma_wgmma, "fence.proxy.async", 0, remove, "proxy"},
                    Fault{"BarrierOfStagedD", AtomMix::tma_wgmma, "barrier.sync.aligned $0", 0, remove, ""},
                    Fault{"WaitForReadOfStagedD", AtomMix::tma_wgmma, "wait_group.read", 0, remove, ""},
                    Fault{"FenceOfCpAsync", AtomMix::cp_async_wgmma, "fence.proxy.async", 0, remove, "proxy"},
                    Fault{"FenceOfWgmma", AtomMix::tma_register_wgmma, "wgmma.fence", 0, remove, "wgmma.fence"},
                    Fault{"WaitForFull", AtomMix::tma_wgmma, "try_wait", 1, remove, ""},
                    Fault{"WaitForEmpty", AtomMix::tma_wgmma, "try_wait", 0, remove, ""},
                    Fault{"PhaseOfFull", AtomMix::tma_wgmma, "try_wait", 1, flip, ""},
                    Fault{"PhaseOfEmpty", AtomMix::tma_mma, "try_wait", 0, flip, ""},
                    Fault{"TooManyArrivals", AtomMix::tma_wgmma, "mbarrier.init", 1, add_arrival, ""},
                    Fault{"TooFewArrivals", AtomMix::tma_wgmma, "mbarrier.init", 1, drop_arrival, ""},
                    Fault{"ReleaseOfAStage", AtomMix::tma_wgmma, "mbarrier.arrive.shared", 0, remove, ""}),
    [](const testing::TestParamInfo<Fault>& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace tilewright::program
