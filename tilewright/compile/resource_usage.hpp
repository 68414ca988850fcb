// What ptxas says about a kernel in its verbose log, which NVRTC and nvcc pass on.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tilewright::compile {

struct ResourceUsage {
  std::optional<int> registers;    // per thread
  std::optional<int> spill_bytes;  // stores + loads per thread
  std::int64_t static_smem_bytes = 0;
  bool operator==(const ResourceUsage&) const = default;
};

/// Reads the paragraph about `symbol` from a log of `ptxas -v`; what the log does not say stays empty.
ResourceUsage parse_resource_usage(std::string_view log, std::string_view symbol);

}  // namespace tilewright::compile
