// The command tilewright run --problem, on problems of several operations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/unit/engine/stencil.hpp"
#include "tilewright/compile/file.hpp"
#include "tilewright/kernels/list.hpp"
#include "tools/cli/commands.hpp"
#include "tools/cli/problem_file.hpp"
#include "tools/cli/problem_list.hpp"

namespace tilewright::cli {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

constexpr const char* kTransposedGemm = R"({
  "operation": {
    "name": "transposed_gemm",
    "operands": [{"name": "a", "shape": ["m", "k"]}, {"name": "b", "shape": ["k", "n"]},
              {"name": "out", "shape": ["n", "m"], "access": "write"}],
    "product": ["a", "b", "out"],
    "scalars": {"alpha": 1}
  },
  "extents": {"m": 33, "n": 40, "k": 17},
  "types": {"a": "f16", "b": "f16", "out": "f32"},
  "scalars": {"alpha": 2}
})";

constexpr const char* kStencil = R"({
  "operation": "stencil",
  "extents": {"h": 20, "w": 70},
  "types": {"x": "f32", "out": "f32"},
  "strides": {"x": [80, 1]},
  "scalars": {"weight": 0.125}
})";

class RunCommandTest : public testing::Test {
 protected:
  void SetUp() override { ::setenv("TILEWRIGHT_CACHE_DIR", (folder_.path() + "/cache").c_str(), 1); }
  void TearDown() override { ::unsetenv("TILEWRIGHT_CACHE_DIR"); }

  std::string file(const std::string& text) {
    const std::string path = folder_.path() + "/problem.json";
    compile::write_file(path, text);
    return path;
  }

  ExitCode run(const std::string& problem, const std::string& options, const std::string& target = "sm_80") {
    CLI::App app;
    const Command command = add_run_command(app, registry_);
    app.parse("run --device emulator:" + target + " --problem " + file(problem) + " " + options, false);
    return command.run();
  }

  ProblemFile read(const std::string& text) { return ProblemFile(file(text), *registry_); }

  std::shared_ptr<registry::Registry> registry_ = [] {
    auto registry = kernels::make_registry();
    registry->add(std::make_shared<stencil::Stencil>()).or_throw();
    registry->add(std::make_shared<stencil::StencilProvider>()).or_throw();
    return registry;
  }();
  compile::ScopedFolder folder_{testing::TempDir()};
};

TEST_F(RunCommandTest, ComputesAndVerifiesAnOperationThatTheFileDeclares) {
  EXPECT_EQ(run(kTransposedGemm, "--verify"), ExitCode::ok);
  EXPECT_EQ(run(kTransposedGemm, "--verify-candidates"), ExitCode::ok);
  EXPECT_EQ(run(kTransposedGemm, "--find --json"), ExitCode::ok);
}

TEST_F(RunCommandTest, ComputesAndVerifiesAnOperationOfTheRegistry) {
  EXPECT_EQ(run(kStencil, "--verify --json"), ExitCode::ok);
  EXPECT_EQ(run(kStencil, "--verify-candidates"), ExitCode::ok);
}

TEST_F(RunCommandTest, PrintsAComputationAsGemmDoes) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(run(kTransposedGemm, "--verify"), ExitCode::ok);
  EXPECT_THAT(testing::internal::GetCapturedStdout(),
              ContainsRegex("\nbinary    .* in .* ms\nrun       .* ms, copies"));
  testing::internal::CaptureStdout();
  EXPECT_EQ(run(kTransposedGemm, "--verify --json"), ExitCode::ok);
  const auto json = nlohmann::json::parse(testing::internal::GetCapturedStdout());
  EXPECT_TRUE(json.contains("binary") && json.contains("run_ms")) << json;
  EXPECT_EQ(json["verify"]["elements"], 40 * 33);
  EXPECT_EQ(json["rank"]["number"], 1);
  EXPECT_GT(json["rank"]["of"], 1);
  EXPECT_GT(json["rank"]["predicted_us"], 0.0);
  testing::internal::CaptureStdout();
  EXPECT_EQ(run(kStencil, ""), ExitCode::ok);
  EXPECT_THAT(testing::internal::GetCapturedStdout(), HasSubstr("number 1 of 1, without a prediction"));
  testing::internal::CaptureStdout();
  EXPECT_EQ(run(kStencil, "--json"), ExitCode::ok);
  const auto without_estimate = nlohmann::json::parse(testing::internal::GetCapturedStdout());
  EXPECT_EQ(without_estimate["rank"], (nlohmann::json{{"number", 1}, {"of", 1}, {"predicted_us", nullptr}}));
}

