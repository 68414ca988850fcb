// A validated problem and its key, which are computed once for all lookups.
#pragma once

#include <memory>

#include "tilewright/op/problem.hpp"

namespace tilewright::engine {

/// Copies share one problem. So do recent calls whose problems are equal, in all numbers and addresses: a program that
/// repeats a call neither validates it nor computes its key again.
class Call {
 public:
  /// @throws InvalidArgument if op::validate refuses the problem
  explicit Call(op::Problem problem);

  const op::Problem& problem() const { return contents_->problem; }
  const op::ProblemKey& key() const { return contents_->key; }

  /// Whether equal calls share this one's problem, while they are recent. False for user-defined operations, whose
  /// objects may change, and for numbers that compare equal to others (-0.0) or not to themselves (NaN).
  bool is_shared() const { return contents_->is_shared; }
  bool is_same(const Call& other) const { return contents_ == other.contents_; }
  /// A number by which calls that are not the same mostly differ.
  std::size_t hash() const { return contents_->hash; }

 private:
  struct Contents {
    op::Problem problem;
    op::ProblemKey key;
    std::size_t hash = 0;
    bool is_shared = false;
  };
  class Recent;

  std::shared_ptr<const Contents> contents_;
};

}  // namespace tilewright::engine
