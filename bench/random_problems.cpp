// Draws problems with an integer generator and integer arithmetic only, so that every platform draws the same.
#include "random_problems.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <utility>

#include "random_class.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/base/text.hpp"

namespace tilewright::bench {
namespace {

/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014): a counter with an odd
/// increment, whose bits are mixed.
class Generator {
 public:
  Generator(std::uint64_t seed, std::uint64_t number) : state_(mixed(seed + kStep) ^ mixed(~number)) {}

  /// Uniform from 0 to limit - 1. @pre limit > 0
  std::int64_t below(std::int64_t limit) {
    TILEWRIGHT_CHECK(limit > 0, "a limit is positive, got {}", limit);
    state_ += kStep;
    return static_cast<std::int64_t>(mixed(state_) % static_cast<std::uint64_t>(limit));
  }
  bool chance(int percent) { return below(100) < percent; }

  /// An element of the table, with the probability of its weight. Elements are pairs of value and weight.
  template <class T, std::size_t Size>
  T pick(const std::array<std::pair<T, int>, Size>& table) {
    int sum = 0;
    for (const auto& [value, weight] : table) sum += weight;
    std::int64_t left = below(sum);
    for (const auto& [value, weight] : table) {
      if (left < weight) return value;
      left -= weight;
    }
    return table.back().first;
  }

  /// The exponent of two is uniform from `low` to `high` - 1, and so is the number with that exponent.
  std::int64_t by_octave(int low, int high) {
    const std::int64_t power = std::int64_t{1} << (low + below(high - low));
    return power + below(power);
  }

 private:
  static constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15;
  static std::uint64_t mixed(std::uint64_t bits) {
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
    return bits ^ (bits >> 31);
  }

  std::uint64_t state_;
};

template <class T>
using Weights = std::pair<T, int>;

constexpr std::array<Weights<std::string_view>, 7> kTypes{
    {{"bf16", 34}, {"f16", 24}, {"e4m3", 10}, {"tf32", 9}, {"s8", 7}, {"f32", 9}, {"f64", 7}}};
constexpr std::array<Weights<std::int64_t>, 7> kMultiples{
    {{1, 12}, {2, 6}, {8, 18}, {16, 14}, {32, 12}, {64, 16}, {128, 22}}};
/// The layouts of A and B.
constexpr std::array<Weights<std::pair<bool, bool>>, 4> kColumnMajor{
    {{{false, true}, 45}, {{false, false}, 30}, {{true, false}, 15}, {{true, true}, 10}}};
enum class Padding { none, vector, line };
constexpr std::array<Weights<Padding>, 3> kPaddings{{{Padding::none, 72}, {Padding::vector, 16}, {Padding::line, 12}}};
constexpr std::array<Weights<std::string_view>, 7> kEpilogues{{{"bias", 25},
                                                               {"bias_relu", 15},
                                                               {"bias_gelu", 15},
                                                               {"bias_gelu_aux", 10},
                                                               {"residual", 15},
                                                               {"row_sum", 10},
                                                               {"swiglu", 10}}};
constexpr std::array<Weights<std::string_view>, 3> kQuantisedEpilogues{
    {{"", 60}, {"quantise", 20}, {"quantise_amax", 20}}};
/// With a larger K, elements of swiglu overflow f16 or cannot be verified.
constexpr std::int64_t kMaxSwigluK = 2048;

/// The fields of a problem's line.
struct Draft {
  std::string_view dtype, out, math, epilogue;
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  std::int64_t lda = 0, ldb = 0, ldd = 0;  // 0: packed
  bool a_column_major = false, b_column_major = false, d_column_major = false;