TEST_F(RunCommandTest, OutputsThatAreEmptyAreNotVerifiedAsCandidates) {
  const std::string file = R"({"operation": "gemm", "extents": {"m": 8, "n": 8, "k": 8, "batch": 0},
                               "types": {"A": "f16", "B": "f16", "D": "f16"}})";
  EXPECT_THROW(run(file, "--verify-candidates"), InvalidArgument);
}

TEST_F(RunCommandTest, AWrongKernelExitsWith1) {
  registry_->replace(std::make_shared<stencil::StencilProvider>(std::vector{1.0F})).or_throw();
  EXPECT_EQ(run(kStencil, "--verify"), ExitCode::wrong_result);
  EXPECT_EQ(run(kStencil, "--verify-candidates"), ExitCode::wrong_result);
}

TEST_F(RunCommandTest, ReadsAGemm) {
  const ProblemFile gemm = read(R"({"operation": "gemm", "extents": {"m": 64, "n": 32, "k": 16, "batch": 3},
                                    "types": {"A": "bf16", "B": "bf16", "C": "f32", "D": "f32"},
                                    "layouts": {"B": "column"}, "epilogue": "relu", "scalars": {"beta": 0.5}})");
  EXPECT_EQ(gemm.description(),
            "gemm A(3,64,16):bf16 B(3,16,32):(512,1,16):bf16 C(3,64,32):f32 D(3,64,32):f32, linear_combination_relu");
}

TEST_F(RunCommandTest, ComputesAndVerifiesAReductionOfSplitK) {
  const std::string file = R"({"operation": "reduce_split_k", "extents": {"m": 20, "n": 24, "parts": 5},
                               "types": {"parts": "f32", "C": "f16", "D": "f16"},
                               "layouts": {"parts": "column"}, "epilogue": "relu", "scalars": {"alpha": 2, "beta": -1}})";
  EXPECT_EQ(read(file).description(),
            "reduce_split_k parts(5,20,24):(480,1,20):f32 C(20,24):f16 D(20,24):f16, linear_combination_relu");
  EXPECT_EQ(run(file, "--verify"), ExitCode::ok);
  EXPECT_EQ(run(file, "--verify-candidates"), ExitCode::ok);
  EXPECT_EQ(run(file, "--find --json"), ExitCode::ok);
}

TEST_F(RunCommandTest, ComputesAndVerifiesALinearLayerWithNarrowWeights) {
  const auto file = [](const char* weights, const char* more) {
    return fmt::format(R"({{"operation": "weight_gemm", "extents": {{"tokens": 3, "outputs": 72, "inputs": 200}},
                            "types": {{"weights": "{}", "scales": "f16", "x": "f16", "out": "f16"}}{}}})",
                       weights, more);
  };
  EXPECT_EQ(read(file("s4", R"(, "scalars": {"group": 64})")).description(),
            "weight_gemm weights(16384):u8 scales(4,72):f16 x(3,200):f16 out(3,72):f16");
  EXPECT_EQ(read(file("e4m3", "")).description(),
            "weight_gemm weights(28672):e4m3 scales(2,72):f16 x(3,200):f16 out(3,72):f16");
  EXPECT_EQ(run(file("s4", R"(, "scalars": {"group": 64})"), "--verify", "sm_90a"), ExitCode::ok);
  EXPECT_EQ(run(file("s4", ""), "--find --json", "sm_90a"), ExitCode::ok);
}

