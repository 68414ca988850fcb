// The family that computes convolutions by copies of their tensors and a convolution of another family: rows of
// channels are padded to what TMA moves; rows of a window, blocks of pixels or images become channels; and groups are
// merged.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "tilewright/arch/limits.hpp"
#include "tilewright/base/power_of_two.hpp"
#include "tilewright/base/rounding.hpp"
#include "tilewright/base/tensor_map.hpp"
#include "tilewright/kernels/copying_kernel.hpp"
#include "tilewright/kernels/list.hpp"
#include "tilewright/kernels/requirements.hpp"
#include "tilewright/lower/cuda/conv_copy.hpp"
#include "tilewright/op/repacked_conv.hpp"
#include "tilewright/plan/conv_copy.hpp"
#include "tilewright/plan/sm90/row_classes.hpp"

namespace tilewright::kernels {
namespace {

constexpr const char* kName = "repacked_conv";
constexpr double kMaxPadding = 1.5;  // of a row, relative to its length
constexpr std::int64_t kFewChannels = 64, kMaxBlockColumns = 256, kMaxMergedChannels = 256;

using Method = op::ConvRepacking::Method;

Result<op::RepackedConv> repacked(const op::Conv2d& conv, const op::ConvRepacking& how, std::uint64_t workspace) {
  return op::repack(conv, how, workspace, CopyingKernel::kMaxCopiedBytes);
}

/// "x is copied from rows of 42 to rows of 48 bytes first: 31850496 bytes, estimated 12.3 us"
std::string remark(const op::ConvCopy& copy, const plan::ConvCopyPlan& plan) {
  const auto made = [&](const std::string& what) {
    return fmt::format("{} is copied {}: {} bytes, estimated {:.1f} us", copy.role, what, plan::written_bytes(copy),
                       plan::estimate_us(plan, copy));
  };
  if (const auto* const rows = std::get_if<op::RowCopy>(&copy.copy))
    return made(fmt::format("from rows of {} to rows of {} bytes first", rows->row_bytes, rows->to_bytes));
  if (const auto* const filter = std::get_if<op::FilterBlocks>(&copy.copy)) {
    if (filter->h.block * filter->w.block == 1) {
      return made(fmt::format("to {} rows of {} elements {}", filter->copied_elements() / filter->copied_inputs,
                              filter->copied_inputs, copy.role == "w" ? "at the end" : "first"));
    }
    return made(fmt::format("to the {}x{} taps of {}x{} pixels first", filter->h.copied_taps, filter->w.copied_taps,
                            filter->h.block, filter->w.block));
  }
  const auto& pixels = std::get<op::PixelBlocks>(copy.copy);
  return made(fmt::format("from rows of {} bytes at the end", pixels.from_bytes));
}

/// Microseconds that convolutions of blocks of pixels take beyond the other estimates. Steps from block to block leave
/// out pixels, which costs time where the images do not fit L2: 256x56x56x64 with 64 filters of 3x3 took 141 us on an
/// H200 and 187 on an H100 where 134 were estimated, and 1x1024x1024x128 with 3 filters 130 and 196 where 108 were
/// (2026-11-26).
double blocks_us(const op::Conv2d& conv, const op::ConvRepacking& how, const Target& target) {
  constexpr double kShare = 0.4;  // of the time in which DRAM moves the images and the output
  if (how.method != Method::pixel_blocks) return 0;
  const auto bytes_of = [](const op::Tensor& tensor) {
    const auto& shape = tensor.shape;
    return static_cast<double>(shape[0] * shape[1] * shape[2] * shape[3]) * bytes(tensor.dtype);
  };
  return kShare * (bytes_of(conv.x) + bytes_of(conv.y)) / arch::limits(target).dram_bytes_per_s * 1e6;
}

/// The factor on the estimates of all steps of images_as_channels in f32. 16 filter gradients in tf32, of 56x56x128
/// with 256 filters of 3x3 and of 28x28x512 with 256, with strides of 1 and 2, took 1.9 to 2.9 times as long as
/// estimated with 8 images, 1.6 to 2.2 with 16, and 1.2 to 1.6 with 32 and 64 (H200, 2026-11-27). With this factor, the
/// estimates choose the faster of these kernels and those of sm80_gemm for all of them.
double images_factor(const op::Conv2d& conv, const op::ConvRepacking& how) {
  constexpr double kOfWholeRows = 1.35, kShortRows = 0.5, kLineBytes = 128;
  if (how.method != Method::images_as_channels || bytes(conv.x.dtype) != sizeof(float)) return 1;
  const auto row_bytes = static_cast<double>(round_up(conv.x.shape[0], how.unit) * bytes(conv.x.dtype));
  return kOfWholeRows * std::pow(std::max(kLineBytes / row_bytes, 1.0), kShortRows);
}

class RepackedConv final : public CopyingKernel {
 public:
  RepackedConv(registry::KernelMetadata metadata, const registry::KernelPtr& inner, const op::ConvRepacking& how,
               std::vector<plan::ConvCopyPlan> functions)
      : CopyingKernel(std::move(metadata), inner, functions.size()), how_(how), functions_(std::move(functions)) {}

