#include "tilewright/tune/tuning_operands.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "tilewright/base/interruption.hpp"
#include "tilewright/base/rounding.hpp"
#include "tilewright/op/fill.hpp"

namespace tilewright::tune {
namespace {

constexpr std::size_t kInputRedZone = 64 << 10;
constexpr std::size_t kMaxSets = 512;              // a tuning makes some hundreds of calls
constexpr std::int64_t kRandomElements = 1048573;  // a prime, so that rows do not repeat

std::size_t span_of(const op::Tensor& tensor) { return static_cast<std::size_t>(op::span_bytes(tensor)); }

// Repeats a block of random elements, since generating every element of a large matrix would take seconds.
void fill(const op::Tensor& tensor, std::int64_t limit, std::uint64_t seed) {
  const std::int64_t low = tensor.dtype == DType::u8 ? 0 : -limit;
  const auto size = static_cast<std::size_t>(bytes(tensor.dtype));
  const std::int64_t count = std::min<std::int64_t>(kRandomElements, op::span_bytes(tensor) / bytes(tensor.dtype));
  std::vector<std::byte> block(static_cast<std::size_t>(count) * size);
  op::fill_integers(op::matrix(block.data(), tensor.dtype, 1, count), low, std::max<std::int64_t>(1, limit - 1), seed);
  auto* to = reinterpret_cast<std::byte*>(tensor.address);
  for (std::size_t left = span_of(tensor); left > 0;) {
    const std::size_t piece = std::min(left, block.size());
    check_interruption();
    std::memcpy(to, block.data(), piece);
    to += piece;
    left -= piece;
  }
}

/// The numbers of the caller's groups: random ones would be another problem.
std::vector<std::int32_t> numbers_of(const op::Tensor& from, runtime::Device& device) {
  if (from.device.kind == op::MemoryDevice::Kind::shape)
    throw InvalidArgument("tuning measures groups of the sizes that it is given, but these have no memory");
  std::vector<std::int32_t> numbers(span_of(from) / sizeof(std::int32_t));
  if (from.device.kind == op::MemoryDevice::Kind::host) {
    std::memcpy(numbers.data(), reinterpret_cast<const void*>(from.address), span_of(from));
    return numbers;
  }
  device.copy_out(numbers.data(), from.address, span_of(from), nullptr);
  device.synchronize(nullptr);
  return numbers;
}

/// Gives all independent groups the largest of their leading dimensions, and the capacity too, so that each group fits
/// where the capacity does, and no line of a group lies between two lines of the capacity. Returns the numbers of the
/// groups.
std::vector<std::int32_t> share_leading_dimensions(op::GroupedGemm& grouped, std::span<const std::int32_t> of_groups) {
  auto& gemm = grouped.gemm;
  const std::array<op::Tensor*, 4> operands{&gemm.a, &gemm.b, &gemm.c, &gemm.d};
  std::vector<std::int32_t> shared(of_groups.size());
  for (std::size_t i = 0; i < operands.size(); ++i) {
    op::Tensor& tensor = *operands[i];
    if (!tensor.is_pointer_array()) continue;  // C that the call does not read
    const op::MatrixView view = *op::view_matrix(tensor, "operand");
    const std::int64_t unit = std::max<std::int64_t>(1, tensor.pointer_alignment / bytes(tensor.dtype));
    std::int64_t ld = round_up(view.line(tensor), unit);
    for (std::size_t at = i; at < of_groups.size(); at += operands.size())
      ld = std::max(ld, std::int64_t{of_groups[at]});
    for (std::size_t at = i; at < shared.size(); at += operands.size()) shared[at] = static_cast<std::int32_t>(ld);
    const op::Tensor matrix =
        op::matrix(0, tensor.dtype, tensor.rows(), tensor.columns(), view.layout, ld, tensor.device);
    tensor = op::pointer_array(matrix, tensor.address, tensor.batch(), tensor.pointer_alignment);
  }
  return shared;
}

// The number of elements that one comparison checks; less for a large k, so that it takes about a tenth of a second.
std::int64_t sampled_elements(std::int64_t k) {
  return std::clamp((std::int64_t{1} << 21) / k, std::int64_t{16}, std::int64_t{512});
}

constexpr std::int64_t kSampledResults = 2;       // results checked per reduction; each needs a row or column of D
constexpr double kMaxProductsPerResult = 0x1p24;  // some tenths of a second

const op::EpilogueOutput* find_reduced(const op::Epilogue& epilogue, std::string_view label) {
  const auto found = std::ranges::find(epilogue.outputs, label, &op::EpilogueOutput::label);
  return found == epilogue.outputs.end() || found->reduction == op::Reduction::none ? nullptr : &*found;
}

// At most `samples` evenly spaced indices from 0 to count - 1, including both ends.
std::vector<std::int64_t> evenly_spaced(std::int64_t count, std::int64_t samples) {
  samples = std::min(count, samples);
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < samples; ++i) indices.push_back(samples == 1 ? 0 : i * (count - 1) / (samples - 1));
  return indices;
}

// The tensors that the call accesses.
std::vector<op::Tensor*> used_tensors(op::Problem& problem) {
  std::vector<op::Tensor*> used;
  for (const op::Operand& operand : op::operands(problem)) {
    if (operand.is_used) used.push_back(operand.tensor);
  }
  return used;
}

// A reduction to a single result needs all of D, which is too slow on the host if D is large.
std::string find_wrong_result_at(const op::GemmView& view, const op::EpilogueOutput& output,
                                 std::span<const op::Place> places) {
  if (output.broadcast == op::kSingle && op::operations(view) / 2.0 > kMaxProductsPerResult) return {};
  const op::Comparison found = op::compare_results_at(view, output.label, places);
  return found.is_within_bound() ? std::string() : op::describe_worst(found);
}

// `places` are positions in D; outputs that are not reduced are compared at the corresponding positions.
std::string find_wrong_element_at(const op::GemmView& view, std::span<const op::Place> places) {
  const op::Comparison found = op::compare_at(view, places);
  return found.is_within_bound() ? std::string() : op::describe_worst(found);
}

}  // namespace

