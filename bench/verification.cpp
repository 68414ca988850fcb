#include "verification.hpp"

#include <algorithm>
#include <utility>

namespace tilewright::bench {

Verdict Verification::Peers::judge(const Output& output, double rounding) {
  const Verdict verdict = verifier.against_exact(output, rounding);
  if (!verdict.right) return verdict;
  if (!first) {
    first = output;
    rounding_of_first = rounding;
    return verdict;
  }
  const std::string disagreement = verifier.disagreement(output, *first, std::max(rounding, rounding_of_first));
  return disagreement.empty() ? verdict : Verdict{.right = false, .reason = disagreement};
}

Verification::Peers& Verification::peers_of(const Contender& contender) {
  std::optional<Peers>& peers = contender.applies_epilogue ? of_epilogue_ : of_product_;
  if (!peers)
    peers.emplace(Peers{.verifier = Verifier(contender.applies_epilogue ? problem_ : plain(problem_), sources_),
                        .first = std::nullopt});
  return *peers;
}

Verdict Verification::judge(const Contender& contender) {
  Verdict verdict;
  try {
    sets_.poison_output(0);
    contender.run(0, nullptr);
    device_->synchronize(nullptr);
    last_ = contender.applies_epilogue ? sets_.read_output(0) : sets_.read_plain(0);
    verdict = peers_of(contender).judge(last_, contender.rounding);
    if (verdict.right && sets_.has_overrun(0)) {
      verdict.right = false;
      verdict.reason = "memory behind the last element of D was written";
    }
  } catch (const Error& error) {
    verdict.reason = error.what();
  }
  return verdict;
}

std::optional<std::pair<Contender, Verdict>> Verification::first_right(std::span<const Contender> contenders) {
  for (const Contender& contender : contenders) {
    const Verdict verdict = judge(contender);
    if (verdict.right) return std::pair(contender, verdict);
  }
  return {};
}

bool Verification::is_explained_by_rounding(const Contender& contender) const {
  const std::optional<Peers>& peers = contender.applies_epilogue ? of_epilogue_ : of_product_;
  return peers && contender.rounded_parts > 1 && !contender.applies_epilogue && !last_.bytes.empty() &&
         peers->verifier.is_sum_of_rounded_parts(last_, contender.rounded_parts);
}

}  // namespace tilewright::bench
