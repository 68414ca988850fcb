// Grouped GEMMs of every family, mode and pattern of sizes. D is NaN before each run, and so are the inputs that belong
// to no group.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/conformance/gemm_checks.hpp"
#include "tests/conformance/guarded_groups.hpp"
#include "tests/conformance/sm90_design_case.hpp"
#include "tilewright/base/target_features.hpp"
#include "tilewright/op/epilogue_text.hpp"
#include "tilewright/plan/sm90/gemm.hpp"

namespace tilewright::conformance {
namespace {

using Mode = op::GroupedMode;
using Sizes = std::vector<std::int32_t>;

/// The ends of groups of these sizes.
Sizes ends_of(Mode mode, const Sizes& sizes) {
  Sizes ends = sizes;
  if (op::is_ragged(mode)) std::partial_sum(sizes.begin(), sizes.end(), ends.begin());
  return ends;
}

struct Pattern {
  const char* name;
  Sizes sizes;
};

/// Sums are at most 160, and sizes at most 96.
const std::vector<Pattern>& patterns() {
  static const std::vector<Pattern> all{
      {"uniform", {40, 40, 40, 40}},
      {"tails of 1 to 7 rows", {65, 1, 34, 7, 3, 5, 2, 6, 4, 33}},
      {"empty groups", {0, 0, 70, 0, 1, 0, 0, 64, 0}},
      {"one group", {77}},
      {"one group of many, and rows that belong to none", {0, 0, 0, 71, 0, 0}},
      {"all empty", {0, 0, 0}},
      {"zipf", {64, 32, 21, 16, 12, 8, 4, 2, 1, 0}},
  };
  return all;
}

constexpr std::int64_t kStack = 160, kMost = 96;

constexpr std::array kModes{Mode::ragged_m, Mode::ragged_n, Mode::ragged_k,
                            Mode::masked_m, Mode::masked_n, Mode::masked_k};

/// A problem of 16-bit types that every tensor-core family computes in the mode.
const char* half_problem(Mode mode) {
  return mode == Mode::ragged_k ? "dtype=f16 a=col b=row" : "dtype=f16 a=row b=col";
}

op::Gemm capacity(const std::string& types, Mode mode, std::int64_t along) {
  const auto extent = [&](bool differs, std::int64_t other) { return differs ? along : other; };
  return shape_of(
      *bench::parse_problem(fmt::format("{} m={} n={} k={}", types, extent(op::differs_in_m(mode), 40),
                                        extent(op::differs_in_n(mode), 48), extent(op::ends_along_k(mode), 64))));
}

/// A single matrix of f16, of which every extent may be 0.
op::Gemm half_gemm(std::int64_t m, std::int64_t n, std::int64_t k) {
  constexpr std::uint64_t kApart = std::uint64_t{1} << 40;
  op::Gemm gemm;
  gemm.a = op::matrix(kApart, DType::f16, m, k);
  gemm.b = op::matrix(2 * kApart, DType::f16, k, n);
  gemm.c = op::matrix(3 * kApart, DType::f16, m, n);
  gemm.d = op::matrix(4 * kApart, DType::f16, m, n);
  return gemm;
}

/// Replaces the epilogue by reductions along every mode. D is f32.
void reduce(op::GroupedGemm& grouped) {
  constexpr std::uint64_t kApart = std::uint64_t{1} << 40;
  op::Gemm& gemm = grouped.gemm;
  gemm.epilogue = *op::parse_epilogue(
      "D = acc; row(sums) = sum(acc); column(most) = max(acc); single(amax) = absmax(acc)", DType::f32);
  const op::Tensor sums = op::matrix(5 * kApart, DType::f32, 1, gemm.n()),
                   most = op::matrix(6 * kApart, DType::f32, gemm.m(), 1),
                   amax = op::matrix(7 * kApart, DType::f32, 1, 1);
  const std::int64_t groups = grouped.groups();
  gemm.tensors = {{"sums", grouped.mode == Mode::ragged_n ? sums : op::batched(sums, groups)},
                  {"most", grouped.mode == Mode::ragged_m ? most : op::batched(most, groups)},
                  {"amax", op::batched(amax, groups)}};
  gemm.d.dtype = gemm.c.dtype = DType::f32;
}

class GroupedGemms : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (is_missing(GetParam())) GTEST_SKIP() << "no GPU";
  }

