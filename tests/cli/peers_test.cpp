// Peers of the command profile: what Python is asked, and what becomes of its answer. A script stands for Python.
#include "tools/cli/peers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "tilewright/base/error.hpp"
#include "tilewright/compile/file.hpp"
#include "tilewright/kernels/list.hpp"
#include "tools/cli/problem_file.hpp"

namespace tilewright::cli {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

class PeersTest : public testing::Test {
 protected:
  /// A program that is called as `python -m tilewright.peers QUESTION ANSWER`.
  std::string python(const std::string& commands) const {
    const std::string path = folder_.path() + "/python";
    compile::write_file(path, "#!/bin/sh\nset -e\n" + commands + "\n");
    ::chmod(path.c_str(), 0700);
    return path;
  }

  /// What Python is asked about the problem.
  Json question(const std::string& problem, const std::vector<std::string>& peers = {"torch"}) const {
    const ProblemFile file(ProblemFile::Text{problem}, *kernels::make_registry());
    const std::string saved = folder_.path() + "/question";
    const std::string script = python("test \"$1 $2\" = '-m tilewright.peers'; cp \"$3\" " + saved +
                                      "; echo '[[{\"peer\": \"torch\"}]]' > \"$4\"");
    const ProfileWithPeers found =
        with_peers(kOnGpu, std::span(&file.problem(), 1), {.peers = peers, .seconds = 0.25, .python = script});
    EXPECT_EQ(found.failure, "");
    EXPECT_EQ(Json::parse(found.json)["problems"][0]["peers"], Json::parse(R"([{"peer": "torch"}])"));
    return Json::parse(compile::read_file(saved, 1 << 20));
  }

  static constexpr const char* kOnGpu =
      R"({"is_emulated": false, "is_complete": true, "problems": [{"flops": 2e6, "bytes": 1e3}]})";
  compile::ScopedFolder folder_{"/tmp"};
};

TEST_F(PeersTest, PythonIsAskedAboutGemms) {
  const Json asked = question(R"({"operation": "gemm", "extents": {"m": 6, "n": 4, "k": 8}, "layouts": {"B": "column"},
                                  "types": {"A": "f16", "B": "f16", "D": "f16"}})");
  EXPECT_EQ(asked["peers"], Json::array({"torch"}));
  EXPECT_EQ(asked["seconds"], 0.25);
  const Json& problem = asked["problems"][0];
  EXPECT_EQ(problem["operation"], "gemm");
  EXPECT_EQ(problem["B"], Json::parse(R"({"shape": [8, 4], "dtype": "f16", "stride": [1, 8]})"));
  EXPECT_EQ(problem["out"], Json::parse(R"({"shape": [6, 4], "dtype": "f16", "stride": [4, 1]})"));
  EXPECT_EQ(problem["is_plain"], true);
  EXPECT_EQ(problem["accumulator_type"], "f32");
  EXPECT_EQ(problem["flops"], 2e6);
}

TEST_F(PeersTest, PythonIsAskedAboutTheOtherOperations) {
  const Json conv = question(R"({"operation": "conv2d", "pass": "dgrad", "stride": 2, "padding": 1,
                                 "extents": {"n": 1, "h": 8, "w": 8, "c": 4, "k": 8, "r": 3, "s": 3},
                                 "types": {"x": "f16", "w": "f16", "y": "f16"}})")["problems"][0];
  EXPECT_EQ(conv["kind"], "dgrad");
  EXPECT_EQ(conv["stride"], Json::array({2, 2}));
  EXPECT_EQ(conv["mode"], "cross_correlation");
  const Json contraction = question(R"({"operation": "contraction", "expression": "ak,kb->ab",
                                        "extents": {"a": 4, "b": 5, "k": 6},
                                        "types": {"A": "f32", "B": "f32", "D": "f32"}})")["problems"][0];
  EXPECT_EQ(contraction["expression"], "ak,kb->ab");
  const Json grouped = question(R"({"operation": "grouped_gemm", "mode": "ragged_m", "sizes": [3, 5],
                                    "extents": {"m": 8, "n": 8, "k": 8},
                                    "types": {"A": "f16", "B": "f16", "D": "f16"}})")["problems"][0];
  EXPECT_EQ(grouped["mode"], "ragged_m");
  EXPECT_EQ(grouped["groups"], 2);
  const Json relu = question(R"({"operation": "gemm", "extents": {"m": 6, "n": 4, "k": 8}, "epilogue": "relu",
                                 "types": {"A": "f16", "B": "f16", "D": "f16"}})")["problems"][0];
  EXPECT_EQ(relu["is_plain"], false);
}

TEST_F(PeersTest, AFailureOfPythonKeepsTheProfile) {
  const std::string script = python("echo 'No module named torch'; exit 1");
  const ProblemFile file(ProblemFile::Text{R"({"operation": "gemm", "extents": {"m": 6, "n": 4, "k": 8},
                                               "types": {"A": "f16", "B": "f16", "D": "f16"}})"},
                         *kernels::make_registry());
  const ProfileWithPeers found =
      with_peers(kOnGpu, std::span(&file.problem(), 1), {.peers = {"torch", "cudnn"}, .python = script});
  EXPECT_THAT(found.failure, HasSubstr("No module named torch"));
  EXPECT_THAT(found.failure, HasSubstr("name a Python that has PyTorch and tilewright with --python"));
  const Json peers = Json::parse(found.json)["problems"][0]["peers"];
  ASSERT_EQ(peers.size(), 2U);
  EXPECT_EQ(peers[1]["disposition"], "not_run");
}

TEST_F(PeersTest, OnTheEmulatorPeersSayWhatTheyNeed) {
  const ProfileWithPeers found =
      with_peers(R"({"is_emulated": true, "problems": [{}]})", {}, {.peers = {"cublaslt"}, .python = ""});
  const Json peer = Json::parse(found.json)["problems"][0]["peers"][0];
  EXPECT_EQ(peer["peer"], "cublaslt");
  EXPECT_THAT(peer["reason"].get<std::string>(), HasSubstr("peers need a GPU, and a Python with PyTorch"));
}

TEST_F(PeersTest, ThePythonIsAProgram) {
  EXPECT_EQ(find_python("/bin/sh"), "/bin/sh");
  EXPECT_THROW(find_python(folder_.path() + "/missing"), InvalidArgument);
  EXPECT_TRUE(is_peer("cudnn"));
  EXPECT_FALSE(is_peer("cublas"));
}

}  // namespace
}  // namespace tilewright::cli
