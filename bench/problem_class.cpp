#include "problem_class.hpp"

#include <algorithm>
#include <array>

namespace tilewright::bench {
namespace {

constexpr std::array<ProblemClass, 10> kClasses{{
    {"large", "large aligned bf16 and f16, all layouts", 1.00, 0.95},
    {"short", "short K, one to three waves", 1.02, 0.93},
    {"decode", "decode, M of at most 128", 1.10, 0.95},
    {"unaligned", "unaligned leading dimension", 2.50, 1.50},
    {"long_k", "long K, few tiles", 1.05, 0.95},
    {"batched", "batched", 1.02, 0.90},
    {"tf32_tn", "tf32 TN", 1.02, 0.95},
    {"tf32_other", "tf32, other layouts", 1.05, 0.95},
    {"fp8", "fp8 TN", 1.00, 0.93},
    {"s8", "s8 TN", 1.20, 1.00},
}};

}  // namespace

std::span<const ProblemClass> problem_classes() { return kClasses; }

const ProblemClass* find_problem_class(std::string_view name) {
  const auto found = std::ranges::find(kClasses, name, &ProblemClass::name);
  return found == kClasses.end() ? nullptr : &*found;
}

}  // namespace tilewright::bench
