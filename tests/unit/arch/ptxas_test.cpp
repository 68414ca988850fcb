// ptxas assembles every row of the instruction tables and of the feature table. Skipped without a CUDA toolkit.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "tilewright/arch/mma_atom.hpp"
#include "tilewright/arch/wgmma_atom.hpp"
#include "tilewright/base/target_features.hpp"
#include "tilewright/base/text.hpp"

namespace tilewright::arch {
namespace {

namespace fs = std::filesystem;

std::optional<fs::path> find_ptxas() {
  const char* path = std::getenv("PATH");
  std::vector<std::string> folders = split(path != nullptr ? path : "", ':');
  folders.emplace_back("/usr/local/cuda/bin");
  for (const std::string& folder : folders) {
    const fs::path tool = fs::path(folder) / "ptxas";
    std::error_code error;
    if (!folder.empty() && fs::is_regular_file(tool, error)) return tool;
  }
  return std::nullopt;
}

/// "{%p0, %p1}": registers of one operand, numbered from `first`.
std::string operand(char bank, int first, int count) {
  std::string text = "{";
  for (int i = 0; i < count; ++i) text += fmt::format("{}%{}{}", i == 0 ? "" : ", ", bank, first + i);
  return text + "}";
}

char bank_of(DType type) {
  switch (type) {
    case DType::f64:
      return 'd';
    case DType::f32:
      return 'f';
    default:
      return 'r';
  }
}

void write_mma(SourceWriter& ptx, const MmaAtom& atom) {
  const std::string c = operand(bank_of(atom.c), 0, atom.c_registers);
  const char ab = atom.register_bits == 64 ? 'd' : 'r';
  ptx.line("{} {}, {}, {}, {};", atom.ptx, c, operand(ab, 8, atom.a_registers), operand(ab, 16, atom.b_registers), c);
}

void write_wgmma(SourceWriter& ptx, const WgmmaAtom& atom, int n) {
  const MmaAtom one = *instruction(atom, n);
  const std::string c = operand(bank_of(one.c), 0, one.c_registers);
  const std::string a = one.a_registers == 0 ? "%l0" : operand('r', 128, one.a_registers);
  ptx.line("{} {}, {}, %l1, %p0{}{}{};", one.ptx, c, a, atom.takes_scales ? ", 1, -1" : "",
           atom.a_may_be_mn_major ? ", 1" : "", atom.b_may_be_mn_major ? ", 1" : "");
}

std::vector<MmaAtom> all_mma_atoms() {
  std::vector<MmaAtom> atoms = mma_atoms();
  atoms.insert(atoms.end(), quad_pair_atoms().begin(), quad_pair_atoms().end());
  return atoms;
}

/// A kernel around `body`. It is assembled but never run: registers are not initialised.
template <class Body>
std::string kernel(const Target& target, Body&& body) {
  SourceWriter ptx;
  ptx.line(".version 9.0").line(".target {}", target.name()).line(".address_size 64").blank();
  ptx.line(".visible .entry every_row() {{").indent();
  ptx.line(
      ".reg .b32 %r<136>; .reg .f32 %f<128>; .reg .f64 %d<24>; .reg .b16 %h<8>; .reg .b64 %l<2>; .reg .pred %p<1>;");
  ptx.line(".shared .align 128 .b8 smem[512];");
  body(ptx);
  ptx.line("ret;").dedent().line("}}");
  return std::move(ptx).take();
}

/// A kernel with all instructions of the target; wgmma with n of 8 and 128 (with n = 256, two types need more registers
/// than a kernel has).
std::string kernel_of_every_row(const Target& target) {
  return kernel(target, [&](SourceWriter& ptx) {
    for (const MmaAtom& atom : all_mma_atoms()) {
      if (target.has_features_of(atom.min_target)) write_mma(ptx, atom);
    }
    if (!has_feature(target, TargetFeature::wgmma)) return;
    for (const WgmmaAtom& atom : wgmma_atoms()) {
      for (const int n : {8, 128}) write_wgmma(ptx, atom, n);
    }
  });
}

struct Assembly {
  bool accepted = false;
  std::string log;
};

/// With -O0, ptxas also encodes instructions with unused results; with optimisation it only checks them.
Assembly assemble(const fs::path& ptxas, const Target& target, const std::string& text, int optimisation = 0) {
  const fs::path file =
      fs::path(testing::TempDir()) / fmt::format("tilewright_rows_{}_{}.ptx", target.name(), ::getpid());
  std::ofstream(file) << text;
  const std::string command = fmt::format("'{}' -O{} -arch={} -o /dev/null '{}' 2>&1", ptxas.string(), optimisation,
                                          target.name(), file.string());
  Assembly result;
  if (std::FILE* pipe = popen(command.c_str(), "r")) {
    char buffer[4096];
    while (const std::size_t count = std::fread(buffer, 1, sizeof buffer, pipe)) result.log.append(buffer, count);
    result.accepted = pclose(pipe) == 0;
  }
  fs::remove(file);
  return result;
}

/// The end of a log: errors come after notes.
std::string tail(const std::string& log) { return log.substr(log.size() - std::min<std::size_t>(log.size(), 4000)); }

class Ptxas : public testing::TestWithParam<Target> {
 protected:
  void SetUp() override {
    ptxas_ = find_ptxas();
    if (!ptxas_) {
      std::fputs("WARNING: ptxas is neither on PATH nor in /usr/local/cuda/bin: no instruction row was assembled\n",
                 stderr);
      GTEST_SKIP() << "no ptxas";
    }
  }
  std::optional<fs::path> ptxas_;
};

std::string test_name(const testing::TestParamInfo<Target>& test) { return test.param.name(); }

// sm_75 is the oldest target of CUDA 13's ptxas; the rows of sm_70 are assembled for it.
INSTANTIATE_TEST_SUITE_P(Sm, Ptxas, testing::Values(Target{75}, kSm80, Target{89}, kSm90a), test_name);

TEST_P(Ptxas, AssemblesEveryRow) {
  const Assembly result = assemble(*ptxas_, GetParam(), kernel_of_every_row(GetParam()));
  EXPECT_TRUE(result.accepted) << tail(result.log);
}

/// One kernel for each row, because ptxas may stop at the first error.
TEST_P(Ptxas, RefusesRowsNewerThanTheTarget) {
  for (const MmaAtom& atom : all_mma_atoms()) {
    if (GetParam().has_features_of(atom.min_target)) continue;
    const std::string text = kernel(GetParam(), [&](SourceWriter& ptx) { write_mma(ptx, atom); });
    EXPECT_FALSE(assemble(*ptxas_, GetParam(), text).accepted) << atom.name;
  }
}

/// An instruction of each feature, with the registers of kernel().
std::string_view example(TargetFeature feature) {
  switch (feature) {
    case TargetFeature::cp_async:
      return "cp.async.ca.shared.global [smem], [%l0], 16;";
    case TargetFeature::stmatrix:
      return "stmatrix.sync.aligned.m8n8.x1.shared.b16 [smem], {%r0};";
    case TargetFeature::griddepcontrol:
      return "griddepcontrol.wait;";
    case TargetFeature::clusters:
      return "barrier.cluster.arrive.aligned;";
    case TargetFeature::tma:
      return "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [smem], [%l0, {%r0}], "
             "[smem];";
    case TargetFeature::wgmma:
      return "wgmma.fence.sync.aligned;";
    case TargetFeature::setmaxnreg:
      return "setmaxnreg.inc.sync.aligned.u32 64;";
    case TargetFeature::tensormap_replace:
      return "tensormap.replace.tile.global_address.global.b1024.b64 [%l0], %l1;";
    case TargetFeature::cluster_launch_control:
      return "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [smem], [smem];";
    case TargetFeature::tcgen05:
      return "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [smem], 32;";
    case TargetFeature::tcgen05_i8:
      return "tcgen05.mma.cta_group::1.kind::i8 [%r0], %l0, %l1, %r1, %p0;";
    case TargetFeature::block_scaled_mma:
      return "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3.f32.ue8m0 "
             "{%f0, %f1, %f2, %f3}, {%r0, %r1, %r2, %r3}, {%r4, %r5}, {%f0, %f1, %f2, %f3}, %r6, {%h0, %h1}, %r7, "
             "{%h2, %h3};";
  }
  return "";
}

class PtxasFeatures : public Ptxas {};
INSTANTIATE_TEST_SUITE_P(Sm, PtxasFeatures,
                         testing::Values(Target{75}, kSm80, Target{90}, kSm90a, Target{100},
                                         Target{100, FeatureSet::family_specific}, device_target(100),
                                         Target{103, FeatureSet::family_specific}, device_target(103),
                                         device_target(110), Target{120}, Target{120, FeatureSet::family_specific},
                                         device_target(120), device_target(121)),
                         test_name);

TEST_P(PtxasFeatures, AreThoseOfTheTable) {
  for (const TargetFeatureRow& row : target_features()) {
    const std::string text = kernel(GetParam(), [&](SourceWriter& ptx) { ptx.line("{}", example(row.feature)); });
    const Assembly result = assemble(*ptxas_, GetParam(), text);
    EXPECT_EQ(result.accepted, has_feature(GetParam(), row.feature)) << row.name << '\n' << tail(result.log);
  }
}

/// ptxas assembles PTX for the targets that the driver's just-in-time compiler accepts it on.
TEST_P(PtxasFeatures, PtxIsAssembledForTheDevicesThatRunIt) {
  const std::string text = kernel(GetParam(), [](SourceWriter&) {});
  for (const int sm : {75, 80, 86, 90, 100, 103, 110, 120, 121}) {
    const Target device = device_target(sm);
    EXPECT_EQ(assemble(*ptxas_, device, text).accepted, device.runs_ptx(GetParam())) << device.name();
  }
}

class PtxasWgmma : public Ptxas {};
INSTANTIATE_TEST_SUITE_P(Sm, PtxasWgmma, testing::Values(kSm90a), test_name);

TEST_P(PtxasWgmma, AcceptsEveryN) {
  const std::string text = kernel(GetParam(), [](SourceWriter& ptx) {
    for (const WgmmaAtom& atom : wgmma_atoms()) {
      for (const int n : n_values(atom)) write_wgmma(ptx, atom, n);
    }
  });
  const Assembly result = assemble(*ptxas_, GetParam(), text, 1);
  EXPECT_TRUE(result.accepted) << tail(result.log);
}

TEST_P(PtxasWgmma, RefusesOtherN) {
  WgmmaAtom any_n = *find_wgmma_atom(DType::s8, DType::u8, DType::s32, OperandSource::registers);
  any_n.n_step_past_32 = 8;
  const std::string text = kernel(GetParam(), [&](SourceWriter& ptx) { write_wgmma(ptx, any_n, 40); });
  EXPECT_FALSE(assemble(*ptxas_, GetParam(), text, 1).accepted);
}

}  // namespace
}  // namespace tilewright::arch
