#include "tilewright/compile/resource_usage.hpp"

#include <charconv>
#include <string>

namespace tilewright::compile {
namespace {

// The integer just before `unit`: 21 in "Used 21 registers, ..." for " registers".
std::optional<int> number_before(std::string_view text, std::string_view unit) {
  const std::size_t end = text.find(unit);
  if (end == std::string_view::npos) return std::nullopt;
  std::size_t begin = end;
  while (begin > 0 && text[begin - 1] >= '0' && text[begin - 1] <= '9') --begin;
  int value = 0;
  const auto [stop, error] = std::from_chars(text.data() + begin, text.data() + end, value);
  if (error != std::errc() || stop != text.data() + end) return std::nullopt;
  return value;
}

}  // namespace

ResourceUsage parse_resource_usage(std::string_view log, std::string_view symbol) {
  constexpr std::string_view kHeading = "Compiling entry function '";
  const std::size_t begin = log.find(std::string(kHeading) + std::string(symbol) + "'");
  if (begin == std::string_view::npos) return {};
  const std::size_t next = log.find(kHeading, begin + kHeading.size());
  const std::string_view paragraph = log.substr(begin, next == std::string_view::npos ? next : next - begin);

  ResourceUsage usage;
  usage.registers = number_before(paragraph, " registers");
  const auto stores = number_before(paragraph, " bytes spill stores");
  const auto loads = number_before(paragraph, " bytes spill loads");
  if (stores && loads) usage.spill_bytes = *stores + *loads;
  usage.static_smem_bytes = number_before(paragraph, " bytes smem").value_or(0);
  return usage;
}

}  // namespace tilewright::compile