  engine::Engine& engine() const { return engine_of(GetParam()); }

  static op::GroupedGemm problem(const std::string& types, Mode mode, const Sizes& sizes) {
    return grouped_of(capacity(types, mode, op::is_ragged(mode) ? kStack : kMost), mode,
                      static_cast<std::int64_t>(sizes.size()));
  }

  static std::vector<std::string> families_of(const std::vector<registry::KernelPtr>& kernels) {
    std::vector<std::string> families;
    for (const registry::KernelPtr& kernel : kernels) families.push_back(kernel->metadata().family);
    return families;
  }

  /// Whether TMA loads operands of groups that end along k, which are not repacked, and wgmma reads them. Stacked ones
  /// must be contiguous along m and n.
  static bool is_loaded_by_tma(const op::GroupedGemm& grouped) {
    if (!op::ends_along_k(grouped.mode)) return true;
    const op::Gemm& gemm = grouped.gemm;
    if (grouped.mode == Mode::masked_k)
      return bytes(gemm.a.dtype) == 2 || gemm.a.column_stride() == 1 || gemm.b.row_stride() == 1;
    return gemm.a.row_stride() == 1 && gemm.b.column_stride() == 1 && bytes(gemm.a.dtype) == 2;
  }

  /// One group that has the whole capacity.
  static op::Gemm dense(const op::GroupedGemm& grouped) {
    op::Gemm gemm = grouped.gemm;
    for (op::Tensor* const tensor : {&gemm.a, &gemm.b, &gemm.c, &gemm.d})
      *tensor = op::matrix_at(*tensor, tensor->address);
    for (op::NamedTensor& each : gemm.tensors) each.tensor = op::matrix_at(each.tensor, each.tensor.address);
    return gemm;
  }

  void expect_exact_of(const registry::KernelPtr& kernel, GuardedGroups& guarded) const {
    SCOPED_TRACE(kernel == nullptr ? "the best kernel" : kernel->name());
    guarded.upload();
    engine().run(guarded.on_device(), kernel);
    guarded.download();
    EXPECT_EQ(guarded.damage(), "");
    const op::Comparison comparison = op::compare(op::Problem(guarded.host()));
    EXPECT_TRUE(comparison.is_exact()) << op::to_string(comparison);
  }

  /// Checks the best kernel of each family. simt_gemm and sm90_gemm compute the problems of types for which
  /// they compute a dense GEMM, but sm90_gemm not all groups that differ in k. sm80_gemm does not load elements of 2
  /// bytes or less if groups are stacked along their contiguous mode. Without red zones, an emulator reports a read
  /// outside the operands.
  void expect_exact_in_every_family(const op::GroupedGemm& grouped, const Sizes& ends, Placement placement = {}) const {
    if (engine().device()->properties().emulated) placement.red_zone = 0;
    GuardedGroups guarded(engine().device(), grouped, ends, placement);
    const std::vector<registry::KernelPtr> kernels = best_of_each_family(engine(), guarded.on_device());
    for (const registry::KernelPtr& kernel : without_kernels_of_sm80(engine(), kernels))
      expect_exact_of(kernel, guarded);
    const std::vector<std::string> families = families_of(kernels);
    const std::vector<std::string> of_dense = families_of(best_of_each_family(engine(), dense(guarded.on_device())));
    const bool has_sm90 = is_loaded_by_tma(grouped) && std::ranges::count(of_dense, "sm90_gemm") == 1;
    EXPECT_EQ(std::ranges::count(families, "simt_gemm"), std::ranges::count(of_dense, "simt_gemm"));
    EXPECT_EQ(std::ranges::count(families, "sm90_gemm"), has_sm90 ? 1 : 0);
  }
};

