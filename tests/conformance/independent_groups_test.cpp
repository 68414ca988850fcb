// Groups that have extents, matrices and leading dimensions of their own, in every family, type and layout. All bytes
// outside the elements of a group are NaN before each run, and so is D.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "tests/conformance/gemm_checks.hpp"
#include "tests/conformance/sm90_design_case.hpp"
#include "tilewright/base/target_features.hpp"
#include "tilewright/op/epilogue_text.hpp"
#include "tilewright/op/fill.hpp"
#include "tilewright/op/grouped_gemm.hpp"

namespace tilewright::conformance {
namespace {

struct Extents {
  int m, n, k;
};
using Groups = std::vector<Extents>;

/// The matrices of the groups lie in larger matrices of the capacity, which are poison outside the groups' elements.
class GuardedIndependentGroups {
 public:
  /// Leading dimensions are multiples of `ld_multiple` elements, and most are larger than they need to be.
  GuardedIndependentGroups(const std::shared_ptr<runtime::Device>& device, const op::Gemm& capacity,
                           const Groups& groups, int ld_multiple, std::size_t red_zone)
      : device_(device),
        ld_multiple_(ld_multiple),
        operands_(device, capacity, {.red_zone = red_zone}),
        extents_buffer_(device, groups.size() * 3 * sizeof(std::int32_t)),
        lds_buffer_(device, groups.size() * 4 * sizeof(std::int32_t)) {
    set_extents(groups);
  }

  op::GroupedGemm host() const {
    return grouped(operands_.host(), reinterpret_cast<std::uint64_t>(extents_.data()),
                   reinterpret_cast<std::uint64_t>(lds_.data()), {});
  }
  op::GroupedGemm on_device() const {
    return grouped(operands_.on_device(), extents_buffer_.address(), lds_buffer_.address(),
                   operands_.on_device().d.device);
  }

  void set_extents(const Groups& groups) {
    extents_.clear();
    lds_.clear();
    for (const auto& [m, n, k] : groups) extents_.insert(extents_.end(), {m, n, k});
    const op::Gemm& gemm = operands_.host();
    int number = 0;
    for (const auto& [m, n, k] : groups) {
      lds_.insert(lds_.end(), {ld(gemm.a, m, k, number), ld(gemm.b, k, n, number + 1), ld(gemm.c, m, n, number + 2),
                               ld(gemm.d, m, n, number)});
      ++number;
    }
  }

  /// The problem of group `index` alone, in host memory.
  op::Gemm group(std::int64_t index) const {
    const op::GroupedGemm all = host();
    const op::GemmView view = op::view(all);
    op::Gemm gemm = all.gemm;
    gemm.a = op::matrix_of_group(view, 'A', index);
    gemm.b = op::matrix_of_group(view, 'B', index);
    gemm.c = op::matrix_of_group(view, 'C', index);
    gemm.d = op::matrix_of_group(view, 'D', index);
    for (op::NamedTensor& each : gemm.tensors) {
      each.tensor = op::slice(each.tensor, index);
      if (each.tensor.rows() != 1) each.tensor.shape[0] = gemm.m();
      if (each.tensor.columns() != 1) each.tensor.shape[1] = gemm.n();
    }
    return gemm;
  }

  void upload() {
    for (const op::Tensor* const tensor : {&operands_.host().a, &operands_.host().b, &operands_.host().c})
      op::fill_poison(*tensor);
    for (std::int64_t index = 0; index < count(); ++index) fill_exactly(group(index));
    operands_.upload();
    device_->copy_in(extents_buffer_.address(), extents_.data(), extents_.size() * sizeof(std::int32_t), nullptr);
    device_->copy_in(lds_buffer_.address(), lds_.data(), lds_.size() * sizeof(std::int32_t), nullptr);
  }
  void download() { operands_.download(); }

