#include "cublaslt_recheck.hpp"

#include <algorithm>

namespace tilewright::bench {
namespace {

using Where = Recheck::Where;

std::string_view name(Where where) {
  switch (where) {
    case Where::same_memory:
      return "the same call again";
    case Where::fresh_memory:
      return "in fresh memory";
    case Where::without_workspace:
      return "in fresh memory without a workspace";
  }
  return "";
}

/// The recheck at a place; null if it is missing.
const Recheck* find(std::span<const Recheck> rechecks, Where where) {
  const auto found = std::ranges::find(rechecks, where, &Recheck::where);
  return found == rechecks.end() ? nullptr : &*found;
}

}  // namespace

std::string describe(const Recheck& recheck) {
  return fmt::format("{}, {}: {}{}", name(recheck.where), recheck.algorithm,
                     recheck.verdict.right ? "right" : "wrong, " + recheck.verdict.reason,
                     recheck.is_rounding ? "; the errors are those of partial sums rounded to the type of D" : "");
}

std::string conclusion(std::span<const Recheck> rechecks) {
  const auto is_right = [&](Where where) {
    const Recheck* one = find(rechecks, where);
    return one != nullptr && one->verdict.right;
  };
  const auto is_rounding = [](const Recheck& one) { return one.is_rounding; };
  if (is_right(Where::fresh_memory))
    return "the algorithm is right in fresh memory, so the harness or the operands' memory is at fault";
  if (is_right(Where::same_memory)) return "the same call is right the second time: cuBLASLt's result varies";
  if (std::ranges::any_of(rechecks, is_rounding))
    return "cuBLASLt rounds the partial sums of split-K to the type of D, which is less accurate than f32 sums";
  if (is_right(Where::without_workspace))
    return "the algorithm is wrong wherever the operands are, and the one without a workspace is right: cuBLASLt or "
           "the workspace is at fault";
  return "cuBLASLt's algorithm is wrong wherever the operands are";
}

std::vector<Recheck> recheck_cublaslt(const Algorithms& algorithms, const std::shared_ptr<runtime::Device>& device,
                                      const Problem& problem, const OperandSets& sets, RandomBlocks& random,
                                      std::uint64_t seed) {
  std::vector<Recheck> rechecks;
  const auto add = [&](Where where, const OperandSets& memory, std::size_t workspace_bytes) {
    const std::vector<Contender> found = algorithms(memory, workspace_bytes);
    if (found.empty()) return;
    Verification verification(device, problem, memory);
    const Verdict verdict = verification.judge(found.front());
    const bool is_rounding = !verdict.right && verification.is_explained_by_rounding(found.front());
    rechecks.push_back({where, found.front().detail, verdict, is_rounding});
  };
  add(Where::same_memory, sets, kWholeWorkspace);
  const OperandSets fresh(device, problem, random, seed + 1000, 1);
  add(Where::fresh_memory, fresh, kWholeWorkspace);
  add(Where::without_workspace, fresh, 0);
  return rechecks;
}

}  // namespace tilewright::bench
