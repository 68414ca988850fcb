// Sources in MLIR: the spellings that LLVM 22 accepts, the PTX that they become, assemblers, errors, threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <optional>
#include <regex>
#include <sstream>

#include "tilewright/base/error.hpp"
#include "tilewright/compile/assembler.hpp"
#include "tilewright/compile/compiler.hpp"
#include "tilewright/compile/file.hpp"
#include "tilewright/compile/mlir_compiler.hpp"
#include "tilewright/compile/mlir_job.hpp"
#include "tilewright/compile/nvrtc_job.hpp"
#include "tilewright/compile/parallel.hpp"
#include "tilewright/compile/ptx_in_cuda.hpp"

namespace tilewright::compile {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;

/// A module of mlir_snippets/ and what the comments at its beginning expect of it.
struct Snippet {
  Source source;
  std::vector<std::string> expected;  // substrings of the PTX
  std::optional<int> registers;
};

std::optional<std::string> rest_after(const std::string& line, const std::string& prefix) {
  return line.starts_with(prefix) ? std::optional(line.substr(prefix.size())) : std::nullopt;
}

Snippet read_snippet(const fs::path& path) {
  Snippet snippet;
  Source& source = snippet.source;
  source.name = source.symbol = path.stem().string();
  source.language = Language::mlir;
  source.text = read_file(path.string(), std::size_t{1} << 20);
  std::istringstream lines(source.text);
  for (std::string line; std::getline(lines, line) && line.starts_with("//");) {
    if (const auto target = rest_after(line, "// target: ")) source.target = *parse_target(*target);
    if (const auto text = rest_after(line, "// expect: ")) snippet.expected.push_back(*text);
    if (const auto count = rest_after(line, "// registers: ")) snippet.registers = std::stoi(*count);
  }
  return snippet;
}

std::vector<std::string> snippet_names() {
  std::vector<std::string> names;
  for (const auto& file : fs::directory_iterator(TILEWRIGHT_SOURCE_DIR "/tests/unit/compile/mlir_snippets"))
    names.push_back(file.path().stem().string());
  std::ranges::sort(names);
  return names;
}

Snippet snippet(const std::string& name) {
  return read_snippet(fmt::format("{}/tests/unit/compile/mlir_snippets/{}.mlir", TILEWRIGHT_SOURCE_DIR, name));
}

class MlirCompilerTest : public testing::Test {
 protected:
  void SetUp() override {
#ifndef TILEWRIGHT_HAS_MLIR
    GTEST_SKIP() << "built without MLIR";
#endif
    options_.dump_dir = folder_.path() + "/dumps";
  }

  MlirCompiler compiler() const { return {options_, environment_}; }

  std::string error_of(const Source& source) const {
    try {
      compiler().compile(source);
    } catch (const CompileError& error) {
      return error.what();
    }
    return "it compiled";
  }

  static Source source_of(std::string text) {
    Source source;
    source.name = source.symbol = "kernel";
    source.language = Language::mlir;
    source.text = std::move(text);
    source.target = kSm90a;
    source.outputs = {.cubin = false, .ptx = true};
    return source;
  }