TEST_P(GroupedGemms, EveryPatternOfSizes) {
  for (const Mode mode : kModes) {
    for (const Pattern& pattern : patterns()) {
      SCOPED_TRACE(fmt::format("{} {}", op::name(mode), pattern.name));
      const op::GroupedGemm grouped = problem(half_problem(mode), mode, pattern.sizes);
      expect_exact_in_every_family(grouped, ends_of(mode, pattern.sizes));
    }
  }
}

TEST_P(GroupedGemms, EveryTypeAndLayoutInEveryMode) {
  const Sizes sizes{65, 0, 1, 34, 7};
  for (const Mode mode : kModes) {
    for (const char* const types :
         {"dtype=f64 a=row b=row", "dtype=f32 a=col b=row d=col", "dtype=tf32 a=row b=col",
          "dtype=tf32 a=col b=row d=col", "dtype=s8 a=row b=col", "dtype=e4m3 a=row b=col d=col",
          "dtype=bf16 a=row b=row", "dtype=f16 a=col b=row", "dtype=f16 a=row b=col d=col"}) {
      SCOPED_TRACE(fmt::format("{} {}", op::name(mode), types));
      op::GroupedGemm grouped = problem(types, mode, sizes);
      grouped.gemm.beta = 1.0;
      expect_exact_in_every_family(grouped, ends_of(mode, sizes));
    }
  }
}

TEST_P(GroupedGemms, LeadingDimensionsMayHavePaddingAndAddressesAnyAlignment) {
  const Sizes sizes{65, 0, 1, 34, 7};
  for (const Mode mode : {Mode::ragged_m, Mode::masked_m}) {
    const op::GroupedGemm grouped = problem("dtype=f16 a=row b=col", mode, sizes);
    for (const Placement& placement :
         {Placement{.padding = 8}, {.padding = 3}, {.offset_elements = 1}, {.padding = 8, .batch_padding = 8}}) {
      SCOPED_TRACE(fmt::format("{} {} {}", op::name(mode), placement.padding, placement.offset_elements));
      expect_exact_in_every_family(grouped, ends_of(mode, sizes), placement);
    }
  }
}

/// A bias and a scale of each group, a factor of each row, and a further output.
TEST_P(GroupedGemms, EpiloguesReadTensorsOfEachGroupAndStackedOnes) {
  const Sizes sizes{65, 0, 1, 34, 7};
  for (const Mode mode : {Mode::ragged_m, Mode::masked_m, Mode::ragged_n}) {
    SCOPED_TRACE(op::name(mode));
    op::GroupedGemm grouped = problem("dtype=f16 a=row b=col", mode, sizes);
    op::Gemm& gemm = grouped.gemm;
    gemm.epilogue = *op::parse_epilogue(
        "let t = acc * single(scale) + row(bias); D = t * column(factor) + row_index; before = t", DType::f32);
    constexpr std::uint64_t kApart = std::uint64_t{1} << 40;
    const std::int64_t m = gemm.m(), n = gemm.n(), groups = grouped.groups();
    const op::Tensor bias = op::matrix(5 * kApart, DType::f32, 1, n), factor = op::matrix(6 * kApart, DType::f32, m, 1),
                     scale = op::matrix(7 * kApart, DType::f32, 1, 1),
                     before = op::matrix(8 * kApart, DType::f32, m, n);
    gemm.tensors = {{"bias", mode == Mode::ragged_n ? bias : op::batched(bias, groups)},
                    {"factor", mode == Mode::ragged_m ? factor : op::batched(factor, groups)},
                    {"scale", op::batched(scale, groups)},
                    {"before", op::is_ragged(mode) ? before : op::batched(before, groups)}};
    gemm.d.dtype = gemm.c.dtype = DType::f32;
    expect_exact_in_every_family(grouped, ends_of(mode, sizes));
  }
}

