// The differential test without a GPU: that its table is right, that its kernels compute what their instructions say,
// and that it finds instructions that differ.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include <unistd.h>

#include "comparison.hpp"
#include "form_kernel.hpp"
#include "tilewright/emulator/checks.hpp"
#include "tilewright/emulator/device.hpp"

namespace tilewright::differential {
namespace {

std::shared_ptr<runtime::Device> emulated() {
  emulator::EmulatorOptions options;
  options.threads = 1;
  options.check_races = options.check_uninitialised = false;
  return emulator::make_emulated_device(kSm90a, options);
}

ComparisonSettings few_samples() {
  ComparisonSettings settings;
  settings.samples = 512;
  return settings;
}

TEST(Differential, TableExpandsAlternatives) {
  const auto forms = parse_forms(
      "# comment\ni32 | {1:i16,i32}*2 p | add{,.sat}.{1:s16,s32}\nf32 p | f32 | x %d0|%d1, {%s0}, {0,1} | ulp=2 "
      "rel=2^-22\n");
  std::vector<std::string> texts;
  for (const InstructionForm& form : forms) texts.push_back(form.text);
  EXPECT_EQ(texts, (std::vector<std::string>{"add.s16", "add.sat.s16", "add.s32", "add.sat.s32", "x %d0|%d1, {%s0}, 0",
                                             "x %d0|%d1, {%s0}, 1"}));
  EXPECT_EQ(forms[1].sources[0].kind.name, "i16");
  EXPECT_EQ(forms[2].sources[0].kind.name, "i32");
  EXPECT_EQ(forms[1].source_registers().size(), 3U);
  EXPECT_EQ(forms[4].tolerance.ulp, 2);
  EXPECT_EQ(forms[4].tolerance.relative, 0x1p-22);
  EXPECT_TRUE(forms[0].tolerance.is_exact());
  EXPECT_THROW(parse_forms("i32 | i33 | add"), std::invalid_argument);
  EXPECT_THROW(parse_forms("i32 | i32"), std::invalid_argument);
}

TEST(Differential, EmulatorExecutesEveryForm) {
  const auto device = emulated();
  ComparisonSettings settings = few_samples();
  settings.samples = kBlockThreads;
  const auto reports = compare(device, device, instruction_forms(), settings);
  ASSERT_EQ(reports.size(), instruction_forms().size());
  for (const FormReport& report : reports) EXPECT_TRUE(report.matches()) << describe_mismatch(report);
  EXPECT_GT(reports.size(), 1000U);
}

/// The results of a form on the emulator, and its sources.
struct Executed {
  std::vector<std::vector<std::uint64_t>> sources, destinations;
};

Executed executed(const std::string& line, std::size_t samples = 2048) {
  const auto forms = parse_forms(line);
  ComparisonSettings settings;
  settings.samples = samples;
  const auto sources = draw_sources(forms, settings);
  return {sources[0], execute(emulated(), forms, sources, samples)[0]};
}

TEST(Differential, KernelsLoadExecuteAndStore) {
  const Executed sum = executed("i64 | i32 i32 i64 | mad.wide.s32");
  for (std::size_t i = 0; i < sum.sources[0].size(); ++i) {
    const auto a = static_cast<std::int32_t>(sum.sources[0][i]), b = static_cast<std::int32_t>(sum.sources[1][i]);
    const auto product = static_cast<std::uint64_t>(std::int64_t{a} * b);
    ASSERT_EQ(sum.destinations[0][i], product + sum.sources[2][i]) << a << " " << b;
  }
  const Executed fused = executed("f32 | f32 f32 f32 | fma.rn.f32");
  std::size_t cancelled = 0;
  for (std::size_t i = 0; i < fused.sources[0].size(); ++i) {
    const auto number = [&](std::size_t r) {
      return std::bit_cast<float>(static_cast<std::uint32_t>(fused.sources[r][i]));
    };
    const float expected = std::fma(number(0), number(1), number(2));
    const auto bits = std::isnan(expected) ? 0x7fffffffU : std::bit_cast<std::uint32_t>(expected);
    ASSERT_EQ(fused.destinations[0][i], bits) << number(0) << " " << number(1) << " " << number(2);
    const float product = number(0) * number(1);
    if (std::isfinite(product) && product != 0 && std::fabs(expected) < std::fabs(product) * 0x1p-20F) ++cancelled;
  }
  EXPECT_GT(cancelled, 50U) << "sums that cancel are not drawn";
  const Executed compared = executed("p p | i32 i32 p | setp.lt.and.s32 %d0|%d1, %s0, %s1, !%s2");
  std::size_t equal = 0;
  for (std::size_t i = 0; i < compared.sources[0].size(); ++i) {
    const auto a = static_cast<std::int32_t>(compared.sources[0][i]),
               b = static_cast<std::int32_t>(compared.sources[1][i]);
    const bool with = compared.sources[2][i] == 0;
    ASSERT_EQ(compared.destinations[0][i], a < b && with ? 1 : 0);
    ASSERT_EQ(compared.destinations[1][i], a >= b && with ? 1 : 0);
    if (a == b) ++equal;
  }
  EXPECT_GT(equal, 20U);
}

TEST(Differential, UnaryFormsOf16BitsAreExhaustive) {
  const Executed converted = executed("f32 | f16 | cvt.f32.f16", 65536);
  std::vector<bool> seen(65536);
  for (const std::uint64_t bits : converted.sources[0]) seen[bits] = true;
  EXPECT_EQ(std::ranges::count(seen, true), 65536);
  EXPECT_EQ(converted.destinations[0][0x3c01], std::bit_cast<std::uint32_t>(1 + 0x1p-10F));
}

/// wgmma and mma.sync of the same values: rows of A times columns of B, with each in its own layout.
TEST(Differential, MatrixProductsAreThoseOfTheirLayouts) {
  const Executed wgmma = executed("i32*4 | i32 i32*4 i32*4 | wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.u8", 256);
  for (std::size_t thread = 0; thread < 256; ++thread) {
    const std::size_t group = thread / 128, warp = thread / 32 * 32, lane = thread % 32;
    for (std::size_t value = 0; value < 4; ++value) {
      const std::size_t row = lane / 4 + value / 2 * 8, column = lane % 4 * 2 + value % 2;
      auto sum = static_cast<std::uint32_t>(wgmma.sources[5 + value][thread]);
      for (std::size_t k = 0; k < 32; ++k) {
        // Register r of lane l has bytes 16 * (r / 2) + 4 * (l % 4) and following of row l / 4 + 8 * (r % 2).
        const std::size_t a_register = k / 16 * 2 + row / 8, a_lane = row % 8 * 4 + k % 16 / 4;
        const auto a = static_cast<std::int8_t>(wgmma.sources[1 + a_register][warp + a_lane] >> (8 * (k % 4)));
        const std::size_t word = k / 16 * 32 + column * 4 + k % 16 / 4;
        const auto b = static_cast<std::uint8_t>(wgmma.sources[0][group * 128 + word] >> (8 * (k % 4)));
        sum += static_cast<std::uint32_t>(a * b);
      }
      ASSERT_EQ(wgmma.destinations[value][thread], sum) << thread << " " << value;
    }
  }
}

std::string altered_report(const std::string& line, const std::string& from, const std::string& to) {
  const auto forms = parse_forms(line);
  ComparisonSettings settings = few_samples();
  settings.altered = [&](InstructionForm form) {
    if (const std::size_t at = form.text.find(from); at != std::string::npos) form.text.replace(at, from.size(), to);
    return form;
  };
  const auto reports = compare(emulated(), emulated(), forms, settings);
  std::string text;
  for (const FormReport& report : reports) text += describe_mismatch(report);
  return text;
}

TEST(Differential, FindsAnInstructionThatDiffers) {
  EXPECT_EQ(altered_report("i32 | i32 i32 | {add,sub}.s32", "none", ""), "");
  const std::string report = altered_report("i32 | i32 i32 | {add,sub}.s32", "sub", "add");
  EXPECT_TRUE(report.starts_with("differs: sub.s32: ")) << report;
  EXPECT_NE(report.find("inputs 0x7fffffff 0x00010000 (sample 0): emulator 0x7ffeffff, GPU 0x8000ffff"),
            std::string::npos)
      << report;
  EXPECT_LT(std::ranges::count(report, '\n'), 2) << report;
  // Differences in one rounding, in signs of zero, and in subnormal numbers.
  EXPECT_NE(altered_report("f32 | f32 f32 | mul.rn.f32", ".rn", ".rz"), "");
  EXPECT_NE(altered_report("f32 | f32 f32 | add.rn.f32", ".rn", ".rm"), "");
  EXPECT_NE(altered_report("f64 | f64 f64 f64 | fma.rn.f64", ".rn", ".rp"), "");
  EXPECT_NE(altered_report("f32 | f32 f32 | min.f32", ".f32", ".NaN.f32"), "");
  EXPECT_NE(altered_report("p | f16 f16 | setp.lt.f16", ".f16", ".ftz.f16"), "");
  EXPECT_NE(altered_report("f16x2 | f32 f32 | cvt.rn.relu.f16x2.f32", ".relu", ""), "");
  EXPECT_NE(altered_report("i32 | i32 i32 amount | shf.l.clamp.b32", "clamp", "wrap"), "");
  EXPECT_NE(altered_report("i32 i32 | i32 i32 | add.cc.u32 %d0, %s0, %s1; addc.u32 %d1, 0, 0", "addc", "add"), "");
  EXPECT_NE(
      altered_report(
          "f32*4 | f32:unit*4 f32:unit*2 f32:unit*4 | mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 | sum=2^-20",
          "m16n8k8.row.col.f32.tf32.tf32.f32", "m16n8k16.row.col.f32.bf16.bf16.f32"),
      "");
}

TEST(Differential, FindsASparseProductThatDiffers) {
  const std::string registers = "{%d0, %d1, %d2, %d3}, {%s0, %s1}, {%s2, %s3}, {%s4, %s5, %s6, %s7}, %s8, ";
  const std::string mma =
      "f32*4 | f16x2:integer*2 f16x2:integer*2 f32:integer*4 2of4 | "
      "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 " +
      registers + "0";
  EXPECT_EQ(altered_report(mma, "none", ""), "");
  EXPECT_NE(altered_report(mma, "%s8, 0", "%s8, 1"), "");
  EXPECT_NE(altered_report(mma, ".f16.f16.", ".bf16.bf16."), "");
  const std::string wgmma =
      "f32*4 | f32:integer f32:integer*4 1of2 f32:integer*4 | "
      "wgmma.mma_async.sp.sync.aligned.m64n8k16.f32.tf32.tf32 0";
  EXPECT_EQ(altered_report(wgmma, "none", ""), "");
  EXPECT_NE(altered_report(wgmma, "tf32 0", "tf32 1"), "");
}

TEST(Differential, TolerancesAllowNoMoreThanTheyAllow) {
  // The emulator's rcp.approx is the nearest number, and div.rz at most one unit below.
  const std::string line = "f32 | f32 f32 | div.rn.f32 | ";
  EXPECT_EQ(altered_report(line + "ulp=1", ".rn", ".rz"), "");
  EXPECT_NE(altered_report(line + "ulp=0.5", ".rn", ".rz"), "");
  EXPECT_EQ(altered_report(line + "rel=2^-22 abs=2^-149", ".rn", ".rp"), "");
  EXPECT_NE(altered_report(line + "rel=2^-22", ".rn", ".rp"), "") << "subnormal numbers differ by more";
}

TEST(Differential, AFormThatDoesNotLoadIsNamed) {
  const std::string report = altered_report("i32 | i32 i32 | {add,sub}.s32", "sub.s32", "sub.s31");
  EXPECT_TRUE(report.starts_with("cannot run sub.s32: ")) << report;
  EXPECT_EQ(report.find("add"), std::string::npos) << report;
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

TEST(Differential, ValuesOfAnH200) {
  std::ifstream file(std::string(TILEWRIGHT_SOURCE_DIR) + "/tests/differential/h200_values.txt");
  ASSERT_TRUE(file.is_open());
  int compared = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    const std::size_t bar = line.rfind(" | ");
    const auto forms = parse_forms(line.substr(0, bar));
    const std::vector<std::string> words = words_of(line.substr(bar + 3));
    std::vector<std::vector<std::uint64_t>> sources;
    std::size_t at = 0;
    for (; words.at(at) != "="; ++at) sources.emplace_back(kBlockThreads, std::stoull(words[at], nullptr, 16));
    const std::uint64_t expected = std::stoull(words.at(at + 1), nullptr, 16);
    const std::size_t destination = words.size() > at + 3 ? std::stoul(words[at + 3].substr(2)) : 0;
    const std::vector<std::vector<std::vector<std::uint64_t>>> all{sources};
    const std::uint64_t result = execute(emulated(), forms, all, kBlockThreads)[0].at(destination)[0];
    EXPECT_EQ(result, expected) << line << fmt::format(": {:#x}", result);
    ++compared;
  }
  EXPECT_GT(compared, 150);
}

/// The forms that ptxas does not accept for the target, and its message.
std::map<std::string, std::string> refused_by_ptxas(std::span<const InstructionForm> forms, const Target& target) {
  const std::string folder = testing::TempDir() + fmt::format("tilewright_forms_{}", ::getpid());
  std::filesystem::create_directories(folder);
  const std::string text = form_kernel(forms, lay_out(forms, kBlockThreads), target);
  std::ofstream(folder + "/forms.ptx") << text;
  const std::string command =
      fmt::format("cd {} && ptxas -O0 -arch={} -o forms.cubin forms.ptx > forms.log 2>&1", folder, target.name());
  std::map<std::string, std::string> refused;
  if (std::system(command.c_str()) != 0) {
    std::vector<std::string> form_of_line{""};  // ptxas names lines of the file
    std::istringstream lines(text);
    std::string form;
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("// ")) form = line.substr(3);
      form_of_line.push_back(form);
    }
    std::ifstream messages(folder + "/forms.log");
    for (std::string line; std::getline(messages, line);) {
      const std::size_t at = line.find(", line ");
      if (at == std::string::npos || line.find("error") == std::string::npos) continue;
      refused.emplace(form_of_line.at(std::stoul(line.substr(at + 7))), line.substr(at));
    }
    if (refused.empty()) refused.emplace("ptxas", "failed");
  }
  std::filesystem::remove_all(folder);
  return refused;
}

