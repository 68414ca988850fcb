#include "tilewright/engine/call.hpp"

#include <utility>

namespace tilewright::engine {
namespace {

const op::Problem& checked(const op::Problem& problem) {
  op::validate(problem).or_throw();
  return problem;
}

}  // namespace

Call::Call(op::Problem problem) : problem_(std::move(problem)), key_(op::key(checked(problem_))) {}

}  // namespace tilewright::engine
