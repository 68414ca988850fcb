// A validated problem and its key, which are computed once for all lookups.
#pragma once

#include "tilewright/op/problem.hpp"

namespace tilewright::engine {

class Call {
 public:
  /// @throws InvalidArgument if op::validate refuses the problem
  explicit Call(op::Problem problem);

  const op::Problem& problem() const { return problem_; }
  const op::ProblemKey& key() const { return key_; }

 private:
  op::Problem problem_;
  op::ProblemKey key_;
};

}  // namespace tilewright::engine