  bool is_eight_bit() const { return dtype == "e4m3" || dtype == "s8"; }
};

/// A multiple of one of kMultiples that is a multiple of `least` too; the largest of them that is at most `extent`.
std::int64_t rounded(Generator& generator, std::int64_t extent, std::int64_t least) {
  std::int64_t multiple = generator.pick(kMultiples);
  while (multiple > extent) multiple /= 2;
  multiple = std::max(multiple, least);
  return std::max(extent / multiple, std::int64_t{1}) * multiple;
}

void draw_types(Generator& generator, Draft& draft) {
  draft.dtype = generator.pick(kTypes);
  if (draft.dtype == "bf16" || draft.dtype == "f16") {
    if (generator.chance(10)) draft.out = "f32";
  } else if (draft.dtype == "e4m3") {
    draft.out = generator.chance(75) ? "bf16" : "e4m3";
    if (generator.chance(60)) draft.math = "multiply_add_fast_accumulate";
  }
}

void draw_extents(Generator& generator, Draft& draft) {
  const std::int64_t least = draft.is_eight_bit() ? 16 : 1;
  const bool is_batched = draft.dtype != "e4m3" && generator.chance(12);
  const int most = is_batched ? 10 : 15;
  if (is_batched) draft.batch = generator.by_octave(1, 12);
  draft.m = rounded(generator, generator.by_octave(0, most), 1);
  draft.n = rounded(generator, generator.by_octave(generator.chance(25) ? 0 : 6, most), least);
  draft.k = rounded(generator, generator.by_octave(4, is_batched ? 11 : 16), least);
}

void draw_layouts(Generator& generator, Draft& draft) {
  const auto [a, b] = generator.pick(kColumnMajor);
  const bool d = generator.chance(8);
  draft.a_column_major = a && !draft.is_eight_bit();
  draft.b_column_major = b || draft.is_eight_bit();
  draft.d_column_major = d && !draft.is_eight_bit();
}

/// The packed leading dimension plus one to four units, of which half are rounded down to a multiple of the unit.
/// A unit is 16 or 128 bytes.
std::int64_t padded(Generator& generator, std::int64_t packed, std::int64_t unit) {
  const std::int64_t sum = packed + unit * (1 + generator.below(4));
  return generator.chance(50) ? sum / unit * unit : sum;
}

std::int64_t element_bytes(std::string_view dtype) {
  return tilewright::bytes(dtype == "tf32" ? DType::f32 : *parse_dtype(dtype));
}

std::string_view type_of_d(const Draft& draft) {
  if (!draft.out.empty()) return draft.out;
  return draft.dtype == "s8" ? "s32" : draft.dtype;
}

/// Also draws where nothing is padded, so that the following draws do not depend on it.
void draw_leading_dimensions(Generator& generator, Draft& draft) {
  const Padding padding = generator.pick(kPaddings);
  const std::int64_t unit_bytes = padding == Padding::line ? 128 : 16;
  const auto draw = [&](std::int64_t packed, std::string_view dtype) -> std::int64_t {
    const bool is_padded = generator.chance(60) && padding != Padding::none;
    const std::int64_t ld = padded(generator, packed, unit_bytes / element_bytes(dtype));
    return is_padded ? ld : 0;
  };
  draft.lda = draw(draft.a_column_major ? draft.m : draft.k, draft.dtype);
  draft.ldb = draw(draft.b_column_major ? draft.k : draft.n, draft.dtype);
  draft.ldd = draw(draft.d_column_major ? draft.m : draft.n, type_of_d(draft));
}

/// Vectors of 16 bytes of D's rows must be whole, as the separate epilogue kernel of cuBLASLt's contender needs.
void draw_epilogue(Generator& generator, Draft& draft) {
  const bool is_wanted = generator.chance(9);
  std::string_view epilogue = generator.pick(kEpilogues);
  const std::string_view quantised = generator.pick(kQuantisedEpilogues);
  if (draft.batch != 1) return;
  if (draft.dtype == "e4m3") {
    if (draft.out == "e4m3") draft.epilogue = quantised;
    return;
  }
  const bool is_16_bit = (draft.dtype == "bf16" || draft.dtype == "f16") && draft.out.empty();
  if (!is_wanted || !is_16_bit || draft.d_column_major || draft.n % 16 != 0 || draft.ldd % 8 != 0) return;
  if (epilogue == "swiglu" && draft.k > kMaxSwigluK) epilogue = "residual";
  if (epilogue == "swiglu") draft.ldd = 0;  // D has half the columns
  draft.epilogue = epilogue;
}

std::string line_of(const Draft& draft, std::uint64_t seed, int number) {
  std::string line = fmt::format("id=R{}-{:03} dtype={}", seed, number, draft.dtype);
  if (!draft.out.empty()) line += fmt::format(" out={}", draft.out);
  if (draft.batch != 1) line += fmt::format(" batch={}", draft.batch);
  line += fmt::format(" m={} n={} k={}", draft.m, draft.n, draft.k);
  if (draft.a_column_major) line += " a=col";
  if (draft.b_column_major) line += " b=col";
  if (draft.d_column_major) line += " d=col";
  if (draft.lda != 0) line += fmt::format(" lda={}", draft.lda);
  if (draft.ldb != 0) line += fmt::format(" ldb={}", draft.ldb);
  if (draft.ldd != 0) line += fmt::format(" ldd={}", draft.ldd);
  if (!draft.math.empty()) line += fmt::format(" math={}", draft.math);
  if (!draft.epilogue.empty()) line += fmt::format(" epilogue={}", draft.epilogue);
  return line;
}

/// About what an H200 reaches on large problems of the type, in 10^12 operations per second.
double tera_ops_of(std::string_view dtype) {
  if (dtype == "e4m3" || dtype == "s8") return 1300.0;
  if (dtype == "tf32") return 380.0;
  return dtype == "f32" || dtype == "f64" ? 50.0 : 700.0;
}

bool is_within_limits(const Problem& problem, std::string_view dtype) {
  const auto bytes = [](const StoredMatrix& stored) { return static_cast<double>(stored.bytes()); };
  const double of_operands = bytes(stored_a(problem)) + bytes(stored_b(problem)) + bytes(stored_d(problem));
  double of_all = of_operands;
  for (const StoredTensor& tensor : stored_tensors(problem)) of_all += bytes(tensor.stored);
  if (problem.epilogue != nullptr) of_all += bytes(stored_c(problem));
  const double ms = 1e-9 * operations(problem) / tera_ops_of(dtype);
  return of_operands >= kMinRandomBytes && of_all <= kMaxRandomBytes && ms <= kMaxRandomMs &&
         operations(problem) >= kMinRandomOperations;
}

std::string_view dtype_of(const Problem& problem) {
  return problem.math == op::MathOperation::multiply_add_tf32 ? "tf32" : name(problem.dtype);
}

void check(const RandomFilter& filter) {
  for (const std::string& type : filter.types) {
    if (std::ranges::find(kTypes, type, &Weights<std::string_view>::first) == kTypes.end())
      throw InvalidArgument(fmt::format("no random problem has the type \"{}\"", printable(type)));
  }
  for (const std::string& one : filter.classes) {
    if (find_random_class(one) == nullptr)
      throw InvalidArgument(fmt::format("no random problem has the class \"{}\"", printable(one)));
  }
}

bool passes(const Problem& problem, const RandomFilter& filter) {
  const auto is_in = [](const std::vector<std::string>& wanted, std::string_view found) {
    return wanted.empty() || std::ranges::find(wanted, found) != wanted.end();
  };
  return (!filter.aligned || *filter.aligned == has_aligned_rows(problem)) && is_in(filter.types, dtype_of(problem)) &&
         is_in(filter.classes, random_class(problem).name) && problem.m >= filter.least_m;
}

}  // namespace