/// Sums of columns, maxima of rows and the largest magnitude of each group. The second launch finds the counters that
/// the first has left.
TEST_P(GroupedGemms, ReductionsHaveResultsForEachGroup) {
  const Sizes sizes{65, 0, 1, 34, 7};
  for (const Mode mode : kModes) {
    SCOPED_TRACE(op::name(mode));
    op::GroupedGemm grouped = problem(half_problem(mode), mode, sizes);
    reduce(grouped);
    expect_exact_in_every_family(grouped, ends_of(mode, sizes));
    expect_exact_in_every_family(grouped, ends_of(mode, {7, 34, 0, 20, 0}));
  }
}

TEST_P(GroupedGemms, PairsOfColumnsMayBeGated) {
  const Sizes sizes{65, 0, 1, 34, 7};
  op::GroupedGemm grouped = problem("dtype=f16 a=row b=col", Mode::ragged_m, sizes);
  op::Gemm& gemm = grouped.gemm;
  gemm.epilogue = *op::parse_epilogue("D = even(acc) + odd(acc)", DType::f32);
  gemm.d = gemm.c = op::matrix(gemm.d.address, DType::f16, gemm.m(), gemm.n() / 2);
  expect_exact_in_every_family(grouped, ends_of(Mode::ragged_m, sizes));
}

/// One prepared call, whose sizes change in device memory between its launches, as in a replayed graph.
TEST_P(GroupedGemms, SizesMayChangeBetweenLaunchesOfAPreparedCall) {
  for (const Mode mode : kModes) {
    const std::vector<Sizes> all{{65, 0, 1, 34, 7}, {0, 0, 0, 0, 0}, {1, 2, 3, 4, 90}, {0, 96, 0, 0, 64}};
    GuardedGroups guarded(engine().device(), problem(half_problem(mode), mode, all[0]), ends_of(mode, all[0]), {});
    for (const registry::KernelPtr& kernel : best_of_each_family(engine(), guarded.on_device())) {
      const engine::PreparedCall prepared = engine().prepare(guarded.on_device(), kernel);
      for (const Sizes& sizes : all) {
        SCOPED_TRACE(fmt::format("{} {} {}", kernel->name(), op::name(mode), fmt::join(sizes, ",")));
        guarded.set_ends(ends_of(mode, sizes));
        guarded.upload();
        prepared.run();
        guarded.download();
        EXPECT_EQ(guarded.damage(), "");
        EXPECT_TRUE(op::compare(op::Problem(guarded.host())).is_exact());
      }
    }
  }
}

/// More groups than one warp, or one chunk of a table, has; thousands of them.
TEST_P(GroupedGemms, ThereMayBeManyGroups) {
  for (const std::int64_t groups : {33, 300, 4099}) {
    SCOPED_TRACE(groups);
    Sizes sizes(static_cast<std::size_t>(groups), 0);
    for (std::size_t i = 0; i < sizes.size(); i += 13) sizes[i] = static_cast<std::int32_t>(i % 5);
    sizes.back() = 3;
    const std::int64_t rows = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}) + 5;
    const op::Gemm one = shape_of(*bench::parse_problem(fmt::format("dtype=f16 a=row b=col m={} n=16 k=16", rows)));
    expect_exact_in_every_family(grouped_of(one, Mode::ragged_m, groups), ends_of(Mode::ragged_m, sizes));
  }
}

