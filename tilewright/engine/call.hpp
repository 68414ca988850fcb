// A problem that was found valid, and its kind: what queries and runs look up, computed once.
#pragma once

#include "tilewright/engine/call_key.hpp"
#include "tilewright/op/gemm.hpp"

namespace tilewright::engine {

class Call {
 public:
  /// @throws InvalidArgument where op::validate refuses the arguments
  explicit Call(op::Gemm arguments);

  const op::Gemm& arguments() const { return arguments_; }
  const CallKey& key() const { return key_; }

 private:
  op::Gemm arguments_;
  CallKey key_;
};

}  // namespace tilewright::engine
