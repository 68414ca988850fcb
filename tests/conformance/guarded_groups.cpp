#include "tests/conformance/guarded_groups.hpp"

#include <cstring>
#include <functional>
#include <utility>

#include "tests/conformance/gemm_checks.hpp"

namespace tilewright::conformance {
namespace {

/// Whether a row or column, `along`, of matrix `batch` of an operand belongs to a group.
bool is_of_a_group(const op::GemmView& view, bool is_stacked, std::int64_t batch, std::int64_t along) {
  const auto contains = [&](std::int64_t group) {
    const op::GroupInterval interval = op::group_interval(view, group);
    return along >= interval.begin && along < interval.end;
  };
  if (!is_stacked) return contains(batch);
  for (std::int64_t group = 0; group < view.batch(); ++group) {
    if (contains(group)) return true;
  }
  return false;
}

/// Calls visit(address, bytes) for each element of the operand that belongs to no group. Its rows or, if `by_columns`,
/// its columns are those that differ between the groups.
void for_each_unused(const op::GemmView& view, const op::Tensor& tensor, bool by_columns,
                     const std::function<void(char*, std::size_t)>& visit) {
  const bool is_stacked = op::is_ragged(view.groups);
  const auto size = static_cast<std::size_t>(bytes(tensor.dtype));
  const std::int64_t lines = by_columns ? tensor.columns() : tensor.rows();
  for (std::int64_t batch = 0; batch < tensor.batch(); ++batch) {
    for (std::int64_t line = 0; line < lines; ++line) {
      if (is_of_a_group(view, is_stacked, batch, line)) continue;
      for (std::int64_t other = 0; other < (by_columns ? tensor.rows() : tensor.columns()); ++other) {
        const std::int64_t offset =
            batch * tensor.batch_stride() + (by_columns ? tensor.offset(other, line) : tensor.offset(line, other));
        visit(reinterpret_cast<char*>(tensor.address) + offset * static_cast<std::int64_t>(size), size);
      }
    }
  }
}

}  // namespace

op::GroupedGemm grouped_of(const op::Gemm& capacity, op::GroupedMode mode, std::int64_t groups) {
  op::GroupedGemm grouped{.gemm = capacity, .mode = mode, .ends = op::group_ends(std::uint64_t{1} << 48, groups)};
  op::Gemm& gemm = grouped.gemm;
  for (const auto& [role, tensor] : {std::pair{'A', &gemm.a}, {'B', &gemm.b}, {'C', &gemm.c}, {'D', &gemm.d}}) {
    if (!op::is_stacked(mode, role)) *tensor = op::batched(*tensor, groups);
  }
  return grouped;
}

GuardedGroups::GuardedGroups(const std::shared_ptr<runtime::Device>& device, const op::GroupedGemm& shape,
                             std::vector<std::int32_t> ends, const Placement& placement)
    : device_(device),
      mode_(shape.mode),
      operands_(device, shape.gemm, placement),
      ends_(std::move(ends)),
      ends_buffer_(device, std::max<std::size_t>(ends_.size(), 1) * sizeof(std::int32_t)) {}

op::GroupedGemm GuardedGroups::grouped(const op::Gemm& gemm, std::uint64_t ends, op::MemoryDevice device) const {
  return {.gemm = gemm, .mode = mode_, .ends = op::group_ends(ends, static_cast<std::int64_t>(ends_.size()), device)};
}
op::GroupedGemm GuardedGroups::host() const {
  return grouped(operands_.host(), reinterpret_cast<std::uint64_t>(ends_.data()), {});
}
op::GroupedGemm GuardedGroups::on_device() const {
  return grouped(operands_.on_device(), ends_buffer_.address(), operands_.on_device().d.device);
}

void GuardedGroups::set_ends(const std::vector<std::int32_t>& ends) {
  TILEWRIGHT_CHECK(ends.size() == ends_.size(), "{} groups instead of {}", ends.size(), ends_.size());
  std::copy(ends.begin(), ends.end(), ends_.begin());
}

void GuardedGroups::upload() {
  fill_exactly(operands_.host());
  const op::GroupedGemm all = host();
  const op::GemmView view = op::view(all);
  const auto poison = [](char* at, std::size_t size) { std::memset(at, 0xff, size); };
  if (op::differs_in_m(mode_)) for_each_unused(view, all.gemm.a, false, poison);
  if (op::differs_in_n(mode_)) for_each_unused(view, all.gemm.b, true, poison);
  if (op::ends_along_k(mode_)) {
    for_each_unused(view, all.gemm.a, true, poison);
    for_each_unused(view, all.gemm.b, false, poison);
  }
  operands_.upload();
  if (!ends_.empty())
    device_->copy_in(ends_buffer_.address(), ends_.data(), ends_.size() * sizeof(std::int32_t), nullptr);
}

std::string GuardedGroups::damage() const {
  if (std::string found = operands_.damage(); !found.empty()) return found;
  std::string found;
  if (op::ends_along_k(mode_)) return found;
  const op::GroupedGemm all = host();
  for_each_unused(op::view(all), all.gemm.d, op::differs_in_n(mode_), [&](const char* at, std::size_t size) {
    for (std::size_t byte = 0; byte < size; ++byte) {
      if (static_cast<unsigned char>(at[byte]) != 0xff && found.empty()) {
        found = fmt::format("D: byte {} from the first element belongs to no group and was overwritten",
                            at - reinterpret_cast<const char*>(all.gemm.d.address));
      }
    }
  });
  return found;
}

}  // namespace tilewright::conformance
