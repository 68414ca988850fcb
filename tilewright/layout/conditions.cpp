// Recording and checking of conditions on launch values.
#include "tilewright/layout/conditions.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/base/error.hpp"

namespace tilewright::layout {
namespace {

ConditionRecorder*& innermost() {
  static thread_local ConditionRecorder* recorder = nullptr;
  return recorder;
}

/// "m", "n": the variables of an expression in the order of the scope.
void collect_variables(const Number& number, std::vector<Number>& variables) {
  if (number.is_static()) return;
  const NumberNode& node = *number.node();
  if (node.op != NumberOp::variable) {
    for (const Number& operand : {node.a, node.b, node.c}) collect_variables(operand, variables);
  } else if (std::find(variables.begin(), variables.end(), number) == variables.end()) {
    variables.push_back(number);
  }
}

}  // namespace

ConditionRecorder::ConditionRecorder() : outer_(std::exchange(innermost(), this)) {}
ConditionRecorder::~ConditionRecorder() { innermost() = outer_; }

void ConditionRecorder::record(LaunchCondition condition) {
  const auto same = [&](const LaunchCondition& known) { return known.condition == condition.condition; };
  if (std::none_of(conditions_.begin(), conditions_.end(), same)) conditions_.push_back(std::move(condition));
}

Support supports(const std::vector<LaunchCondition>& conditions, const Bindings& bindings) {
  for (const LaunchCondition& required : conditions) {
    if (evaluate(required.condition, bindings) != 0) continue;
    std::vector<Number> variables;
    collect_variables(required.condition, variables);
    std::vector<std::int64_t> values;
    std::string text;
    for (const Number& variable : variables) {
      values.push_back(bindings[*variable.node()]);
      text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", to_string(variable), values.back());
    }
    Refusal refusal{fmt::format("{} does not hold for {}: {}", to_string(required.condition), text, required.rule),
                    RefusalCode::shape};
    refusal.numbers = std::move(values);
    return refusal;
  }
  return {};
}

void detail::resolve(const Number& condition, std::string rule) {
  const Decision decision = decide(condition);
  if (decision == Decision::yes) return;
  if (decision == Decision::no) throw InvalidArgument(rule);
  if (condition.kind() > NumberKind::launch)
    throw InvalidArgument(fmt::format("{} (whether {} is known only in the kernel)", rule, to_string(condition)));
  if (innermost() == nullptr)
    throw InvalidArgument(
        fmt::format("{} (whether {} is known only at launch: declare divisors and ranges that decide it, or record it "
                    "with a ConditionRecorder)",
                    rule, to_string(condition)));
  innermost()->record({condition, std::move(rule)});
}

}  // namespace tilewright::layout
