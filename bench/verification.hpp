// Runs contenders once on poisoned outputs and judges their results.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "contender.hpp"
#include "operand_sets.hpp"
#include "verify.hpp"

namespace tilewright::bench {

/// Judges contenders of one problem on its first operand set: each against exact sums, and against the first contender
/// of the same computation that was correct.
class Verification {
 public:
  /// `sets` must outlive this object.
  Verification(std::shared_ptr<runtime::Device> device, const Problem& problem, const OperandSets& sets)
      : device_(std::move(device)), problem_(problem), sets_(sets), sources_(sets.read_sources(0)) {}
  Verification(const Verification&) = delete;
  Verification& operator=(const Verification&) = delete;

  /// An error of the call is a verdict too, with its message as the reason.
  Verdict judge(const Contender& contender);

  /// The first of the contenders whose result is right; nullopt if there is none.
  std::optional<std::pair<Contender, Verdict>> first_right(std::span<const Contender> contenders);

  /// Whether the errors of the last judged result are those of a sum of rounded partial sums: Contender::rounded_parts.
  bool is_explained_by_rounding(const Contender& contender) const;

 private:
  /// Contenders of the same computation.
  struct Peers {
    Verifier verifier;
    std::optional<Output> first;
    double rounding_of_first = 0.0;

    Verdict judge(const Output& output, double rounding);
  };

  Peers& peers_of(const Contender& contender);

  std::shared_ptr<runtime::Device> device_;
  Problem problem_;
  const OperandSets& sets_;
  Sources sources_;
  std::optional<Peers> of_product_, of_epilogue_;
  Output last_;
};

}  // namespace tilewright::bench
