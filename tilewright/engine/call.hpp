// A problem that was found valid, and its kind: what queries and runs look up, computed once.
#pragma once

#include "tilewright/op/problem.hpp"

namespace tilewright::engine {

class Call {
 public:
  /// @throws InvalidArgument where op::validate refuses the problem
  explicit Call(op::Problem problem);

  const op::Problem& problem() const { return problem_; }
  const op::ProblemKey& key() const { return key_; }

 private:
  op::Problem problem_;
  op::ProblemKey key_;
};

}  // namespace tilewright::engine