Problem random_problem(std::uint64_t seed, int number) {
  Generator generator(seed, static_cast<std::uint64_t>(number));
  for (;;) {
    Draft draft;
    draw_types(generator, draft);
    draw_extents(generator, draft);
    draw_layouts(generator, draft);
    draw_leading_dimensions(generator, draft);
    draw_epilogue(generator, draft);
    Problem problem = parse_problem(line_of(draft, seed, number)).value_or_throw();
    if (is_within_limits(problem, draft.dtype)) return problem;
  }
}

std::vector<Problem> random_problems(std::uint64_t seed, int count, const RandomFilter& filter) {
  check(filter);
  constexpr int kMaxDraws = 100000;
  std::vector<Problem> problems;
  for (int number = 0; static_cast<int>(problems.size()) < count; ++number) {
    if (number == kMaxDraws)
      throw InvalidArgument(fmt::format("only {} of the first {} problems of seed {} pass the filter, {} are wanted",
                                        problems.size(), number, seed, count));
    Problem problem = random_problem(seed, number);
    if (passes(problem, filter)) problems.push_back(std::move(problem));
  }
  return problems;
}

Result<std::vector<RandomDraw>> parse_random_draws(std::string_view text) {
  std::vector<RandomDraw> draws;
  for (const std::string& part : split(text, ',')) {
    RandomDraw draw;
    const char* const end = part.data() + part.size();
    const auto seed = std::from_chars(part.data(), end, draw.seed);
    const bool has_colon = seed.ec == std::errc() && seed.ptr != end && *seed.ptr == ':';
    const auto count = std::from_chars(has_colon ? seed.ptr + 1 : end, end, draw.count);
    if (!has_colon || count.ec != std::errc() || count.ptr != end || draw.count < 1)
      return refuse("must be SEED:COUNT, or several of them separated by commas, got \"{}\"", printable(part));
    for (const RandomDraw& other : draws) {
      if (other.seed == draw.seed) return refuse("the seed {} is given twice", draw.seed);
    }
    draws.push_back(draw);
  }
  return draws;
}

}  // namespace tilewright::bench
