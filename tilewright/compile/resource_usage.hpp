// The resource usage of a kernel that ptxas -v prints; NVRTC and nvcc include it in their logs.
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

/// Parses the paragraph about `symbol` in a log of `ptxas -v`. Numbers that are not in the log stay empty or 0.
ResourceUsage parse_resource_usage(std::string_view log, std::string_view symbol);

}  // namespace tilewright::compile