  std::vector<std::string> remarks(const op::Problem& problem) const override {
    const op::RepackedConv all = repacked(std::get<op::Conv2d>(problem), how_, kAnyWorkspace).value_or_throw();
    std::vector<std::string> remarks;
    for (const op::ConvCopy& copy : all_copies(all)) remarks.push_back(remark(copy, *function_of(copy)));
    remarks.push_back(fmt::format("the {} of the copies is computed by {}, estimated {:.1f} us",
                                  op::name(all.inner.pass), inner().name(),
                                  inner().estimate_us(op::Problem(all.inner))));
    return remarks;
  }

 protected:
  Support do_supports(const op::Problem& problem) const override {
    const auto* const conv = std::get_if<op::Conv2d>(&problem);
    if (conv == nullptr)
      return refuse("computes only convolutions, but the problem is a {}", op::operation_name(problem))
          .as(RefusalCode::operation);
    const Result<op::RepackedConv> all = repacked(*conv, how_, kAnyWorkspace);
    if (!all) return all.refusal();
    for (const op::ConvCopy& copy : all_copies(*all)) {
      if (function_of(copy) != functions_.end()) continue;
      return refuse("no function copies {} with the vectors that it allows", copy.role)
          .as(RefusalCode::alignment)
          .of(copy.role);
    }
    return inner().supports(op::Problem(all->inner));
  }

  CopiedProblem copied(const op::Problem& problem, std::uint64_t workspace) const override {
    op::RepackedConv all = repacked(std::get<op::Conv2d>(problem), how_, workspace).value_or_throw();
    const auto launches = [&](const std::vector<op::ConvCopy>& copies) {
      std::vector<CopiedProblem::Copy> made;
      for (const op::ConvCopy& copy : copies) {
        const auto function = function_of(copy);
        made.push_back({static_cast<std::size_t>(function - functions_.begin()) + 1, plan::launch(*function, copy),
                        plan::estimate_us(*function, copy)});
      }
      return made;
    };
    CopiedProblem result{.inner = {},
                         .before = launches(all.before),
                         .after = launches(all.after),
                         .workspace_bytes = all.workspace_bytes};
    result.inner = std::move(all.inner);
    return result;
  }

  double do_estimate_us(const op::Problem& problem) const override {
    const auto& conv = std::get<op::Conv2d>(problem);
    return images_factor(conv, how_) * CopyingKernel::do_estimate_us(problem) +
           blocks_us(conv, how_, plan::tiling(metadata().design).target);
  }

  std::string copy_text(std::size_t copy, std::string_view symbol) const override {
    return lower::cuda::lower(functions_[copy - 1], symbol);
  }

 private:
  std::vector<plan::ConvCopyPlan>::const_iterator function_of(const op::ConvCopy& copy) const {
    return std::ranges::find_if(functions_, [&](const plan::ConvCopyPlan& plan) {
      return static_cast<bool>(plan::check_arguments(plan, copy));
    });
  }