  /// Compares with a GEMM of each group, and what belongs to no group with poison.
  void expect_exact() const {
    EXPECT_EQ(operands_.damage(), "");
    for (std::int64_t index = 0; index < count(); ++index) {
      SCOPED_TRACE(fmt::format("group {}", index));
      const op::Gemm one = group(index);
      if (!one.is_empty()) {
        const op::Comparison comparison = op::compare(op::Problem(one));
        EXPECT_TRUE(comparison.is_exact()) << op::to_string(comparison);
      }
      expect_poison_outside(op::slice(operands_.host().d, index), one.d);
    }
    const op::Comparison comparison = op::compare(op::Problem(host()));
    EXPECT_TRUE(comparison.is_exact()) << op::to_string(comparison);
  }

 private:
  std::int64_t count() const { return static_cast<std::int64_t>(extents_.size() / 3); }

  op::GroupedGemm grouped(const op::Gemm& gemm, std::uint64_t extents, std::uint64_t lds,
                          op::MemoryDevice device) const {
    return {.gemm = gemm,
            .mode = op::GroupedMode::independent,
            .ends = op::group_extents(extents, count(), device),
            .leading_dimensions = op::group_leading_dimensions(lds, count(), device)};
  }

  std::int32_t ld(const op::Tensor& capacity, int rows, int columns, int number) const {
    const op::MatrixView view = *op::view_matrix(capacity, "operand");
    const int least = std::max(op::has_contiguous_rows(view.layout) ? columns : rows, 1);
    const int rounded = (least + ld_multiple_ - 1) / ld_multiple_ * ld_multiple_;
    return std::min(rounded + number % 3 * ld_multiple_, static_cast<int>(view.ld));
  }

  static void expect_poison_outside(const op::Tensor& capacity, const op::Tensor& group) {
    const auto size = static_cast<std::size_t>(bytes(group.dtype));
    std::vector<char> belongs(static_cast<std::size_t>(op::span_bytes(capacity)), 0);
    for (std::int64_t row = 0; row < group.rows(); ++row) {
      for (std::int64_t column = 0; column < group.columns(); ++column)
        std::memset(&belongs[static_cast<std::size_t>(group.offset(row, column)) * size], 1, size);
    }
    const auto* const at = reinterpret_cast<const unsigned char*>(capacity.address);
    std::size_t damaged = 0;
    for (std::size_t i = 0; i < belongs.size(); ++i) damaged += belongs[i] == 0 && at[i] != 0xff ? 1 : 0;
    EXPECT_EQ(damaged, 0U) << "bytes outside the group were overwritten";
  }

  std::shared_ptr<runtime::Device> device_;
  int ld_multiple_;
  GuardedProblem operands_;
  std::vector<std::int32_t> extents_, lds_;
  runtime::DeviceBuffer extents_buffer_, lds_buffer_;
};

/// Groups with tails along every mode, without rows, columns or k, and one of the capacity.
const Groups& mixed() {
  static const Groups all{{16, 24, 8}, {0, 40, 16},  {160, 160, 96}, {1, 1, 1},   {65, 33, 40}, {40, 0, 8},
                          {24, 56, 0}, {7, 129, 31}, {64, 64, 64},   {130, 5, 3}, {3, 130, 17}};
  return all;
}

class IndependentGroups : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (is_missing(GetParam())) GTEST_SKIP() << "no GPU";
  }

  engine::Engine& engine() const { return engine_of(GetParam()); }

  static op::Gemm capacity(const std::string& types, std::size_t groups, int alignment) {
    const op::Gemm one = shape_of(*bench::parse_problem(types + " m=160 n=160 k=96"));
    return with_pointer_arrays(batch_of(one, static_cast<std::int64_t>(groups)), "ABCD", alignment);
  }

  GuardedIndependentGroups guarded(const op::Gemm& capacity, const Groups& groups, int ld_multiple) const {
    const std::size_t red_zone = engine().device()->properties().emulated ? 0 : 512;
    return {engine().device(), capacity, groups, ld_multiple, red_zone};
  }

  void expect_exact_of(const registry::KernelPtr& kernel, GuardedIndependentGroups& problem) const {
    SCOPED_TRACE(kernel->name());
    problem.upload();
    engine().run(problem.on_device(), kernel);
    problem.download();
    problem.expect_exact();
  }

