#include "tools/cli/epilogue_scalars.hpp"

#include <algorithm>
#include <vector>

#include "tilewright/base/error.hpp"
#include "tilewright/base/text.hpp"

namespace tilewright::cli {

void check_uses_scalar(const op::Epilogue& epilogue, const std::string& name, const std::string& given_as) {
  const std::vector<std::string> used = epilogue.scalars();
  if (std::ranges::find(used, name) != used.end()) return;
  throw InvalidArgument(
      fmt::format("{} has no effect: the epilogue does not use '{}'", printable(given_as), printable(name)));
}

void check_uses_scalars(const op::Epilogue& epilogue, double alpha, double beta,
                        const std::map<std::string, double>& scalars) {
  if (alpha != 1.0) check_uses_scalar(epilogue, "alpha", fmt::format("--alpha {}", alpha));
  if (beta != 0.0) check_uses_scalar(epilogue, "beta", fmt::format("--beta {}", beta));
  for (const auto& [name, value] : scalars) check_uses_scalar(epilogue, name, "--epilogue-scalar " + name);
}

}  // namespace tilewright::cli
