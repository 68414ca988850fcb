#include "tilewright/engine/prepared_call.hpp"

#include "tilewright/engine/packed_launches.hpp"
#include "tilewright/engine/sums_of_nothing.hpp"
#include "tilewright/engine/workspaces.hpp"

namespace tilewright::engine {
namespace {

/// Checks a call whose key differs from the prepared one. It is accepted if only its alignment is larger.
Support check_other_key(const op::ProblemKey& prepared, const op::ProblemKey& given, const registry::Kernel& kernel,
                        const op::Problem& problem) {
  const Support same = op::check_same_extents(prepared, given);
  return same ? kernel.supports(problem) : same;
}

}  // namespace

void PreparedCall::run(const RunOptions& options) const {
  if (is_empty_) return store_sums_of_nothing(call_->problem(), workspaces_->device(), options.stream);
  if (is_shape_only_)
    throw InvalidArgument("the call was prepared from shapes without memory: pass the tensors to run()");
  if (call_) return pack_and_launch(kernel_, *loaded_, *packed_, *workspaces_, *call_, options);
  if (launch_->workspace_bytes() == 0) return launch(*loaded_->front(), config_, *launch_, options);
  launch_with_workspace(*loaded_->front(), *workspaces_, *launch_, options);
}

void PreparedCall::run(const Call& call, const RunOptions& options) const {
  if (!(call.key() == key_)) {
    check_other_key(key_, call.key(), *kernel_, call.problem()).or_throw();
  } else if (!kernel_->depends_only_on_key()) {
    kernel_->supports(call.problem()).or_throw();
  }
  if (is_empty_) return store_sums_of_nothing(call.problem(), workspaces_->device(), options.stream);
  check_place(call.problem(), workspaces_->device()).or_throw();
  pack_and_launch(kernel_, *loaded_, *packed_, *workspaces_, call, options);
}

}  // namespace tilewright::engine