  op::ConvRepacking how_;
  std::vector<plan::ConvCopyPlan> functions_;
};

/// The units of a row of `channels` elements that are worth a try: the one to which TMA needs rows to be padded, and
/// the one that makes its rows as long as possible without padding them to more than `most` times their length.
std::vector<std::int64_t> units_of(std::int64_t channels, int element_bytes, double most) {
  const std::int64_t unit = std::max(1, kTmaAlignment / element_bytes);
  std::vector<std::int64_t> units{unit};
  const auto padded = [&](std::int64_t to) -> std::int64_t { return round_up(channels, to); };
  const auto tap_row = [&](std::int64_t to) {
    return std::gcd(padded(to), std::int64_t{op::kMaxTapRow / element_bytes});
  };
  std::int64_t best = unit;
  for (std::int64_t longer = 2 * unit; longer * element_bytes <= op::kMaxTapRow; longer *= 2) {
    const bool is_short = static_cast<double>(padded(longer)) <= most * static_cast<double>(channels);
    if (is_short && tap_row(longer) > tap_row(best)) best = longer;
  }
  if (best != unit) units.push_back(best);
  return units;
}

bool has_whole_rows(std::int64_t channels, int element_bytes) { return channels * element_bytes % op::kMaxTapRow == 0; }

/// The numbers of groups that may become one: those of few channels, up to kMaxMergedChannels together.
std::vector<std::int64_t> merged_counts(const op::Conv2d& conv) {
  const std::int64_t channels = conv.w.shape[3], filters = conv.w.shape[0] / conv.groups;
  std::vector<std::int64_t> counts;
  for (std::int64_t merged = 2; merged <= conv.groups; ++merged) {
    if (merged * std::max(channels, filters) > kMaxMergedChannels) break;
    if (conv.groups % merged == 0) counts.push_back(merged);
  }
  return counts;
}

/// Groups are merged unless each has one channel or one filter. Those of one channel and one filter have
/// depthwise_conv.
std::vector<op::ConvRepacking> repackings_of_groups(const op::Conv2d& conv) {
  std::vector<op::ConvRepacking> all;
  const std::int64_t channels = conv.w.shape[3], filters = conv.w.shape[0] / conv.groups;
  if (channels == 1 && filters == 1) return all;
  const std::vector<std::int64_t> counts =
      channels > 1 && filters > 1 ? merged_counts(conv) : std::vector<std::int64_t>();
  for (const std::int64_t merged : counts) {
    if (merged * channels * bytes(conv.w.dtype) % kTmaAlignment == 0)
      all.push_back({.method = Method::merged_groups, .merged = merged});
  }
  if (conv.pass == op::ConvPass::fprop) {
    for (const std::int64_t unit : units_of(channels, bytes(conv.x.dtype), kMaxPadding))
      all.push_back({.method = Method::padded_channels, .unit = unit});
  }
  if (conv.pass != op::ConvPass::dgrad) return all;
  // sm90_gemm has no dgrad with groups, because TMA cannot load the filter of a group from w. It computes the fprop
  // with a transposed copy of the filters.
  const auto add = [&](std::int64_t merged) {
    for (const std::int64_t unit : units_of(merged * filters, bytes(conv.y.dtype), kMaxPadding))
      all.push_back({.method = Method::pixel_blocks, .unit = unit, .block = conv.stride, .merged = merged});
  };
  add(1);
  for (const std::int64_t merged : counts) add(merged);
  return all;
}

/// The ways to repack that may help. The best is found by estimates.
std::vector<op::ConvRepacking> repackings_of(const op::Conv2d& conv) {
  if (conv.groups != 1) return repackings_of_groups(conv);
  constexpr double kMaxWindowPadding = 2.0;
  std::vector<op::ConvRepacking> all;
  const std::int64_t channels = conv.x.shape[3], filters = conv.w.shape[0];
  const int of_x = bytes(conv.x.dtype), of_y = bytes(conv.y.dtype);
  const std::int64_t rows = conv.pass == op::ConvPass::dgrad ? filters : channels;
  const int element_bytes = conv.pass == op::ConvPass::dgrad ? of_y : of_x;
  for (const std::int64_t unit : units_of(rows, element_bytes, kMaxPadding))
    all.push_back({.method = Method::padded_channels, .unit = unit});
  if (conv.pass == op::ConvPass::fprop && channels * of_x <= kTmaAlignment) {
    // The longer rows were faster for all of 40 stems, except where the shortest padding gives a power of two already
    // (H200, 2026-11-28).
    const std::int64_t row = conv.w.shape[2] * channels;
    const std::vector<std::int64_t> units = units_of(row, of_x, kMaxWindowPadding);
    const bool is_whole = is_power_of_two(round_up(row, units.front()));
    all.push_back({.method = Method::window_rows, .unit = is_whole ? units.front() : units.back()});
  }
  if (conv.pass == op::ConvPass::wgrad) {
    if (of_x == 2) return all;
    for (const std::int64_t unit : units_of(conv.x.shape[0], of_x, kMaxPadding))
      all.push_back({.method = Method::images_as_channels, .unit = unit});
    return all;
  }
  const bool is_dgrad = conv.pass == op::ConvPass::dgrad, has_stride = conv.stride[0] * conv.stride[1] != 1;
  // sm90_gemm computes these by classes of pixels, without products with zeros.
  const bool has_classes = conv.stride[0] * conv.stride[1] <= plan::kMaxRowClasses && has_whole_rows(filters, of_y) &&
                           has_whole_rows(channels, of_x);
  if (is_dgrad && has_classes && has_stride) return all;
  // Larger blocks read fewer pixels for each of the output, but have more zeros in the filter.
  constexpr std::array<std::array<std::int64_t, 2>, 8> kBlocks{
      {{1, 1}, {1, 2}, {2, 2}, {1, 4}, {2, 4}, {4, 4}, {1, 8}, {8, 8}}};
  const std::int64_t outputs = is_dgrad ? channels : filters;
  for (const auto& [h, w] : kBlocks) {
    const std::array block{is_dgrad ? conv.stride[0] * h : h, is_dgrad ? conv.stride[1] * w : w};
    if (w == 1 && !(is_dgrad && has_stride)) continue;
    if (w > 1 && (outputs > kFewChannels || block[0] * block[1] * outputs > kMaxBlockColumns)) continue;
    for (const std::int64_t unit : units_of(rows, element_bytes, kMaxPadding))
      all.push_back({.method = Method::pixel_blocks, .unit = unit, .block = block});
  }
  return all;
}

std::vector<registry::ProviderPtr> inner_families() {
  std::vector<registry::ProviderPtr> families;
  families.push_back(make_sm90_gemm_provider());
  families.push_back(make_sm80_gemm_provider());
  return families;
}

class RepackedConvProvider final : public CopyingProvider {
 public:
  RepackedConvProvider() : CopyingProvider(kName, "tensors of a convolution", inner_families()) {}