  bool has_wgmma() const { return has_feature(engine().device()->properties().target, TargetFeature::wgmma); }

  /// Checks the best kernel of each family. simt_gemm and sm80_gemm compute the problems of types for which they
  /// compute a dense GEMM, and sm90_gemm if it `is_loaded_by_tma`.
  void expect_exact_in_every_family(GuardedIndependentGroups& problem, bool is_loaded_by_tma = true) const {
    const auto family_of = [](const registry::KernelPtr& each) { return each->metadata().family; };
    const std::vector<registry::KernelPtr> kernels = best_of_each_family(engine(), problem.on_device());
    for (const registry::KernelPtr& kernel : without_kernels_of_sm80(engine(), kernels))
      expect_exact_of(kernel, problem);
    op::Gemm dense = problem.on_device().gemm;
    std::uint64_t address = 0;  // aligned as declared, and no more
    for (op::Tensor* const tensor : {&dense.a, &dense.b, &dense.c, &dense.d}) {
      address += std::uint64_t{1} << 40;
      *tensor = op::matrix_at(*tensor, address + static_cast<std::uint64_t>(tensor->pointer_alignment));
    }
    for (op::NamedTensor& each : dense.tensors)
      each.tensor = op::matrix_at(each.tensor, address += std::uint64_t{1} << 40);
    const std::vector<registry::KernelPtr> of_dense = best_of_each_family(engine(), dense);
    for (const std::string_view family : {"simt_gemm", "sm80_gemm"})
      EXPECT_EQ(std::ranges::count(kernels, family, family_of), std::ranges::count(of_dense, family, family_of));
    EXPECT_EQ(std::ranges::count(kernels, "sm90_gemm", family_of), has_wgmma() && is_loaded_by_tma ? 1 : 0);
  }
};

TEST_P(IndependentGroups, EveryTypeAndLayout) {
  struct Types {
    const char* text;
    bool are_loaded_by_tma;  // and read by wgmma
  };
  for (const auto& [types, are_loaded_by_tma] : {Types{"dtype=f64 a=row b=row", false},
                                                 {"dtype=f32 a=col b=row d=col", false},
                                                 {"dtype=tf32 a=row b=col", true},
                                                 {"dtype=tf32 a=col b=row d=col", false},
                                                 {"dtype=s8 a=row b=col", true},
                                                 {"dtype=e4m3 a=row b=col d=col", true},
                                                 {"dtype=bf16 a=row b=row", true},
                                                 {"dtype=f16 a=col b=row", true},
                                                 {"dtype=f16 a=row b=col d=col", true}}) {
    SCOPED_TRACE(types);
    op::Gemm gemm = capacity(types, mixed().size(), 16);
    gemm.beta = 1.0;
    const int ld_multiple = 16 / std::min({bytes(gemm.a.dtype), bytes(gemm.b.dtype), bytes(gemm.d.dtype)});
    GuardedIndependentGroups problem = guarded(gemm, mixed(), ld_multiple);
    expect_exact_in_every_family(problem, are_loaded_by_tma);
  }
}

TEST_P(IndependentGroups, DeclareTheAlignmentOfAddressesAndLeadingDimensions) {
  for (const int alignment : {2, 4, 8}) {
    SCOPED_TRACE(alignment);
    GuardedIndependentGroups problem =
        guarded(capacity("dtype=f16 a=row b=col", mixed().size(), alignment), mixed(), alignment / 2);
    expect_exact_in_every_family(problem, false);
    std::string reasons;
    for (const registry::RefusedKernel& refused : engine().explain(problem.on_device()).refused)
      reasons += refused.reason() + '\n';
    if (!has_wgmma()) continue;
    EXPECT_NE(reasons.find("independent groups must be loaded by TMA, which A is not: the alignment of its addresses "
                           "and leading dimensions must be declared as 16 bytes"),
              std::string::npos)
        << reasons;
  }
}