TEST_F(RunCommandTest, ComputesAndVerifiesAContraction) {
  const std::string file = R"({"operation": "contraction", "expression": "akb,ck->abc",
                               "extents": {"a": 3, "b": 5, "c": 24, "k": 40}, "types": {"A": "f16", "B": "f16", "D": "f32"},
                               "strides": {"A": [400, 8, 1]}, "epilogue": "relu", "scalars": {"alpha": -2}})";
  EXPECT_EQ(read(file).description(),
            "contraction akb,ck->abc A(3,40,5):(400,8,1):f16 B(24,40):f16 D(3,5,24):f32, linear_combination_relu");
  EXPECT_EQ(std::get<op::Contraction>(read(file).problem()).a.stride, (op::Dims{400, 8, 1}));
  EXPECT_EQ(run(file, "--verify"), ExitCode::ok);
  EXPECT_EQ(run(file, "--find --json"), ExitCode::ok);
}

/// A wrong path is bad input, as a wrong option is.
TEST_F(RunCommandTest, FilesThatCannotBeReadAreBadInput) {
  const std::string missing = folder_.path() + "/missing.json";
  const auto expect_refused = [&](const auto& read) {
    try {
      read();
      ADD_FAILURE() << "a file that does not exist was read";
    } catch (const InvalidArgument& error) {
      EXPECT_EQ(std::string(error.what()), "cannot open " + missing + ": No such file or directory");
    }
  };
  expect_refused([&] { ProblemFile(missing, *registry_); });
  expect_refused([&] { ProblemFile::read_all(missing, *registry_); });
  expect_refused([&] { problems_of_list(missing); });
}

ExitCode contract(const std::string& options) {
  CLI::App app;
  const Command command = add_contract_command(app);
  app.parse("contract --device emulator:sm_80 " + options, false);
  return command.run();
}

TEST_F(RunCommandTest, ComputesAndVerifiesAnExpression) {
  EXPECT_EQ(contract("abk,kcd->abcd --extents a=3,b=4 --extents c=8,d=2,k=32 --dtype f16 --beta 2 --verify"),
            ExitCode::ok);
  const auto message = [](const std::string& options) {
    try {
      contract(options);
    } catch (const InvalidArgument& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_THAT(message("ak,kb --extents a=3,k=4"), HasSubstr("--extents lacks 'b', a mode of ak,kb"));
  EXPECT_THAT(message("ak,kb --extents a=3,k=4,b"), HasSubstr("--extents takes a=64,b=32,..., got 'b'"));
  EXPECT_THAT(message("ak,kb --extents a=3,k=4,b=2,a=3"), HasSubstr("--extents gives 'a' twice"));
  EXPECT_THAT(message("ak,kb --extents a=3,k=4,b=2,x=3"), HasSubstr("--extents gives 'x', which is no mode of ak,kb"));
  EXPECT_THAT(message("ak,kb->ac --extents a=3,k=4,b=2"),
              HasSubstr("the result of ak,kb->ac has the mode 'c', but no operand has it"));
  EXPECT_THAT(message("ak,kb->abc --extents a=3,k=4,b=2,c=3"), HasSubstr("c"));
  EXPECT_THAT(message("ak,kb --extents a=3,k=4,b=2 --dtype f17"),
              HasSubstr("--dtype: unknown type 'f17'; the types are f64 f32 "));
}

std::string grouped_file(const std::string& mode, const std::string& sizes) {
  return R"({"operation": "grouped_gemm", "mode": ")" + mode + R"(", "sizes": )" + sizes +
         R"(, "extents": {"m": 30, "n": 24, "k": 40}, "types": {"A": "f16", "B": "f16", "C": "f16", "D": "f32"},
            "layouts": {"A": "column"}, "epilogue": "relu", "scalars": {"alpha": 2, "beta": -1}})";
}

TEST_F(RunCommandTest, FindsKernelsForOperandsOfManyTebibytes) {
  EXPECT_EQ(run(R"({"operation": "gemm", "extents": {"m": 1048576, "n": 1048576, "k": 1048576},
                    "types": {"A": "f16", "B": "f16", "D": "f16"}})",
                "--find"),
            ExitCode::ok);
}

