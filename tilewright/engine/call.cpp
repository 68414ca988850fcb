#include "tilewright/engine/call.hpp"

#include <utility>

namespace tilewright::engine {
namespace {

const op::Gemm& checked(const op::Gemm& arguments) {
  op::validate(arguments).or_throw();
  return arguments;
}

}  // namespace

Call::Call(op::Gemm arguments) : arguments_(std::move(arguments)), key_(make_call_key(checked(arguments_))) {}

}  // namespace tilewright::engine