/// A bias and a scale of each group, a factor of each row, and a further output.
TEST_P(IndependentGroups, EpiloguesReadTensorsOfEachGroup) {
  op::Gemm gemm = capacity("dtype=f16 a=row b=col", mixed().size(), 16);
  gemm.epilogue = *op::parse_epilogue(
      "let t = acc * single(scale) + row(bias); D = t * column(factor) + row_index; before = t", DType::f32);
  constexpr std::uint64_t kApart = std::uint64_t{1} << 40;
  const auto groups = static_cast<std::int64_t>(mixed().size());
  gemm.tensors = {{"bias", op::batched(op::matrix(5 * kApart, DType::f32, 1, gemm.n()), groups)},
                  {"factor", op::batched(op::matrix(6 * kApart, DType::f32, gemm.m(), 1), groups)},
                  {"scale", op::batched(op::matrix(7 * kApart, DType::f32, 1, 1), groups)},
                  {"before", op::batched(op::matrix(8 * kApart, DType::f32, gemm.m(), gemm.n()), groups)}};
  gemm.d.dtype = gemm.c.dtype = DType::f32;
  GuardedIndependentGroups problem = guarded(gemm, mixed(), 8);
  expect_exact_in_every_family(problem);
}

/// Groups without elements of D have no results.
TEST_P(IndependentGroups, ReductionsHaveResultsForEachGroup) {
  op::Gemm gemm = capacity("dtype=f16 a=row b=col", mixed().size(), 16);
  gemm.epilogue = *op::parse_epilogue(
      "D = acc; row(sums) = sum(acc); column(most) = max(acc); single(amax) = absmax(acc)", DType::f32);
  constexpr std::uint64_t kApart = std::uint64_t{1} << 40;
  const auto groups = static_cast<std::int64_t>(mixed().size());
  gemm.tensors = {{"sums", op::batched(op::matrix(5 * kApart, DType::f32, 1, gemm.n()), groups)},
                  {"most", op::batched(op::matrix(6 * kApart, DType::f32, gemm.m(), 1), groups)},
                  {"amax", op::batched(op::matrix(7 * kApart, DType::f32, 1, 1), groups)}};
  gemm.d.dtype = gemm.c.dtype = DType::f32;
  GuardedIndependentGroups problem = guarded(gemm, mixed(), 8);
  expect_exact_in_every_family(problem);
  expect_exact_in_every_family(problem);  // with the counters that the first launches have left
}

/// More groups than a warp has lanes, and more tiles than CTAs are resident.
TEST_P(IndependentGroups, ThereMayBeManyGroupsAndTiles) {
  Groups many;
  for (int i = 0; i < 150; ++i) many.push_back({i % 17 * 8, (i * 7) % 17 * 8, i % 9 * 8});
  many.front() = {160, 160, 96};
  GuardedIndependentGroups problem = guarded(capacity("dtype=f16 a=row b=col", many.size(), 16), many, 8);
  expect_exact_in_every_family(problem);
}

/// One prepared call, whose extents and leading dimensions change in device memory, as in a replayed graph.
TEST_P(IndependentGroups, ExtentsMayChangeBetweenLaunchesOfAPreparedCall) {
  const std::vector<Groups> all{{{65, 33, 40}, {0, 0, 0}, {160, 160, 96}},
                                {{0, 0, 0}, {0, 0, 0}, {0, 0, 0}},
                                {{1, 2, 3}, {136, 8, 72}, {8, 136, 64}}};
  GuardedIndependentGroups problem = guarded(capacity("dtype=f16 a=row b=col", 3, 16), all[0], 8);
  for (const registry::KernelPtr& kernel : best_of_each_family(engine(), problem.on_device())) {
    const engine::PreparedCall prepared = engine().prepare(problem.on_device(), kernel);
    for (const Groups& groups : all) {
      SCOPED_TRACE(kernel->name());
      problem.set_extents(groups);
      problem.upload();
      prepared.run();
      problem.download();
      problem.expect_exact();
    }
  }
}

