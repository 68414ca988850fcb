// Times the libraries beside which `tilewright profile --peers` shows kernels. PyTorch calls them, so that a Python
// with PyTorch and Tilewright does it: `python3 -m tilewright.peers`.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/op/problem.hpp"

namespace tilewright::cli {

/// "torch", "cublaslt", "cudnn"
bool is_peer(std::string_view name);

/// The absolute path of the Python: `given`, or if it is empty python3 beside this program, else on PATH.
/// @throws InvalidArgument if `given` is no program, ToolchainNotFound if there is no python3
std::string find_python(const std::string& given);

struct PeerRequest {
  std::vector<std::string> peers;
  double seconds = 0.5;  // device time for each problem
  std::string python;    // not used on the emulator, where nothing is timed
};

struct ProfileWithPeers {
  std::string json;
  std::string failure;  // the messages of a Python that failed; the peers then have no times
};

/// The profile `json` with an entry for each peer in each problem: its times, or why it has none. `problems` are those
/// of the profile, in its order.
ProfileWithPeers with_peers(const std::string& json, std::span<const op::Problem> problems, const PeerRequest& request);

}  // namespace tilewright::cli
