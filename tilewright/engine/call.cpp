#include "tilewright/engine/call.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "tilewright/engine/recent.hpp"

namespace tilewright::engine {
namespace {

const op::Problem& checked(const op::Problem& problem) {
  op::validate(problem).or_throw();
  return problem;
}

/// Whether equality is exact for the number.
bool is_exact(double value) { return !std::isnan(value) && (value != 0.0 || !std::signbit(value)); }

bool has_exact_numbers(double alpha, double beta, const op::Epilogue& epilogue) {
  return is_exact(alpha) && is_exact(beta) && std::ranges::all_of(epilogue.nodes, is_exact, &op::EpilogueNode::value);
}

bool can_share(const op::Problem& problem) {
  return std::visit(
      [](const auto& each) {
        using Problem = std::decay_t<decltype(each)>;
        if constexpr (std::is_same_v<Problem, op::Custom>) {
          return false;
        } else if constexpr (std::is_same_v<Problem, op::GroupedGemm>) {
          return has_exact_numbers(each.gemm.alpha, each.gemm.beta, each.gemm.epilogue);
        } else {
          return has_exact_numbers(each.alpha, each.beta, each.epilogue);
        }
      },
      problem);
}

std::size_t hash_of_addresses(const op::Problem& problem) {
  std::uint64_t hash = problem.index();
  for (const op::ConstOperand& operand : op::operands(problem)) {
    hash = (hash ^ operand.tensor->address) * 0x9e3779b97f4a7c15ULL;
    hash ^= hash >> 32;
  }
  return hash;
}

}  // namespace

class Call::Recent final : public RecentTable<Contents> {};

Call::Call(op::Problem problem) {
  static auto* const recent = new Recent;  // never destroyed: threads may use it while the process exits
  if (!can_share(problem)) {
    op::ProblemKey key = op::key(checked(problem));
    contents_ = std::make_shared<const Contents>(std::move(problem), std::move(key));
    return;
  }
  const std::size_t hash = hash_of_addresses(problem);
  contents_ = recent->find(hash, [&](const Contents& each) { return each.problem == problem; });
  if (contents_ != nullptr) return;
  op::ProblemKey key = op::key(checked(problem));
  contents_ = std::make_shared<const Contents>(std::move(problem), std::move(key), hash, true);
  recent->insert(hash, contents_);
}

}  // namespace tilewright::engine
