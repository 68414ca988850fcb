// Every instruction row is assembled by ptxas, where the CUDA toolkit is installed.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "tilewright/arch/copy_atom.hpp"
#include "tilewright/arch/mma_atom.hpp"
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

void write_copy(SourceWriter& ptx, const CopyAtom& atom) {
  const int words = atom.bytes / 4;
  switch (atom.kind) {
    case CopyKind::cp_async_ca:
    case CopyKind::cp_async_cg:
      ptx.line("{} [smem], [%l0], {};", atom.ptx, atom.bytes);
      return;
    case CopyKind::ldmatrix:
    case CopyKind::ldmatrix_trans:
      ptx.line("{} {}, [smem];", atom.ptx, operand('r', 0, words));
      return;
    case CopyKind::load_shared:
      if (atom.bytes < 4) {
        ptx.line("{} %h0, [smem];", atom.ptx);
      } else {
        ptx.line("{} {}, [smem];", atom.ptx, words == 1 ? "%r0" : operand('r', 0, words));
      }
      return;
  }
}

/// A kernel of all instructions that `sm` has. It is only assembled, never run: registers have no values.
std::string kernel_of_every_row(int sm) {
  SourceWriter ptx;
  ptx.line(".version 8.0").line(".target sm_{}", sm).line(".address_size 64").blank();
  ptx.line(".visible .entry every_row() {{").indent();
  ptx.line(".reg .b32 %r<24>; .reg .f32 %f<8>; .reg .f64 %d<24>; .reg .b16 %h<2>; .reg .b64 %l<2>;");
  ptx.line(".shared .align 16 .b8 smem[512];");
  for (const MmaAtom& atom : mma_atoms()) {
    if (atom.min_sm <= sm) write_mma(ptx, atom);
  }
  for (const CopyAtom& atom : copy_atoms()) {
    if (atom.min_sm <= sm) write_copy(ptx, atom);
  }
  ptx.line("ret;").dedent().line("}}");
  return std::move(ptx).take();
}

struct Assembly {
  bool accepted = false;
  std::string log;
};

Assembly assemble(const fs::path& ptxas, int sm, const std::string& text) {
  const fs::path file = fs::path(testing::TempDir()) / fmt::format("tilewright_rows_sm_{}_{}.ptx", sm, ::getpid());
  std::ofstream(file) << text;
  const std::string command = fmt::format("'{}' -arch=sm_{} -o /dev/null '{}' 2>&1", ptxas.string(), sm, file.string());
  Assembly result;
  if (std::FILE* pipe = popen(command.c_str(), "r")) {
    char buffer[4096];
    while (const std::size_t count = std::fread(buffer, 1, sizeof buffer, pipe)) result.log.append(buffer, count);
    result.accepted = pclose(pipe) == 0;
  }
  fs::remove(file);
  return result;
}

class Ptxas : public testing::TestWithParam<int> {
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

INSTANTIATE_TEST_SUITE_P(Sm, Ptxas, testing::Values(80, 90));

TEST_P(Ptxas, AssemblesEveryRow) {
  const std::string text = kernel_of_every_row(GetParam());
  const Assembly result = assemble(*ptxas_, GetParam(), text);
  EXPECT_TRUE(result.accepted) << result.log << text;
}

TEST_P(Ptxas, RefusesRowsNewerThanTheTarget) {
  for (const MmaAtom& atom : mma_atoms()) {
    if (atom.min_sm <= GetParam()) continue;
    SourceWriter ptx;
    ptx.line(".version 8.0").line(".target sm_{}", GetParam()).line(".address_size 64");
    ptx.line(".visible .entry newer() {{").line(".reg .f64 %d<24>;");
    write_mma(ptx, atom);
    ptx.line("ret;").line("}}");
    EXPECT_FALSE(assemble(*ptxas_, GetParam(), std::move(ptx).take()).accepted) << atom.name;
  }
}

}  // namespace
}  // namespace tilewright::arch
