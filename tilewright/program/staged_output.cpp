#include "tilewright/program/staged_output.hpp"

#include <fmt/format.h>

#include "tilewright/base/error.hpp"

namespace tilewright::program {
namespace {

constexpr int kThreads = 128;
constexpr int kBufferAlignment = 1024;  // the period of the widest swizzle
/// A thread has two pairs, 8 rows apart, in every 8 columns.
constexpr int kPairsOfColumns = 2, kColumnsOfPairs = 8, kRowsOfPairs = 8;

SharedTile panel_tile(DType element, arch::Major major, int columns) {
  const arch::SwizzleMode mode =
      arch::widest_swizzle(major, bits(element), StagedOutput::kRows, columns).value_or_throw();
  return {arch::smem_tile(
              {.major = major, .mode = mode, .element_bits = bits(element), .mn = StagedOutput::kRows, .k = columns})
              .value_or_throw(),
          element};
}

}  // namespace

StagedOutput::StagedOutput(KernelBuilder& k, const Tensor& d, const StagingUse& use)
    : use_(use), tile_(panel_tile(d.element, use.major, use.columns)), copy_(k, CopyAtom::tma, d, tile_) {
  if (use.buffers < 2) throw InvalidArgument(fmt::format("a warpgroup has at least 2 buffers, got {}", use.buffers));
  if (use.panels() < 1) throw InvalidArgument(fmt::format("a tile has at least 1 panel, got {}", use.panels()));
  if (use.major == arch::Major::mn && bits(d.element) != 16)
    throw InvalidArgument(
        fmt::format("stmatrix transposes elements of 16 bits, {} has {}", name(d.element), bits(d.element)));
  memory_ = k.shared(tile_.bytes() * use.buffers * use.warpgroups, kBufferAlignment);
}

StagedWriter::StagedWriter(KernelBuilder& k, const StagedOutput& output, const RoleThread& me, const Number& warp)
    : kernel_(&k), output_(&output), me_(me), warp_(warp) {
  // If buffers divide the panels, each panel of a tile always has the same one.
  if (output.use().panels() % output.use().buffers != 0) next_ = k.cell(0, output.use().buffers);
}

void StagedWriter::begin(const Number& row, const Number& column, const std::optional<Number>& batch) {
  row_ = row;
  column_ = column;
  batch_ = batch;
  panel_ = 0;
}

Number StagedWriter::address(const Number& row, const Number& column) const {
  const Number buffer = next_ ? next_->get() : Number(panel_ % output_->use().buffers);
  return output_->buffer(warp_ / 4, buffer) + output_->tile().layout.at(row, column) * (bits(output_->element()) / 8);
}

void StagedWriter::put(const std::array<Value, 2>& elements) {
  if (output_->element() == DType::f32) {
    write_pair(elements);
    ++pair_;
  } else {
    packed_.push_back(pack(*kernel_, output_->element(), elements[0], elements[1]));
    ++pair_;
    // Four matrices have 16 columns; the last two of a panel may be alone.
    if (packed_.size() == 4 || pair_ == output_->use().columns / kColumnsOfPairs * kPairsOfColumns) {
      write_matrices();
      packed_.clear();
    }
  }
  if (pair_ == output_->use().columns / kColumnsOfPairs * kPairsOfColumns) send();
}

void StagedWriter::write_matrices() const {
  const Number lane = kernel_->thread() % 32;
  const auto matrices = static_cast<int>(packed_.size());
  const Number matrix = lane / 8 % matrices;
  const int first = (pair_ - matrices) / kPairsOfColumns * kColumnsOfPairs;
  const Number row = warp_ % 4 * 16 + matrix % 2 * kRowsOfPairs, column = matrix / 2 * kColumnsOfPairs + first;
  // A lane has the address of a line of a matrix: a row, or a column of matrices that are stored transposed.
  const bool transposes = output_->use().major == arch::Major::mn;
  const Number at = transposes ? address(row, column + lane % 8) : address(row + lane % 8, column);
  store_matrices(*kernel_, at, packed_, transposes);
}

void StagedWriter::write_pair(const std::array<Value, 2>& elements) const {
  const Number lane = kernel_->thread() % 32;
  const Number row = warp_ % 4 * 16 + lane / 4 + pair_ % kPairsOfColumns * kRowsOfPairs;
  const int first = pair_ / kPairsOfColumns * kColumnsOfPairs;
  store_shared(*kernel_, address(row, lane % 4 * 2 + first), {elements[0], elements[1]});
}

void StagedWriter::send() {
  KernelBuilder& k = *kernel_;
  const StagingUse& use = output_->use();
  fence_proxy_async(k);
  // The thread that stores also waits for the buffer of the next panel, which all threads write after the barrier.
  k.branch(equal(me_.thread, 0), [&] { tma_store_wait_read(k, use.buffers - 2); });
  named_barrier(k, use.warpgroups == 1 ? Number(use.first_barrier) : warp_ / 4 + use.first_barrier, kThreads);
  k.branch(equal(me_.thread, 0), [&] {
    const int below = panel_ / use.panels_n * StagedOutput::kRows, right = panel_ % use.panels_n * use.columns;
    std::vector<Number> at{row_ + below, column_ + right};
    if (batch_) at.push_back(*batch_);
    output_->copy().store(at, address(0, 0));
    tma_store_commit(k);
  });
  pair_ = 0;
  ++panel_;
  if (next_) {
    const Number following = next_->get() + 1;
    next_->set_within(select(equal(following, use.buffers), 0, following));
  }
}

void StagedWriter::finish() const {
  kernel_->branch(equal(me_.thread, 0), [&] { tma_store_wait_read(*kernel_, 0); });
}

}  // namespace tilewright::program