/// Ends that decrease or lie outside the capacity change only rows within it.
TEST_P(GroupedGemms, WrongEndsAccessNothingOutsideTheOperands) {
  GuardedGroups guarded(engine().device(), problem("dtype=f16 a=row b=col", Mode::ragged_m, Sizes(5)),
                        {-7, 90, 20, 1 << 30, -(1 << 30)}, {});
  for (const registry::KernelPtr& kernel : best_of_each_family(engine(), guarded.on_device())) {
    SCOPED_TRACE(kernel->name());
    guarded.upload();
    try {
      engine().run(guarded.on_device(), kernel);
    } catch (const Error& error) {  // groups overlap, so an emulator may report that two CTAs write a row
      EXPECT_NE(std::string(error.what()).find("race"), std::string::npos) << error.what();
      continue;
    }
    guarded.download();
    EXPECT_EQ(guarded.damage(), "");
  }
}

TEST_P(GroupedGemms, EmptyProblemsLaunchNothing) {
  for (const auto& [m, n, groups] : {std::array{0, 48, 3}, {40, 0, 3}, {40, 48, 0}}) {
    const GuardedGroups guarded(engine().device(), grouped_of(half_gemm(m, n, 32), Mode::ragged_m, groups),
                                Sizes(static_cast<std::size_t>(groups)), {});
    EXPECT_NO_THROW(engine().run(guarded.on_device()));
  }
}

/// k = 0 gives beta * C, in the rows of the groups only.
TEST_P(GroupedGemms, WithoutAProductTheRowsOfGroupsAreThoseOfC) {
  const Sizes sizes{65, 0, 1, 34, 7};
  op::GroupedGemm grouped = grouped_of(half_gemm(160, 48, 0), Mode::ragged_m, 5);
  grouped.gemm.beta = 2.0;
  expect_exact_in_every_family(grouped, ends_of(Mode::ragged_m, sizes));
}

/// Rows of a host problem that belong to no group keep their values, although D is copied back.
TEST_P(GroupedGemms, HostProblemsKeepRowsThatBelongToNoGroup) {
  std::vector<float> a(10 * 4, 1.0F), b(2 * 4 * 8, 1.0F), d(10 * 8, 42.0F);
  Sizes ends{3, 7};
  op::GroupedGemm grouped{.gemm = {.a = op::matrix(a.data(), DType::f32, 10, 4),
                                   .b = op::batched(op::matrix(b.data(), DType::f32, 4, 8), 2),
                                   .c = {},
                                   .d = op::matrix(d.data(), DType::f32, 10, 8)},
                          .mode = Mode::ragged_m,
                          .ends = op::group_ends(reinterpret_cast<std::uint64_t>(ends.data()), 2)};
  engine().run(grouped);
  for (std::size_t i = 0; i < d.size(); ++i) EXPECT_EQ(d[i], i < 7 * 8 ? 4.0F : 42.0F) << i;
}

INSTANTIATE_TEST_SUITE_P(Devices, GroupedGemms, testing::ValuesIn(devices()),
                         [](const auto& each) { return identifier(each.param); });

/// Every design of sm90_gemm has its own way to load, multiply and store.
class Sm90GroupedGemms : public GroupedGemms {
 protected:
  void SetUp() override {
    GroupedGemms::SetUp();
    if (!IsSkipped() && !has_feature(engine().device()->properties().target, TargetFeature::wgmma))
      GTEST_SKIP() << "wgmma needs sm_90a";
  }

  void expect_exact_of_design(const op::GroupedGemm& grouped, const Sizes& ends, const DesignCase& tested,
                              Placement placement = {}, bool repacks = false) const {
    SCOPED_TRACE(fmt::format("{} {}", op::name(grouped.mode), tested.name));
    if (engine().device()->properties().emulated) placement.red_zone = 0;
    GuardedGroups guarded(engine().device(), grouped, ends, placement);
    const op::GemmSignature signature = op::describe(op::view(guarded.on_device()));
    plan::Sm90GemmDesign design = design_of(tested, signature);
    design.target = engine().device()->properties().target;
    design.repacks_operands = repacks;
    expect_exact_of(engine().make_kernel(signature, design), guarded);
  }
};