  ScopedFolder folder_{testing::TempDir()};
  ToolchainOptions options_;
  Environment environment_ = capture_environment();
};

class MlirSnippets : public MlirCompilerTest, public testing::WithParamInterface<std::string> {};

INSTANTIATE_TEST_SUITE_P(Mlir, MlirSnippets, testing::ValuesIn(snippet_names()),
                         [](const auto& test) { return test.param; });

TEST_P(MlirSnippets, BecomeTheExpectedPtxAndAssemble) {
  const Snippet snippet = compile::snippet(GetParam());
  if (!find_assembler(environment_).path) GTEST_SKIP() << "no assembler";
  const Artifact artifact = compiler().compile(snippet.source);
  for (const std::string& text : snippet.expected) EXPECT_THAT(artifact.ptx, HasSubstr(text));
  EXPECT_THAT(artifact.ptx, HasSubstr(".target " + snippet.source.target.name() + "\n")) << "no debug target";
  EXPECT_GT(artifact.cubin.size(), 64u);
  EXPECT_EQ(artifact.spill_bytes, 0);
  ASSERT_TRUE(artifact.registers.has_value());
  EXPECT_EQ(*artifact.registers, snippet.registers.value_or(*artifact.registers));
}

// The assembler of machines without a CUDA toolkit.
TEST_P(MlirSnippets, AssembleByNvrtcToo) {
  const Snippet snippet = compile::snippet(GetParam());
  const Artifact by_ptxas = compiler().compile(snippet.source);
  const Search nvrtc = find_nvrtc(environment_);
  if (!nvrtc.path) GTEST_SKIP() << "no NVRTC";
  Environment without_ptxas;
  without_ptxas.loader_dirs = {fs::path(*nvrtc.path).parent_path().string()};
  without_ptxas.mlir_library = find_mlir(environment_).path.value();
  without_ptxas.temporary_dir = environment_.temporary_dir;
  const MlirCompiler compiler(options_, without_ptxas);
  EXPECT_THAT(compiler.identity(), MatchesRegex("mlir [0-9a-f]{40} nvrtc [0-9a-f]{40}"));
  const Artifact artifact = compiler.compile(snippet.source);
  EXPECT_EQ(artifact.ptx, by_ptxas.ptx);
  EXPECT_GT(artifact.cubin.size(), 64u);
  EXPECT_EQ(artifact.spill_bytes, 0);
  EXPECT_EQ(artifact.registers, snippet.registers ? snippet.registers : artifact.registers) << "setmaxnreg is honoured";
}

TEST_F(MlirCompilerTest, IsChosenByTheLanguageOfTheSource) {
  std::unique_ptr<Compiler> all;
  try {
    all = make_compiler(options_);
  } catch (const ToolchainNotFound& error) {
    GTEST_SKIP() << error.what();
  }
  const Source source = snippet("vector_add").source;
  EXPECT_THAT(all->identity_for(source), AllOf(StartsWith("mlir "), Not(testing::Eq(all->identity()))));
  const Artifact artifact = all->compile(source);
  EXPECT_THAT(artifact.compiler, MatchesRegex("mlir LLVM 22\\.[0-9]+\\.[0-9]+, (ptxas|nvrtc) .*"));
  EXPECT_EQ(artifact.symbol, "vector_add");
  EXPECT_EQ(artifact.source, source_digest(source).hex());
}

TEST_F(MlirCompilerTest, LineDirectivesLeadToTheLocationsOfOperations) {
  Source source = snippet("vector_add").source;
  source.outputs.cubin = false;
  const std::string ptx = compiler().compile(source).ptx;
  std::smatch match;
  ASSERT_TRUE(std::regex_search(ptx, match, std::regex(R"(\.file\s+(\d+) "vector_add\.tw")")));
  EXPECT_THAT(ptx, HasSubstr(fmt::format(".loc\t{} 9 3\n", match[1].str())));
  EXPECT_THAT(ptx, testing::ContainsRegex("\\.file\t[0-9]+ \"vector_add\\.mlir\"")) << "operations without a location";
  source.line_info = false;
  EXPECT_THAT(compiler().compile(source).ptx, Not(HasSubstr(".loc")));
}

TEST_F(MlirCompilerTest, ErrorsHaveLineAndColumn) {
  const std::string syntax = error_of(source_of("module {\n  llvm.func @kernel() {\n    %x = llvm.bogus\n  }\n}\n"));
  EXPECT_THAT(syntax, HasSubstr("cannot compile 'kernel' for sm_90a"));
  EXPECT_THAT(syntax, HasSubstr("kernel.mlir:3:10: error: "));
  EXPECT_THAT(syntax, testing::ContainsRegex("source: .*/dumps/kernel-[0-9a-f]+\\.mlir"));
  const std::string verifier = error_of(
      source_of("module {\n  llvm.func @kernel() attributes {nvvm.kernel} {\n    nvvm.setmaxregister increase 33\n"
                "    llvm.return\n  }\n}\n"));
  EXPECT_THAT(verifier, HasSubstr("kernel.mlir:3:5: error: "));
  const std::string located = error_of(
      source_of("module {\n  llvm.func @kernel() attributes {nvvm.kernel} {\n    nvvm.setmaxregister increase 33 "
                "loc(\"kernel.tw\":12:7)\n    llvm.return\n  }\n}\n"));
  EXPECT_THAT(located, HasSubstr("kernel.tw:12:7: error: "));
  const std::string dialect = error_of(source_of("module {\n  func.func @kernel() { return }\n}\n"));
  EXPECT_THAT(dialect, HasSubstr("kernel.mlir:2:3: error: "));
}

TEST_F(MlirCompilerTest, AModuleWithoutTheKernelIsRefused) {
  EXPECT_THAT(
      error_of(source_of("module {\n  llvm.func @other() attributes {nvvm.kernel} {\n    llvm.return\n  }\n}\n")),
      HasSubstr("no llvm.func @kernel with the attribute nvvm.kernel"));
}

// LLVM would end the process when it meets such an instruction. In process, the memory that it had allocated is leaked.
TEST_F(MlirCompilerTest, AnInstructionThatTheTargetLacksIsAnError) {
  Source source = source_of(
      "module {\n  llvm.func @kernel() attributes {nvvm.kernel} {\n    nvvm.wgmma.fence.aligned\n    llvm.return\n  "
      "}\n}\n");
#ifdef __SANITIZE_ADDRESS__
  const std::vector<Backend> backends = {Backend::nvrtc};
#else
  const std::vector<Backend> backends = {Backend::nvrtc, Backend::nvrtc_in_process};
#endif
  for (const Backend backend : backends) {
    options_.backend = backend;
    source.target = kSm80;
    EXPECT_THAT(error_of(source), HasSubstr("annot select"));
    source.target = kSm90a;
    EXPECT_EQ(error_of(source), "it compiled") << "after the error";
  }
}

TEST_F(MlirCompilerTest, IgnoredSetmaxnregIsAnError) {
  if (!find_assembler(environment_).path) GTEST_SKIP() << "no assembler";
  Source source = snippet("launch_bounds").source;
  const std::string bound = ", nvvm.minctasm = 1 : i32";
  source.text.replace(source.text.find(bound), bound.size(), "");
  EXPECT_THAT(error_of(source), AllOf(HasSubstr("ignored setmaxnreg"), HasSubstr("C7508")));
}

TEST_F(MlirCompilerTest, RegisterLimitTakesEffect) {
  if (!find_assembler(environment_).path) GTEST_SKIP() << "no assembler";
  Source source = snippet("memory").source;
  source.max_registers = 16;
  EXPECT_LE(compiler().compile(source).registers.value(), 16);
}

TEST_F(MlirCompilerTest, FourThreadsGetTheSameAsOne) {
  const std::vector<std::string> names = {"wgmma", "vector_add", "fragments", "tma"};
  constexpr std::size_t kRounds = 3;
  for (const Backend backend : {Backend::nvrtc, Backend::nvrtc_in_process}) {
    options_.backend = backend;
    const MlirCompiler compiler = this->compiler();
    std::vector<Source> sources;
    std::vector<std::string> alone;
    for (const std::string& name : names) {
      sources.push_back(snippet(name).source);
      sources.back().outputs.cubin = false;
      alone.push_back(compiler.compile(sources.back()).ptx);
    }
    std::atomic<int> different = 0;
    for_each_index(names.size() * kRounds, 4, [&](std::size_t i) {
      if (compiler.compile(sources[i % names.size()]).ptx != alone[i % names.size()]) ++different;
    });
    EXPECT_EQ(different, 0);
  }
}

TEST_F(MlirCompilerTest, CubinsNeedAnAssemblerAndPtxDoesNot) {
  Environment bare;
  bare.mlir_library = find_mlir(environment_).path.value();
  bare.temporary_dir = environment_.temporary_dir;
  const MlirCompiler compiler(options_, bare);
  EXPECT_THAT(compiler.identity(), testing::EndsWith(" no assembler"));
  Source source = snippet("vector_add").source;
  try {
    compiler.compile(source);
    FAIL() << "it compiled";
  } catch (const ToolchainNotFound& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("ptxas"), HasSubstr("pip install \"cuda-toolkit[nvcc]==13.*\"")));
  }
  source.outputs.cubin = false;
  EXPECT_THAT(compiler.compile(source).ptx, HasSubstr(".entry vector_add("));
}