/// Host matrices of which only the groups' elements may be accessed; those of the second D lie between those of the
/// first.
TEST_P(IndependentGroups, HostProblemsAreCopiedGroupByGroup) {
  std::vector<float> a(3 * 4 + 2 * 5, 1.0F), b(4 * 6 + 5 * 3, 2.0F), d(3 * 10, 42.0F);
  const std::array<std::uint64_t, 2> as{reinterpret_cast<std::uint64_t>(a.data()),
                                        reinterpret_cast<std::uint64_t>(a.data() + 12)};
  const std::array<std::uint64_t, 2> bs{reinterpret_cast<std::uint64_t>(b.data()),
                                        reinterpret_cast<std::uint64_t>(b.data() + 24)};
  const std::array<std::uint64_t, 2> ds{reinterpret_cast<std::uint64_t>(d.data()),
                                        reinterpret_cast<std::uint64_t>(d.data() + 6)};
  const std::array<std::int32_t, 6> extents{3, 6, 4, 2, 3, 5};
  const std::array<std::int32_t, 8> lds{4, 6, 0, 10, 5, 3, 0, 10};
  const auto array = [](const std::array<std::uint64_t, 2>& addresses, std::int64_t rows, std::int64_t columns) {
    return op::pointer_array(op::matrix(std::uint64_t{0}, DType::f32, rows, columns),
                             reinterpret_cast<std::uint64_t>(addresses.data()), 2, 4);
  };
  const op::GroupedGemm grouped{
      .gemm = {.a = array(as, 3, 5), .b = array(bs, 5, 6), .c = {}, .d = array(ds, 3, 6)},
      .mode = op::GroupedMode::independent,
      .ends = op::group_extents(reinterpret_cast<std::uint64_t>(extents.data()), 2),
      .leading_dimensions = op::group_leading_dimensions(reinterpret_cast<std::uint64_t>(lds.data()), 2)};
  engine().run(grouped);
  for (std::size_t i = 0; i < d.size(); ++i) {
    const std::size_t row = i / 10, column = i % 10;
    const float expected = column < 6 ? 8.0F : column < 9 && row < 2 ? 10.0F : 42.0F;
    EXPECT_EQ(d[i], expected) << row << ", " << column;
  }
}

/// Every design of sm90_gemm has its own way to load, multiply and store. Groups have several tiles, or a part of one.
TEST_P(IndependentGroups, EveryDesignOfSm90Gemm) {
  if (!has_wgmma()) GTEST_SKIP() << "wgmma needs sm_90a";
  const Groups groups{{300, 200, 136}, {1, 1, 8},     {0, 8, 8},     {129, 300, 0},
                      {63, 65, 40},    {64, 320, 64}, {320, 64, 128}};
  for (const double beta : {0.0, 1.0}) {
    op::Gemm gemm =
        with_pointer_arrays(batch_of(shape_of(*bench::parse_problem("dtype=f16 a=row b=col m=320 n=320 k=144")),
                                     static_cast<std::int64_t>(groups.size())),
                            "ABCD", 16);
    gemm.beta = beta;
    GuardedIndependentGroups problem = guarded(gemm, groups, 8);
    const op::GemmSignature signature = op::describe(op::view(problem.on_device()));
    for (const DesignCase& tested : {DesignCase{"one warpgroup", {64, 64}, 1, 4},
                                     {"cooperative", {128, 64}, 2, 3},
                                     {"three warpgroups", {192, 64}, 3, 3},
                                     {"two instructions along M", {256, 64}, 2, 3},
                                     {"ping-pong", {64, 128}, 2, 4, {1, 1}, plan::Schedule::ping_pong},
                                     {"multicast of B", {64, 64}, 1, 4, {2, 1}},
                                     {"multicast of A", {128, 64}, 2, 4, {1, 2}},
                                     {"swapped", {64, 64}, 1, 4, {1, 1}, plan::Schedule::cooperative, true}}) {
      SCOPED_TRACE(tested.name);
      plan::Sm90GemmDesign design = design_of(tested, signature);
      design.target = engine().device()->properties().target;
      expect_exact_of(engine().make_kernel(signature, design), problem);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, IndependentGroups, testing::ValuesIn(devices()),
                         [](const auto& each) { return identifier(each.param); });

}  // namespace
}  // namespace tilewright::conformance