constexpr auto kCooperative = plan::Schedule::cooperative;
constexpr auto kPingPong = plan::Schedule::ping_pong;

/// Groups of more than one tile, and of parts of one.
const Sizes kSm90Sizes{200, 0, 1, 129, 63, 64, 300, 7};

op::GroupedGemm sm90_problem(Mode mode) {
  const std::int64_t along = op::is_ragged(mode) ? 780 : mode == Mode::masked_k ? 312 : 310;  // k is A's row
  const std::string types = mode == Mode::ragged_k ? "dtype=bf16 a=col b=row" : "dtype=f16 a=row b=col";
  const std::string extents = op::differs_in_m(mode)   ? fmt::format("m={} n=136 k=136", along)
                              : op::differs_in_n(mode) ? fmt::format("m=136 n={} k=136", along)
                                                       : fmt::format("m=136 n=152 k={}", along);
  op::GroupedGemm grouped = grouped_of(shape_of(*bench::parse_problem(types + " " + extents)), mode,
                                       static_cast<std::int64_t>(kSm90Sizes.size()));
  grouped.gemm.beta = 1.0;
  return grouped;
}

/// A block of D that leaves partial results is the part of a tile that one warpgroup computes.
TEST_P(Sm90GroupedGemms, EveryDesignReduces) {
  for (const Mode mode : {Mode::ragged_m, Mode::masked_n, Mode::masked_k}) {
    op::GroupedGemm grouped = sm90_problem(mode);
    grouped.gemm.beta = 0.0;
    reduce(grouped);
    for (const DesignCase& tested : {DesignCase{"cooperative", {128, 64}, 2, 3},
                                     {"two atoms", {256, 64}, 2, 3},
                                     {"ping-pong", {64, 64}, 2, 4, {1, 1}, kPingPong},
                                     {"multicast of B", {64, 64}, 1, 4, {2, 1}},
                                     {"multicast of A", {64, 64}, 1, 4, {1, 2}},
                                     {"swapped", {64, 64}, 1, 4, {1, 1}, kCooperative, true}}) {
      expect_exact_of_design(grouped, ends_of(mode, kSm90Sizes), tested);
    }
  }
}

TEST_P(Sm90GroupedGemms, EveryDesign) {
  for (const Mode mode : {Mode::ragged_m, Mode::ragged_n}) {
    for (const DesignCase& tested : {DesignCase{"one warpgroup", {64, 64}, 1, 4},
                                     {"cooperative", {128, 64}, 2, 3},
                                     {"three warpgroups", {192, 64}, 3, 3},
                                     {"two atoms", {256, 64}, 2, 3},
                                     {"ping-pong", {64, 64}, 2, 4, {1, 1}, kPingPong},
                                     {"ping-pong of 128 rows", {128, 128}, 2, 3, {1, 1}, kPingPong},
                                     {"multicast of B", {64, 64}, 1, 4, {2, 1}},
                                     {"multicast of B to four", {128, 64}, 2, 3, {4, 1}},
                                     {"multicast of A", {64, 64}, 1, 4, {1, 2}},
                                     {"multicast and ping-pong", {64, 128}, 2, 4, {2, 1}, kPingPong},
                                     {"multicast, swapped", {64, 64}, 1, 4, {1, 2}, kCooperative, true},
                                     {"swapped", {64, 64}, 1, 4, {1, 1}, kCooperative, true},
                                     {"swapped and narrow", {64, 16}, 1, 4, {1, 1}, kCooperative, true}}) {
      expect_exact_of_design(sm90_problem(mode), ends_of(mode, kSm90Sizes), tested);
    }
  }
  for (const DesignCase& tested : {DesignCase{"cooperative", {128, 64}, 2, 3},
                                   {"ping-pong", {64, 64}, 2, 4, {1, 1}, kPingPong},
                                   {"multicast of B", {64, 64}, 1, 4, {2, 1}}}) {
    expect_exact_of_design(sm90_problem(Mode::masked_m), kSm90Sizes, tested);
  }
}

