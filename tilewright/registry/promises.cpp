#include "tilewright/registry/promises.hpp"

#include <tuple>

namespace tilewright::registry {

std::string to_string(const Promises& promises) {
  if (!promises.any()) return "none";
  return fmt::format("{}{}{}", promises.deterministic ? "deterministic" : "",
                     promises.deterministic && promises.batch_invariant ? ", " : "",
                     promises.batch_invariant ? "batch_invariant" : "");
}

Support check(const Promises& made, const Promises& required) {
  for (const auto& [name, is_required, is_made] :
       {std::tuple{"deterministic", required.deterministic, made.deterministic},
        {"batch_invariant", required.batch_invariant, made.batch_invariant}}) {
    if (!is_required || is_made) continue;
    return refuse("{} is required, but the kernel's metadata does not promise it", name).as(RefusalCode::promises);
  }
  return {};
}

}  // namespace tilewright::registry