TEST_F(RunCommandTest, ComputesAndVerifiesGroupsOfEveryMode) {
  EXPECT_EQ(read(grouped_file("ragged_k", "[7, 0, 13]")).description(),
            "grouped_gemm ragged_k A(30,40):(1,30):f16 B(40,24):f16 C(3,30,24):f16 D(3,30,24):f32 offsets(3):s32, "
            "linear_combination_relu");
  EXPECT_EQ(
      read(grouped_file("masked_m", "[7, 0, 30]")).description(),
      "grouped_gemm masked_m A(3,30,40):(1200,1,30):f16 B(3,40,24):f16 C(3,30,24):f16 D(3,30,24):f32 counts(3):s32, "
      "linear_combination_relu");
  for (const char* const mode : {"ragged_m", "ragged_n", "ragged_k", "masked_m", "masked_n", "masked_k"})
    EXPECT_EQ(run(grouped_file(mode, "[7, 0, 13]"), "--verify"), ExitCode::ok) << mode;
}

/// Zeros, or random numbers, in place of the sizes would verify too.
TEST_F(RunCommandTest, GroupsHaveTheSizesOfTheFile) {
  ProblemFile file = read(grouped_file("ragged_n", "[7, 0, 13]"));
  file.materialize(1);
  const auto& grouped = std::get<op::GroupedGemm>(file.problem());
  const op::GemmView view = op::view(grouped);
  EXPECT_EQ(op::group_interval(view, 0), (op::GroupInterval{0, 7}));
  EXPECT_EQ(op::group_interval(view, 1), (op::GroupInterval{7, 7}));
  EXPECT_EQ(op::group_interval(view, 2), (op::GroupInterval{7, 20}));
}

TEST_F(RunCommandTest, ComputesAndVerifiesIndependentGroups) {
  const std::string text = R"({"operation": "grouped_gemm", "mode": "independent",
      "sizes": [[17, 24, 8], [0, 8, 8], [40, 16, 32], [8, 8, 0]],
      "types": {"A": "f16", "B": "f16", "D": "f32"}, "layouts": {"B": "column"}})";
  const ProblemFile problem = read(text);
  const auto& grouped = std::get<op::GroupedGemm>(problem.problem());
  EXPECT_EQ(grouped.gemm.m(), 40);
  EXPECT_EQ(grouped.expected.groups, 2);
  EXPECT_EQ(op::independent_group(op::view(grouped), 2),
            (op::IndependentGroup{.m = 40, .n = 16, .k = 32, .lda = 32, .ldb = 32, .ldc = 0, .ldd = 16}));
  EXPECT_EQ(run(text, "--verify"), ExitCode::ok);
  EXPECT_EQ(run(text, "--verify-candidates"), ExitCode::ok);
}

/// The sizes of groups must have memory before the operands do: these commands do not materialize the problem.
TEST_F(RunCommandTest, CandidatesOfGroupsHaveTheSizesOfTheFile) {
  EXPECT_EQ(run(grouped_file("ragged_m", "[7, 0, 13]"), "--verify-candidates"), ExitCode::ok);
  const ProblemFile problem = read(R"({"operation": "grouped_gemm", "mode": "masked_m", "sizes": [7, 0, 13],
      "expected_sizes": 9, "extents": {"m": 30, "n": 24, "k": 40}, "types": {"A": "f16", "B": "f16", "D": "f32"}})");
  const auto& grouped = std::get<op::GroupedGemm>(problem.problem());
  EXPECT_EQ(grouped.expected, op::expect_mean(op::GroupedMode::masked_m, 3, 9));
  EXPECT_EQ(op::group_interval(op::view(grouped), 2), (op::GroupInterval{0, 13}));
}

TEST_F(RunCommandTest, ReadsAnInterleavedGemm) {
  const ProblemFile file = read(R"({"operation": "gemm", "extents": {"m": 40, "n": 64, "k": 96},
                                    "types": {"A": "s8", "B": "s8", "D": "s8"},
                                    "layouts": {"A": "column_interleaved_32", "B": "row_interleaved_32",
                                                "D": "column_interleaved_32"}})");
  EXPECT_EQ(file.description(),
            "gemm A(40,96):column_interleaved_32:s8 B(96,64):row_interleaved_32:s8 D(40,64):column_interleaved_32:s8");
}