/// Elements of K behind a group are NaN or those of the next group, for both operands. Groups without K give C.
TEST_P(Sm90GroupedGemms, EveryDesignOfGroupsThatDifferInK) {
  for (const DesignCase& tested : {DesignCase{"one warpgroup", {64, 64}, 1, 4},
                                   {"cooperative", {128, 64}, 2, 3},
                                   {"three warpgroups", {192, 64}, 3, 3},
                                   {"ping-pong", {64, 64}, 2, 4, {1, 1}, kPingPong},
                                   {"multicast of B", {64, 64}, 1, 4, {2, 1}},
                                   {"multicast of A", {64, 64}, 2, 4, {1, 2}, kPingPong},
                                   {"swapped", {64, 64}, 1, 4, {1, 1}, kCooperative, true}}) {
    expect_exact_of_design(sm90_problem(Mode::ragged_k), ends_of(Mode::ragged_k, kSm90Sizes), tested);
    expect_exact_of_design(sm90_problem(Mode::ragged_k), Sizes(kSm90Sizes.size(), 0), tested);
    expect_exact_of_design(sm90_problem(Mode::masked_k), kSm90Sizes, tested);
  }
}

TEST_P(Sm90GroupedGemms, PlainLoadsRepackingAndPointersOfEachGroup) {
  op::GroupedGemm grouped = sm90_problem(Mode::ragged_m);
  const Sizes ends = ends_of(Mode::ragged_m, kSm90Sizes);
  expect_exact_of_design(grouped, ends, {"plain loads", {64, 64}, 1, 3}, {.offset_elements = 1});
  expect_exact_of_design(grouped, ends, {"repacked", {64, 64}, 1, 3}, {.offset_elements = 1}, true);
  expect_exact_of_design(grouped, ends, {"padding", {64, 64}, 1, 3}, {.padding = 8});
  op::Tensor& b = grouped.gemm.b;
  b = op::pointer_array(op::matrix_at(b, 0), b.address, grouped.groups());
  expect_exact_of_design(grouped, ends, {"pointers", {64, 64}, 2, 3, {1, 1}, kPingPong});
}

TEST_P(Sm90GroupedGemms, ExplainsWhichLayoutsGroupsThatDifferInKNeed) {
  op::GroupedGemm grouped = sm90_problem(Mode::ragged_k);
  grouped.gemm.a = op::matrix(grouped.gemm.a.address, DType::bf16, 136, 780);
  const GuardedGroups guarded(engine().device(), grouped, ends_of(Mode::ragged_k, kSm90Sizes), {});
  std::string reasons;
  for (const registry::RefusedKernel& refused : engine().explain(guarded.on_device()).refused) {
    if (refused.name.starts_with("sm90_gemm")) reasons += refused.reason() + '\n';
  }
  EXPECT_NE(reasons.find("groups that differ in k must be loaded by TMA, which A is not"), std::string::npos)
      << reasons;
}

TEST_P(Sm90GroupedGemms, RefusesSplitK) {
  const GuardedGroups guarded(engine().device(), sm90_problem(Mode::ragged_m), ends_of(Mode::ragged_m, kSm90Sizes), {});
  const op::GemmSignature signature = op::describe(op::view(guarded.on_device()));
  const auto reason = [&](const DesignCase& tested) {
    return plan::sketch_sm90_gemm(signature, design_of(tested, signature)).reason();
  };
  EXPECT_EQ(reason({"", {64, 64}, 1, 4, {1, 1}, kCooperative, false, 2}),
            "groups (ragged_m) are computed without split-K, got split_k 2");
}

INSTANTIATE_TEST_SUITE_P(Devices, Sm90GroupedGemms, testing::ValuesIn(devices()),
                         [](const auto& each) { return identifier(each.param); });

}  // namespace
}  // namespace tilewright::conformance