bool is_executed(const InstructionForm& form, const Target& target) {
  emulator::EmulatorOptions options;
  options.threads = 1;
  const auto device = emulator::make_emulated_device(target, options);
  const std::span forms(&form, 1);
  const FormMemory memory = lay_out(forms, kBlockThreads);
  const auto kernel = device->load(runtime::Image{{}, form_kernel(forms, memory, target)}, "k", 0);
  const runtime::DeviceBuffer in(device, memory.source_bytes + 1);
  device->fill(in.address(), 0x44, memory.source_bytes + 1, nullptr);  // zeros would be no metadata of a sparse matrix
  const auto out = runtime::DeviceBuffer::of_zeros(device, memory.destination_bytes);
  const std::array<runtime::DeviceAddress, 2> addresses{in.address(), out.address()};
  runtime::LaunchConfig config;
  config.block = {kBlockThreads, 1, 1};
  try {
    kernel->launch(config, std::as_bytes(std::span(addresses)));
  } catch (const emulator::EmulationFinding& finding) {
    EXPECT_EQ(finding.finding().kind, emulator::FindingKind::unsupported_instruction) << finding.what();
    EXPECT_NE(finding.finding().detail.find(", the target is " + target.name()), std::string::npos) << finding.what();
    return false;
  }
  return true;
}

class DifferentialTargets : public testing::TestWithParam<Target> {};

TEST_P(DifferentialTargets, HaveTheInstructionsThatPtxasAccepts) {
  if (std::system("ptxas --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "there is no ptxas";
  const std::map<std::string, std::string> refused = refused_by_ptxas(instruction_forms(), GetParam());
  EXPECT_EQ(refused.empty(), GetParam() == kSm90a);
  std::set<std::string> seen;
  for (const InstructionForm& form : instruction_forms()) {
    if (!seen.insert(form.text).second) continue;
    const auto found = refused.find(form.text);
    EXPECT_EQ(is_executed(form, GetParam()), found == refused.end())
        << form.text << (found == refused.end() ? "" : found->second);
  }
}

INSTANTIATE_TEST_SUITE_P(All, DifferentialTargets,
                         testing::Values(Target{75}, kSm80, Target{86}, Target{89}, Target{90}, kSm90a,
                                         device_target(100)),
                         [](const auto& each) { return each.param.name(); });

}  // namespace
}  // namespace tilewright::differential
