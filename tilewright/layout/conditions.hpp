// Conditions of the layout algebra that are known only at launch: refused, or recorded to be checked for each call.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tilewright/base/support.hpp"
#include "tilewright/layout/number.hpp"

namespace tilewright::layout {

/// A condition on launch values under which a result of the algebra is right, and the rule that needs it.
struct LaunchCondition {
  Number condition;  // 1 if it holds
  std::string rule;  // what the algebra says if it does not hold
  bool operator==(const LaunchCondition&) const = default;
};

/// While an object exists, functions of the algebra that this thread calls record the conditions that they cannot
/// decide, instead of refusing. Objects nest: the innermost one records.
class ConditionRecorder {
 public:
  ConditionRecorder();
  ConditionRecorder(const ConditionRecorder&) = delete;
  ConditionRecorder& operator=(const ConditionRecorder&) = delete;
  ~ConditionRecorder();

  /// Each condition once, in the order of their first use.
  const std::vector<LaunchCondition>& conditions() const { return conditions_; }
  void record(LaunchCondition condition);

 private:
  ConditionRecorder* outer_;
  std::vector<LaunchCondition> conditions_;
};

/// Whether the conditions hold for the values of one call. The refusal names the condition and the values of its
/// variables. @throws InvalidArgument for a variable without a value
Support supports(const std::vector<LaunchCondition>& conditions, const Bindings& bindings);

namespace detail {
/// @throws InvalidArgument unless the condition is known to hold or is recorded
void resolve(const Number& condition, std::string rule);
}  // namespace detail

/// States that a condition must hold. `rule()` is the message if it does not.
/// @throws InvalidArgument if the condition does not hold, and if it is unknown and no ConditionRecorder exists
template <class Rule>
void require(const Number& condition, Rule&& rule) {
  if (!condition.is_static() || condition.value() == 0) [[unlikely]]
    detail::resolve(condition, rule());
}

}  // namespace tilewright::layout