TEST(Mlir, SourcesHaveNoHeaders) {
  Source source;
  source.name = source.symbol = "kernel";
  source.target = kSm90a;
  source.language = Language::mlir;
  EXPECT_TRUE(validate(source));
  source.headers.push_back({"a.cuh", ""});
  EXPECT_EQ(validate(source).reason(), "a source in MLIR includes no headers, got 1 headers");
}

TEST(Mlir, PtxVersionSuitsTheTarget) {
  EXPECT_EQ(ptx_version(kSm80), 80);
  EXPECT_EQ(ptx_version(*parse_target("sm_89")), 84);
  EXPECT_EQ(ptx_version(kSm90a), 86);
  EXPECT_EQ(ptx_version(*parse_target("sm_110a")), 90);
}

TEST(Mlir, JobsSurviveTheirMessages) {
  const MlirJob job{"/lib.so", "k.mlir", std::string("text\0with", 9), "sm_90a", 86, false};
  const std::optional<MlirJob> received = decode_mlir_job(encode(job));
  ASSERT_TRUE(received.has_value());
  EXPECT_EQ(encode(*received), encode(job));
  EXPECT_EQ(decode_job(encode(job)), std::nullopt) << "not a job for NVRTC";
  MlirOutcome outcome{MlirOutcome::Status::failed, "error", "log", "ptx", "22.1.8", {1, 2, 3, 4}};
  const std::string bytes = encode(outcome);
  EXPECT_EQ(encode(decode_mlir_outcome(bytes).value()), bytes);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_EQ(decode_mlir_outcome(bytes.substr(0, size)), std::nullopt) << size;
}