  void discover(const op::Problem& problem, const Target& target, registry::Discovery& found) const override {
    const auto* const conv = std::get_if<op::Conv2d>(&problem);
    const auto refused = [&](const std::string& name, const Refusal& refusal) {
      found.refused.push_back({name, refusal});
    };
    if (conv == nullptr)
      return refused(
          kName, refuse("repacks tensors of convolutions only, but the problem is a {}", op::operation_name(problem))
                     .as(RefusalCode::operation));
    if (conv->x.shape.rank() != 4 || conv->y.shape.rank() != 4)
      return refused(kName, refuse("repacks tensors without blocks of channels").as(RefusalCode::shape));
    const op::GemmView view = op::view(*conv);
    if (view.a.access != op::OperandAccess::im2col && view.b.access != op::OperandAccess::im2col)
      return refused(kName, refuse("the convolution is a GEMM of strided matrices").as(RefusalCode::shape));
    std::vector<EstimatedKernel> kernels;
    for (const op::ConvRepacking& how : repackings_of(*conv)) {
      Result<Candidate> candidate = candidate_of(*conv, how, target);
      if (candidate) {
        for (auto& kernel : kernels_of(*candidate, *conv, target)) kernels.push_back(std::move(kernel));
      } else {
        refused(fmt::format("{} with {}", kName, op::to_string(how)), candidate.refusal());
      }
    }
    if (kernels.empty())
      refused(kName, refuse("no copies make the convolution one that TMA or vectors can load").as(RefusalCode::design));
    offer_fastest(std::move(kernels), kMaxKernels, found);
  }

 private:
  static constexpr std::size_t kMaxKernels = 12, kKernelsOfEach = 2;

  struct Candidate {
    op::ConvRepacking how;
    op::RepackedConv repacked;
    std::vector<plan::ConvCopyPlan> functions;
    double copies_us = 0;  // and blocks_us()
  };

  static Result<Candidate> candidate_of(const op::Conv2d& conv, const op::ConvRepacking& how, const Target& target) {
    Result<op::RepackedConv> all = repacked(conv, how, CopyingKernel::kAnyWorkspace);
    if (!all) return all.refusal();
    Candidate candidate{.how = how, .repacked = *std::move(all), .functions = {}};
    candidate.copies_us = blocks_us(conv, how, target);
    for (const op::ConvCopy& copy : all_copies(candidate.repacked)) {
      const plan::ConvCopyPlan plan = plan::plan_conv_copy(copy, target);
      if (const Support fits = plan::check_arguments(plan, copy); !fits) return fits.refusal();
      candidate.copies_us += plan::estimate_us(plan, copy);
      if (std::ranges::find(candidate.functions, plan) == candidate.functions.end())
        candidate.functions.push_back(plan);
    }
    return candidate;
  }

  /// The kernels of other families that are the fastest for the convolution of the copies, each with the copies, and
  /// the estimates of all steps.
  std::vector<EstimatedKernel> kernels_of(const Candidate& candidate, const op::Conv2d& conv,
                                          const Target& target) const {
    std::vector<EstimatedKernel> ranked =
        fastest_kernels(op::Problem(candidate.repacked.inner), target, kKernelsOfEach);
    const op::GemmSignature signature = op::describe(op::view(conv));
    const std::string way = fmt::format("repacked_{}", op::to_string(candidate.how));
    std::string functions;
    for (const plan::ConvCopyPlan& plan : candidate.functions) functions += " " + plan::to_string(plan);
    for (auto& [total_us, kernel] : ranked) {
      total_us = (total_us + candidate.copies_us) * images_factor(conv, candidate.how);
      kernel = std::make_shared<RepackedConv>(metadata_with_copies(*kernel, signature, way, functions), kernel,
                                              candidate.how, candidate.functions);
    }
    return ranked;
  }
};

}  // namespace

std::unique_ptr<registry::Provider> make_repacked_conv_provider() { return std::make_unique<RepackedConvProvider>(); }

}  // namespace tilewright::kernels