std::string gemm_file(const std::string& more) {
  return R"({"operation": "gemm", "extents": {"m": 24, "n": 16, "k": 8}, "types": {"A": "f32", "B": "f32", "D": "f32"}, )" +
         more + "}";
}

TEST_F(RunCommandTest, ReadsTheStridesOfAGemm) {
  const std::string text = gemm_file(R"("strides": {"A": [1, 25], "D": [20, 1]})");
  const ProblemFile file = read(text);
  const auto& gemm = std::get<op::Gemm>(file.problem());
  EXPECT_EQ(gemm.a.stride, (op::Dims{1, 25}));
  EXPECT_EQ(gemm.d.stride, (op::Dims{20, 1}));
  EXPECT_EQ(run(text, "--verify"), ExitCode::ok);
}

/// The tensors end where their memory does, so that the emulator stops a kernel that reads C in vectors beyond its last
/// row.
TEST_F(RunCommandTest, KernelsReadNothingOutsideC) {
  for (const char* const type : {"f16", "f32"}) {
    const std::string text = fmt::format(
        R"({{"operation": "gemm", "extents": {{"m": 389, "n": 141, "k": 48}},
             "types": {{"A": "f16", "B": "f16", "C": "{0}", "D": "{0}"}}, "scalars": {{"beta": -1}}}})",
        type);
    EXPECT_EQ(run(text, "--kernel sm90_gemm --verify", "sm_90a"), ExitCode::ok) << type;
  }
}