TEST(PtxInCuda, RefusesWhatAnAsmStatementCannotHold) {
  const std::string head = ".version 8.6\n.target sm_90a\n.address_size 64\n";
  const std::string entry =
      ".visible .entry k(\n\t.param .align 64 .b8 k_param_0[8]\n)\n.reqntid 128\n{\n\tret;\n\n}\n";
  EXPECT_THAT(*ptx_in_cuda(head + entry, "k"), AllOf(HasSubstr("__launch_bounds__(128) k("), HasSubstr("bytes[8]")));
  EXPECT_THAT(ptx_in_cuda(head + entry, "other").reason(), HasSubstr("no entry other"));
  EXPECT_THAT(ptx_in_cuda(head + ".global .b32 x;\n" + entry, "k").reason(), HasSubstr(".global .b32 x;"));
  EXPECT_THAT(ptx_in_cuda(head + entry + entry, "k").reason(), HasSubstr("one function"));
  EXPECT_THAT(ptx_in_cuda(head + ".visible .entry k(\n\t.param .u64 k_param_0\n)\n{\n\tret;\n}\n", "k").reason(),
              HasSubstr("one struct"));
  EXPECT_THAT(
      ptx_in_cuda(head + ".visible .entry k(\n\t.param .align 64 .b8 k_param_0[8]\n)\n.pragma \"x\"\n{\n}\n", "k")
          .reason(),
      HasSubstr(".pragma"));
}

TEST(LostPerformance, AreTheLinesWithMessagesC75) {
  EXPECT_EQ(lost_performance("ptxas info : (C7508) ignored\nptxas info : Used 8 registers\n(C7600) x\n"),
            "ptxas info : (C7508) ignored\n");
}

}  // namespace
}  // namespace tilewright::compile