TuningOperands::TuningOperands(const std::shared_ptr<runtime::Device>& device, const op::Problem& shape)
    : device_(device), on_host_(shape), on_device_(shape) {
  // The emulator reports out-of-bounds reads itself. A GPU does not, so inputs get red zones of NaN there.
  const std::size_t around_inputs = device_->properties().emulated ? 0 : kInputRedZone;
  const std::int64_t limit = op::largest_exact_input(shape);
  const std::vector<op::Operand> host = op::operands(on_host_), on_device = op::operands(on_device_);
  auto* const grouped = std::get_if<op::GroupedGemm>(&on_host_);
  std::vector<std::int32_t> lds;  // of independent groups
  if (grouped != nullptr && grouped->mode == op::GroupedMode::independent) {
    const std::vector<std::int32_t> of_groups = numbers_of(grouped->leading_dimensions, *device_);
    lds = share_leading_dimensions(*grouped, of_groups);
    share_leading_dimensions(std::get<op::GroupedGemm>(on_device_), of_groups);
  }
  for (std::size_t i = 0; i < host.size(); ++i) {
    const op::Operand& operand = host[i];
    if (!operand.is_used) continue;
    if (operand.access == op::Access::update) {
      throw InvalidArgument(
          fmt::format("'{}' is read and written: such operations cannot be tuned, since each run changes the inputs",
                      operand.name));
    }
    const bool is_output = op::is_written(operand.access);
    std::vector<GuardedTensor>& placed = is_output ? outputs_ : inputs_;
    std::vector<std::int32_t> numbers;  // of groups
    if (grouped != nullptr && operand.tensor == &grouped->ends) numbers = numbers_of(*operand.tensor, *device_);
    if (grouped != nullptr && operand.tensor == &grouped->leading_dimensions) numbers = lds;
    placed.emplace_back(std::string(operand.name), device_, *operand.tensor,
                        is_output ? output_red_zone(*operand.tensor) : around_inputs);
    *operand.tensor = placed.back().on_host();
    *on_device[i].tensor = placed.back().on_device();
    host_memory_.push_back(placed.back().strided());
    if (!numbers.empty()) {
      const op::Tensor& image = placed.back().strided();
      std::memcpy(reinterpret_cast<void*>(image.address), numbers.data(), span_of(image));
    } else if (!is_output) {
      fill(placed.back().strided(), limit, inputs_.size());
    }
  }
  restore_inputs();
}

void TuningOperands::restore_inputs() {
  for (const GuardedTensor& input : inputs_) input.upload();
  device_->synchronize(nullptr);
}

bool TuningOperands::inputs_are_intact() const { return std::ranges::all_of(inputs_, &GuardedTensor::is_intact); }

void TuningOperands::poison_outputs() {
  for (const GuardedTensor& output : outputs_) output.poison();
  device_->synchronize(nullptr);
}

void TuningOperands::fetch_outputs() {
  for (GuardedTensor& output : outputs_) output.fetch();
  device_->synchronize(nullptr);
}

std::string TuningOperands::find_out_of_bounds_write() const {
  for (const GuardedTensor& output : outputs_) {
    if (std::string stray = output.find_out_of_bounds_write(); !stray.empty()) return stray;
  }
  return {};
}

OutputImages TuningOperands::output_images() const {
  OutputImages images;
  for (const GuardedTensor& output : outputs_) images.emplace_back(output.image().begin(), output.image().end());
  return images;
}

std::string TuningOperands::find_wrong_element(const OutputImages& expected) const {
  if (const Result<op::GemmView> view = op::view(on_host_)) {
    const bool has_other_places = std::holds_alternative<op::Conv2d>(on_host_) ||
                                  std::holds_alternative<op::Contraction>(on_host_) ||
                                  std::holds_alternative<op::GroupedGemm>(on_host_);
    return has_other_places ? find_wrong_sample(*view, expected) : find_wrong_element_of_gemm(*view, expected);
  }
  if (op::has_reference(on_host_)) {
    const op::Comparison found = op::compare(on_host_);
    return found.is_within_bound() ? std::string() : op::describe_worst(found);
  }
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const std::size_t differing = outputs_[i].differing_elements(expected[i]).size();
    if (differing != 0)
      return fmt::format("{} elements of '{}' differ from those of the first kernel", differing, outputs_[i].label());
  }
  return {};
}