TEST_F(RunCommandTest, RefusesMalformedFilesNamingTheField) {
  const auto message = [&](const std::string& text) {
    try {
      read(text);
    } catch (const InvalidArgument& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_THAT(message("{"), HasSubstr("is not JSON: line 1, column 2: "));
  EXPECT_THAT(message(R"({"operation": "gemm",})"), HasSubstr("is not JSON: line 1, column 22: "));
  EXPECT_THAT(message(R"({"operation": "gemm", "extents": {"m": 1, "n": 2, "m": 3}})"),
              HasSubstr("an object has the field 'm' twice"));
  EXPECT_THAT(message("[]"), HasSubstr("the problem must be an object"));
  EXPECT_THAT(message("{}"), HasSubstr("the problem lacks the field 'operation'"));
  EXPECT_THAT(message(R"({"operation": "blur"})"),
              HasSubstr("unknown operation 'blur'; the operations are gemm, conv2d, contraction, grouped_gemm, "
                        "reduce_split_k, stencil, weight_gemm"));
  EXPECT_THAT(message(grouped_file("ragged_m", "[7, 24]")),
              HasSubstr("sizes are in total 31, but ragged_m has only 30"));
  EXPECT_THAT(message(grouped_file("masked_n", "[7, 25]")), HasSubstr("a size is 25, but masked_n has only 24"));
  EXPECT_THAT(message(grouped_file("ragged_m", "[7, -1]")),
              HasSubstr("sizes[1] must be an integer from 0 to 2^31 - 1, got -1"));
  EXPECT_THAT(message(grouped_file("ragged_m", "7")), HasSubstr("sizes must be a list of integers"));
  EXPECT_THAT(message(grouped_file("rows", "[7]")), HasSubstr("unknown mode 'rows': it must be ragged_m, "));
  EXPECT_THAT(message(gemm_file(R"("layouts": {"A": "col"})")),
              HasSubstr("unknown layout 'col': it must be row, column"));
  EXPECT_THAT(message(gemm_file(R"("math": "tf32")")), HasSubstr("unknown math 'tf32': it must be multiply_add, "));
  EXPECT_THAT(message(gemm_file(R"("strides": {"E": [8, 1]})")), HasSubstr("strides has no field 'E'"));
  EXPECT_THAT(message(gemm_file(R"("strides": {"A": [8]})")),
              HasSubstr("the strides of 'A' must be a list of 2 integers"));
  EXPECT_THAT(message(gemm_file(R"("layouts": {"A": "row"}, "strides": {"A": [1, 25]})")),
              HasSubstr("the layout of 'A' is row, but its strides (1,25) are those of column"));
  EXPECT_THAT(message(gemm_file(R"("epilogue": "D = acc", "scalars": {"alpha": 2})")),
              HasSubstr("the scalar alpha of 2 has no effect: the epilogue does not use 'alpha'"));
  EXPECT_THAT(message(R"({"operation": "conv2d", "pass": "bprop", "types": {"x": "f16", "w": "f16", "y": "f16"},
                          "extents": {"n": 1, "h": 8, "w": 8, "c": 8, "k": 8, "r": 1, "s": 1}})"),
              HasSubstr("unknown pass 'bprop': it must be fprop, dgrad or wgrad"));
  EXPECT_THAT(message(R"({"operation": "grouped_gemm", "mode": "independent", "sizes": [[1, 2]],
                          "types": {"A": "f16", "B": "f16", "D": "f16"}})"),
              HasSubstr("a size of independent groups must be [m, n, k], got [1,2]"));
  EXPECT_THAT(message(R"({"operation": "contraction", "expression": "ak,kb->ab", "extents": {"a": 3, "b": 4, "k": -1},
                          "types": {"A": "f16", "B": "f16", "D": "f16"}})"),
              HasSubstr("k must be an integer from 0 to 2^31 - 1, got -1"));
  EXPECT_THAT(message(R"({"operation": {"name": "mine", "operands": null, "product": ["a", "b", "c"]}})"),
              HasSubstr("operands must be a list of objects, got null"));
  EXPECT_THAT(message(R"({"operation": {"name": "mine", "operands": [7], "product": ["a", "b", "c"]}})"),
              HasSubstr("operands[0] must be an object"));
  const auto weights = [&](const char* type, const char* scalars) {
    return message(
        fmt::format(R"({{"operation": "weight_gemm", "extents": {{"tokens": 3, "outputs": 72, "inputs": 200}},
                                    "types": {{"weights": "{}", "scales": "f16", "x": "f16", "out": "f16"}},
                                    "scalars": {}}})",
                    type, scalars));
  };
  EXPECT_THAT(weights("f16", "{}"), HasSubstr("weights of a weight_gemm cannot be f16: they must be s4, s8 or e4m3"));
  EXPECT_THAT(weights("s4", R"({"alpha": 2})"), HasSubstr("the scalar of a weight_gemm is group, got 'alpha'"));
  EXPECT_THAT(weights("s4", R"({"group": -1})"), HasSubstr("group must be an integer from 0 to 2^31 - 1, got -1"));
  EXPECT_THAT(
      message(R"({"operation": "stencil", "extents": {"h": 4, "w": 4, "v": 1}, "types": {"x": "f32", "out": "f32"}})"),
      HasSubstr("extents has no field 'v'"));
  EXPECT_THAT(message(R"({"operation": "stencil", "extents": {"h": 4}, "types": {"x": "f32", "out": "f32"}})"),
              HasSubstr("extents lacks 'w', an extent of 'x'"));
  EXPECT_THAT(message(R"({"operation": "stencil", "extents": {"h": 4, "w": -1}, "types": {"x": "f32", "out": "f32"}})"),
              HasSubstr("w must be an integer from 0 to 2^31 - 1, got -1"));
  EXPECT_THAT(message(R"({"operation": "stencil", "extents": {"h": 4, "w": 4}, "types": {"x": "f33", "out": "f32"}})"),
              HasSubstr("the type of x is not an element type: 'f33'; the types are f64, f32, "));
  EXPECT_THAT(message(R"({"operation": "stencil", "extents": {"h": 4, "w": 4}, "types": {"x": "f32", "out": "f32"},
                          "colour": 1})"),
              HasSubstr("the problem has no field 'colour'"));
}

}  // namespace
}  // namespace tilewright::cli
