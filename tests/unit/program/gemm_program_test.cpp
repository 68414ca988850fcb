// The library's GEMM as a program, changed as data: its two lowerings execute the same instructions with the same
// numbers.
#include <gtest/gtest.h>

#include <functional>

#include "gemm_problem.hpp"
#include "program_run.hpp"
#include "tilewright/program/instructions.hpp"

namespace tilewright::program {
namespace {

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

}  // namespace
}  // namespace tilewright::program
