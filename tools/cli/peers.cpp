#include "tools/cli/peers.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <variant>

#include "tilewright/base/interruption.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/compile/child_process.hpp"
#include "tilewright/compile/environment.hpp"
#include "tilewright/compile/file.hpp"

namespace tilewright::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 3> kPeers{"torch", "cublaslt", "cudnn"};
constexpr double kStartSeconds = 120.0;   // for the start of Python and PyTorch
constexpr double kProblemSeconds = 60.0;  // for the operands and the warm-up of a problem
constexpr std::size_t kMaxBytes = std::size_t{1} << 28;

Json tensor(const op::Tensor& tensor) {
  Json shape = Json::array(), stride = Json::array();
  for (int mode = 0; mode < tensor.shape.rank(); ++mode) {
    shape.push_back(tensor.shape[mode]);
    stride.push_back(tensor.stride[mode]);
  }
  return {{"shape", shape}, {"dtype", name(tensor.dtype)}, {"stride", stride}};
}

/// The fields that all kinds of problems share. The peers have no epilogues.
template <class Problem>
Json common_fields(const Problem& problem) {
  const bool is_plain =
      problem.alpha == 1.0 && problem.beta == 0.0 && problem.epilogue.name == op::linear_combination().name;
  return {{"accumulator_type", name(problem.accumulator)}, {"math", name(problem.math)}, {"is_plain", is_plain}};
}

/// The arguments of the problem, by the names of Python's parameters; empty for operations that no peer has.
template <class Problem>
Json arguments_of(const Problem& problem) {
  if constexpr (requires { problem.gemm; }) {  // groups
    Json fields = arguments_of(problem.gemm);
    fields["mode"] = op::name(problem.mode);
    fields["groups"] = problem.groups();
    return fields;
  } else if constexpr (requires { problem.pass; }) {  // a convolution
    Json fields = common_fields(problem);
    fields["x"] = tensor(problem.x);
    fields["w"] = tensor(problem.w);
    fields["y"] = tensor(problem.y);
    fields["kind"] = op::name(problem.pass);
    fields["stride"] = problem.stride;
    fields["padding"] = problem.padding;
    fields["dilation"] = problem.dilation;
    fields["groups"] = problem.groups;
    fields["mode"] = op::name(problem.mode);
    return fields;
  } else if constexpr (requires { problem.b; }) {  // a GEMM or a contraction
    Json fields = common_fields(problem);
    fields["A"] = tensor(problem.a);
    fields["B"] = tensor(problem.b);
    fields["out"] = tensor(problem.d);
    if constexpr (requires { problem.modes_a; })
      fields["expression"] = problem.modes_a + "," + problem.modes_b + "->" + problem.modes_d;
    return fields;
  } else {
    return Json::object();
  }
}

Json fields_of(const op::Problem& problem) {
  Json fields = std::visit([](const auto& each) { return arguments_of(each); }, problem);
  fields["operation"] = op::operation_name(problem);
  return fields;
}

std::vector<std::string> environment_of_this_process() {
  std::vector<std::string> variables;
  for (char** variable = ::environ; *variable != nullptr; ++variable) variables.emplace_back(*variable);
  return variables;
}

/// What Python answers: for each problem a list of entries. @throws Error with its messages if it fails
Json ask_python(const std::string& python, const Json& question, double timeout_s) {
  const compile::ScopedFolder folder(compile::capture_environment().temporary_dir);
  const std::string asked = folder.path() + "/question.json", answered = folder.path() + "/answer.json";
  compile::write_file(asked, question.dump());
  const compile::ChildResult result =
      compile::run_child({.arguments = {python, "-m", "tilewright.peers", asked, answered},
                          .environment = environment_of_this_process(),
                          .folder = std::filesystem::current_path().string(),
                          .timeout_s = timeout_s});
  if (result.exit_code == 0 && result.signal == 0 && !result.timed_out)
    return Json::parse(compile::read_file(answered, kMaxBytes));
  const std::string how = result.timed_out ? fmt::format("took longer than {:.0f} s", timeout_s) : "failed";
  throw Error(fmt::format(
      "--peers: {} -m tilewright.peers {}; name a Python that has PyTorch and tilewright with --python:\n{}", python,
      how, result.output));
}

/// Gives each problem an entry for each peer.
void add_absent(Json& problems, const std::vector<std::string>& peers, const std::string& reason) {
  for (Json& problem : problems) {
    for (const std::string& peer : peers) {
      problem["peers"].push_back({{"peer", peer},
                                  {"disposition", "not_run"},
                                  {"reason", reason},
                                  {"times", nullptr},
                                  {"own_median_us", nullptr},
                                  {"ratio", nullptr}});
    }
  }
}

}  // namespace

bool is_peer(std::string_view name) { return std::ranges::find(kPeers, name) != kPeers.end(); }

std::string find_python(const std::string& given) {
  if (!given.empty()) {
    if (::access(given.c_str(), X_OK) != 0)
      throw InvalidArgument(fmt::format("--python: {} is no program", printable(given)));
    return given;
  }
  const compile::Environment environment = compile::capture_environment();
  std::vector<std::string> folders = environment.code_dirs;
  folders.insert(folders.end(), environment.path.begin(), environment.path.end());
  for (const std::string& folder : folders) {
    std::string path = folder + "/python3";
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  throw ToolchainNotFound(
      "--peers needs a Python with PyTorch and tilewright, but there is no python3 beside this program or on PATH: "
      "name one with --python");
}

ProfileWithPeers with_peers(const std::string& json, std::span<const op::Problem> problems,
                            const PeerRequest& request) {
  Json profile = Json::parse(json);
  Json& profiled = profile["problems"];
  if (profile["is_emulated"].get<bool>()) {
    add_absent(profiled, request.peers,
               "peers need a GPU, and a Python with PyTorch and tilewright: on the emulator nothing is timed");
    return {profile.dump(2), ""};
  }
  Json question{{"peers", request.peers}, {"seconds", request.seconds}, {"problems", Json::array()}};
  for (std::size_t i = 0; i < profiled.size(); ++i) {
    Json fields = fields_of(problems[i]);
    fields["flops"] = profiled[i]["flops"];
    fields["bytes"] = profiled[i]["bytes"];
    question["problems"].push_back(std::move(fields));
  }
  const double of_problem = kProblemSeconds + 10.0 * request.seconds * static_cast<double>(request.peers.size() + 1);
  std::string failure;
  try {
    const Json answers =
        ask_python(request.python, question, kStartSeconds + of_problem * static_cast<double>(profiled.size()));
    for (std::size_t i = 0; i < profiled.size(); ++i) profiled[i]["peers"] = answers.at(i);
  } catch (const Interrupted&) {
    add_absent(profiled, request.peers, "interrupted");
    profile["is_complete"] = false;
  } catch (const Error& error) {
    add_absent(profiled, request.peers, "Python failed");
    failure = error.what();
  }
  return {profile.dump(2), failure};
}

}  // namespace tilewright::cli