std::string TuningOperands::find_wrong_sample(const op::GemmView& view, const OutputImages& expected) const {
  bool differs = expected.empty();
  for (std::size_t i = 0; i < expected.size(); ++i) differs |= !outputs_[i].differing_elements(expected[i]).empty();
  if (!differs) return {};
  const op::Comparison found = op::compare(view);
  return found.is_within_bound() ? std::string() : op::describe_worst(found);
}

std::string TuningOperands::find_wrong_element_of_gemm(const op::GemmView& view, const OutputImages& expected) const {
  const std::int64_t samples = sampled_elements(view.k());
  std::vector<op::Place> places;
  if (expected.empty()) {
    const std::int64_t n = view.d_columns(), matrix = view.m() * n;
    for (const std::int64_t index : evenly_spaced(view.batch() * matrix, samples))
      places.push_back({index / matrix, index % matrix / n, index % n});
    std::string wrong = find_wrong_element_at(view, places);
    for (const op::EpilogueOutput& output : view.epilogue->outputs) {
      if (wrong.empty() && output.reduction != op::Reduction::none)
        wrong = find_wrong_result_at(view, output, std::span(places).last(1));
    }
    return wrong;
  }
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const std::vector<op::Place> differing = outputs_[i].differing_elements(expected[i]);
    const op::EpilogueOutput* const reduced = find_reduced(*view.epilogue, outputs_[i].label());
    places.clear();
    for (const std::int64_t index :
         evenly_spaced(static_cast<std::int64_t>(differing.size()), reduced == nullptr ? samples : kSampledResults))
      places.push_back(differing[static_cast<std::size_t>(index)]);
    const bool is_d = i == 0;
    for (op::Place& at : places) at.column /= is_d ? 1 : view.epilogue->columns_per_element();
    std::string wrong =
        reduced == nullptr ? find_wrong_element_at(view, places) : find_wrong_result_at(view, *reduced, places);
    if (!wrong.empty()) return wrong;
  }
  return {};
}

RotatingOperands::RotatingOperands(const std::shared_ptr<runtime::Device>& device, const TuningOperands& operands) {
  op::Problem set = operands.on_device();
  const std::vector<op::Tensor>& from = operands.host_memory();
  const std::vector<op::Tensor*> to = used_tensors(set);
  // Offsets within a set: of the elements, which have the alignment of those in `from`, and of arrays of addresses.
  std::vector<std::size_t> elements_at, addresses_at;
  std::size_t set_bytes = 0;
  const auto reserve = [&](std::size_t misalignment, std::size_t bytes) {
    const std::size_t at = set_bytes + misalignment;
    set_bytes = round_up(at + bytes, kGuardedAlignment);
    return at;
  };
  for (std::size_t operand = 0; operand < to.size(); ++operand) {
    const op::Tensor& tensor = *to[operand];
    const bool has_array = tensor.is_pointer_array();
    const auto declared = static_cast<std::size_t>(tensor.pointer_alignment);
    elements_at.push_back(reserve((has_array ? declared : tensor.address) % kGuardedAlignment, span_of(from[operand])));
    addresses_at.push_back(has_array ? reserve(0, span_of(tensor)) : 0);
  }

  const runtime::DeviceProperties& properties = device->properties();
  const std::size_t enough = 1 + ceil_div(2 * static_cast<std::size_t>(properties.l2_bytes), set_bytes);
  const std::size_t count = properties.emulated ? 1 : std::min(kMaxSets, enough);
  memory_ = runtime::DeviceBuffer(device, count * set_bytes);
  for (std::size_t i = 0; i < count; ++i) {
    op::Problem& placed = sets_.emplace_back(set);
    const std::vector<op::Tensor*> tensors = used_tensors(placed);
    const std::uint64_t begin = memory_.address() + i * set_bytes;
    for (std::size_t operand = 0; operand < tensors.size(); ++operand) {
      op::Tensor& tensor = *tensors[operand];
      const std::uint64_t elements = begin + elements_at[operand];
      device->copy_in(elements, reinterpret_cast<const void*>(from[operand].address), span_of(from[operand]), nullptr);
      tensor.address = elements;
      if (!tensor.is_pointer_array()) continue;
      tensor.address = begin + addresses_at[operand];
      const std::vector<std::uint64_t> addresses = addresses_of(from[operand], elements);
      device->copy_in(tensor.address, addresses.data(), span_of(tensor), nullptr);
      device->synchronize(nullptr);  // `addresses` ends here
    }
  }
  device->synchronize(nullptr);
}

const op::Problem& RotatingOperands::next() {
  next_ = (next_ + 1) % sets_.size();
  return sets_[next_];
}

}  // namespace tilewright::tune
