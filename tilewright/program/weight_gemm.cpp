#include "tilewright/program/weight_gemm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "tilewright/arch/limits.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/program/packed_weights.hpp"
#include "tilewright/program/ring.hpp"
#include "tilewright/program/roles.hpp"
#include "tilewright/program/tiled_copy.hpp"
#include "tilewright/program/tiled_mma.hpp"
#include "tilewright/program/tiles.hpp"
#include "tilewright/program/widen.hpp"

namespace tilewright::program {
namespace {

using layout::Layout;
using layout::make_layout;

constexpr int kWarpgroup = 128;
constexpr int kInstructionK = 16;
/// Registers of a fragment of A.
constexpr int kFragment = 4;
/// TMA needs lines that begin at multiples of this.
constexpr int kLineAlignment = 16;
constexpr int kStageAlignment = 1024;
/// A TMA box has at most 256 elements along a mode: a chunk of packed weights is two lines of 256 words.
constexpr int kLineWords = 256;
constexpr int kLinesOfChunk = WeightPacking::kBytes / (4 * kLineWords);
/// Distances of a thread's pairs of accumulators.
constexpr int kRowsOfPairs = 8, kColumnsOfPairs = 8;
constexpr int kThreadBytes = WeightPacking::kBytes / kWarpgroup;

std::int64_t round_up(std::int64_t value, std::int64_t step) { return (value + step - 1) / step * step; }

SharedTile plain_tile(DType element, Layout layout) { return {{{}, 0, std::move(layout)}, element}; }

SharedTile activations_tile(const WeightGemmDescription& about) {
  const int element_bits = bits(about.activations);
  const arch::SwizzleMode mode =
      arch::widest_swizzle(arch::Major::k, element_bits, about.tile_n, about.tile_k).value_or_throw();
  return {arch::smem_tile({.mode = mode, .element_bits = element_bits, .mn = about.tile_n, .k = about.tile_k})
              .value_or_throw(),
          about.activations};
}

void check_type(DType type, std::initializer_list<DType> types, std::string_view what) {
  if (std::find(types.begin(), types.end(), type) != types.end()) return;
  std::string names;
  for (const DType one : types) names += fmt::format("{}{}", names.empty() ? "" : ", ", tilewright::name(one));
  throw InvalidArgument(fmt::format("{} are one of {}, got {}", what, names, tilewright::name(type)));
}

class WeightGemmAuthor {
 public:
  WeightGemmAuthor(std::string symbol, const WeightGemmDescription& description)
      : about_(description),
        packing_(weight_packing(description.weights)),
        use_(scale_use(description)),
        k_(std::move(symbol), description.target, kWarpgroup * (1 + std::clamp(description.consumers, 1, 3))),
        tile_m_(WeightPacking::kRows * description.consumers) {
    check();
    chunks_ = about_.tile_k / packing_.chunk_k;
    segment_ = use_ ? std::min(about_.group, about_.tile_k) : about_.tile_k;
    piece_steps_ = std::min(packing_.steps, segment_ / kInstructionK);
  }

  Program write() {
    const Number m = k_.launch("m", 1, 1), n = k_.launch("n", 1, 1), extent_k = k_.launch("k", 1, 1);
    const SharedTile activations = activations_tile(about_);
    const TiledCopyBuilder load_weights = weights_copy(m, extent_k);
    const TiledCopyBuilder load_activations(
        k_, CopyAtom::tma,
        {.name = "activations",
         .element = about_.activations,
         .extents = {n, extent_k},
         .strides = {k_.launch("ld_activations", kLineAlignment * 8 / bits(about_.activations)), 1}},
        activations);
    std::optional<TiledCopyBuilder> load_scales;
    if (use_) {
      load_scales.emplace(k_, CopyAtom::tma,
                          Tensor{.name = "scales",
                                 .element = about_.scales,
                                 .extents = {m, ceil_div(extent_k, about_.group)},
                                 .strides = {1, k_.launch("ld_scales", kLineAlignment * 8 / bits(about_.scales))}},
                          plain_tile(about_.scales, make_layout({tile_m_, about_.tile_k / segment_})));
    } else {
      row_scales_ = k_.address("scales", bits(about_.scales) / 8);
    }
    d_ = k_.address("d", bits(about_.d) / 8);
    ldd_ = k_.launch("ldd");
    m_ = m;
    n_ = n;
    weights_bytes_ = std::int64_t{WeightPacking::kBytes} * chunks_ * about_.consumers;
    activations_bytes_ = activations.bytes();
    const std::int64_t scales_bytes = load_scales ? load_scales->transaction_bytes() : 0;

    TiledMma product{
        .a = {arch::Major::k, plain_tile(about_.weights, packed_layout(about_.weights, tile_m_, about_.tile_k))},
        .b = {arch::Major::k, activations}};
    product.atom = WgmmaChoice{
        arch::find_wgmma_atom(about_.activations, about_.activations, DType::f32, arch::OperandSource::registers),
        about_.tile_n};
    product.warps_m = 4 * about_.consumers;
    const TiledMmaBuilder mma(k_, product);

    const std::int64_t transaction_bytes =
        load_weights.transaction_bytes() + load_activations.transaction_bytes() + scales_bytes;
    const Ring ring(k_, {.stages = about_.stages,
                         .stage_bytes = round_up(weights_bytes_ + activations_bytes_ + scales_bytes, kStageAlignment),
                         .transaction_bytes = transaction_bytes,
                         .writer_arrivals = 1,
                         .reader_arrivals = about_.consumers * 4});
    k_.branch(equal(k_.thread(), 0), [&] {
      prefetch_tensor_map(k_, load_weights.tensor_map());
      prefetch_tensor_map(k_, load_activations.tensor_map());
      if (load_scales) prefetch_tensor_map(k_, load_scales->tensor_map());
      ring.initialise();
      fence_mbarrier_init(k_);
    });
    synchronize(k_);

    constexpr std::array<std::array<int, 2>, 3> kRegisters{{{56, 240}, {40, 232}, {32, 160}}};
    const auto [of_producer, of_consumer] = kRegisters.at(static_cast<std::size_t>(about_.consumers - 1));
    const Roles roles(k_, {{"producer", 1, of_producer}, {"consumer", about_.consumers, of_consumer}});
    const PersistentTiles tiles(k_, ceil_div(m, tile_m_), ceil_div(n, about_.tile_n), 1, {about_.raster, false},
                                arch::limits(about_.target).sm_count);
    const Number steps = k_.computed("steps", ceil_div(extent_k, about_.tile_k));

    roles.play("producer", [&](const RoleThread& me) {
      k_.branch(less(me.thread, 32), [&] {
        by_one_thread(k_, [&] {
          const RingWriter writer(k_, ring);
          tiles.for_each([&](const TileIndex& tile) {
            k_.loop(steps, [&](const Number& step) {
              writer.write([&](const Number& stage) {
                const TiledCopyBuilder::Call call{.barrier = ring.full(stage)};
                const Number to = ring.stage(stage);
                load_weights.copy({0, step * (chunks_ * kLinesOfChunk), tile.m * about_.consumers}, to, call);
                load_activations.copy({tile.n * about_.tile_n, step * about_.tile_k}, to + weights_bytes_, call);
                if (load_scales) {
                  load_scales->copy({tile.m * tile_m_, step * about_.tile_k / about_.group},
                                    to + weights_bytes_ + activations_bytes_, call);
                }
              });
            });
          });
        });
      });
    });

    roles.play("consumer", [&](const RoleThread& me) {
      const Number warp = broadcast(k_, me.warpgroup * 4 + me.thread / 32);
      const RingReader reader(k_, ring, [&](const Number& barrier) {
        // All lanes have read their weights and scales before one of them releases the stage.
        synchronize_warp(k_);
        k_.branch(equal(me.thread % 32, 0), [&] { mbarrier_arrive(k_, barrier); });
      });
      tiles.for_each([&](const TileIndex& tile) {
        const Accumulators sums = use_ == ScaleUse::accumulators ? zero_sums() : mma.zeros();
        k_.loop(steps, [&](const Number&) {
          reader.read([&](const Number& stage) { multiply(mma, sums, ring.stage(stage), warp, me); });
        });
        store(mma, sums, warp, tile);
      });
    });
    return k_.build();
  }

 private:
  void check() const {
    check_type(about_.activations, {DType::f16, DType::bf16}, "activations");
    check_type(about_.scales, {DType::f16, DType::bf16, DType::f32}, "scales");
    check_type(about_.d, {DType::f16, DType::bf16, DType::f32}, "elements of D");
    if (about_.consumers < 1 || about_.consumers > 3)
      throw InvalidArgument(fmt::format("1 to 3 warpgroups multiply, got {}", about_.consumers));
    if (about_.tile_k < 1 || about_.tile_k % packing_.chunk_k != 0) {
      throw InvalidArgument(fmt::format("tile_k must be a multiple of {}, the k of a chunk of packed {}, got {}",
                                        packing_.chunk_k, tilewright::name(about_.weights), about_.tile_k));
    }
    if (!use_) return;
    if (about_.group % kInstructionK != 0 || (about_.group % about_.tile_k != 0 && about_.tile_k % about_.group != 0)) {
      throw InvalidArgument(
          fmt::format("the group must be a multiple of tile_k, {0}, or a multiple of {1} that divides it, got {2}",
                      about_.tile_k, kInstructionK, about_.group));
    }
    if (*use_ == ScaleUse::weights && about_.scales != about_.activations) {
      throw InvalidArgument(fmt::format("scales that multiply weights have the type of the activations, {}, got {}",
                                        tilewright::name(about_.activations), tilewright::name(about_.scales)));
    }
  }

  TiledCopyBuilder weights_copy(const Number& m, const Number& extent_k) {
    const Number lines = ceil_div(extent_k, packing_.chunk_k) * kLinesOfChunk;
    const int lines_of_tile = chunks_ * kLinesOfChunk;
    return {k_,
            CopyAtom::tma,
            {.name = "weights",
             .element = DType::s32,
             .extents = {kLineWords, lines, ceil_div(m, WeightPacking::kRows)},
             .strides = {1, kLineWords, lines * kLineWords}},
            plain_tile(DType::s32, make_layout({kLineWords, lines_of_tile, about_.consumers}))};
  }

  /// Accumulators of f32 that are 0 before the first group is added.
  Accumulators zero_sums() {
    const int count = about_.tile_n / 2;
    std::string text;
    for (int i = 0; i < count; ++i) text += fmt::format("mov.f32 $0.{}, 0f00000000;\n", i);
    const Value zeros = k_.instruction(text, {output(RegisterType::f32, count)}, Effect::pure).front();
    return {.cells = {k_.cell(zeros)}, .started = k_.cell(1, 2)};
  }

  /// sums += the weights of one stage, times their scales, times the activations.
  void multiply(const TiledMmaBuilder& mma, const Accumulators& sums, const Number& stage, const Number& warp,
                const RoleThread& me) {
    std::vector<Value> words;  // of each chunk: 16 bytes of the thread
    for (int chunk = 0; chunk < chunks_; ++chunk) {
      const Number at = (warp / 4 * chunks_ + chunk) * WeightPacking::kBytes + me.thread * kThreadBytes;
      words.push_back(load_shared(k_, stage + at, RegisterType::b32, kFragment));
    }
    const int segments = about_.tile_k / segment_;
    const Number row = warp * 16 + k_.thread() % 32 / 4;  // of the thread's first elements; the second are 8 below
    std::vector<std::array<Value, 2>> scales;
    for (int segment = 0; segment < segments && use_; ++segment) {
      const auto load = [&](int below) {
        const Number at = (row + segment * tile_m_ + below) * (bits(about_.scales) / 8);
        const RegisterType type = about_.scales == DType::f32 ? RegisterType::f32 : RegisterType::b16;
        const Value scale = load_shared(k_, stage + weights_bytes_ + activations_bytes_ + at, type);
        return *use_ == ScaleUse::weights ? duplicate(k_, scale) : to_f32(k_, scale, about_.scales);
      };
      scales.push_back({load(0), load(8)});
    }

    const int steps = about_.tile_k / kInstructionK, steps_of_segment = segment_ / kInstructionK;
    const auto convert = [&](int first_step) {
      std::vector<std::vector<Value>> fragments;
      for (int step = first_step; step < first_step + piece_steps_; ++step) {
        const Value& chunk = words[static_cast<std::size_t>(step / packing_.steps)];
        const int words_of_step = kFragment / packing_.steps;
        std::vector<Value> packed;
        for (int i = 0; i < words_of_step; ++i) packed.push_back(chunk[step % packing_.steps * words_of_step + i]);
        Value fragment = widen(k_, about_.weights, about_.activations, packed);
        if (use_ == ScaleUse::weights) {
          const auto& [first, second] = scales[static_cast<std::size_t>(step / steps_of_segment)];
          fragment = scale_fragment(k_, about_.activations, fragment, first, second);
        }
        fragments.push_back({fragment});
      }
      return fragments;
    };

    // The next fragments are converted while wgmma multiplies the last ones, whose registers it reads until the wait.
    std::vector<std::vector<Value>> fragments = convert(0), next;
    std::optional<Accumulators> of_group;
    for (int step = 0; step < steps; step += piece_steps_) {
      if (use_ == ScaleUse::accumulators && step % steps_of_segment == 0) of_group = mma.zeros();
      const Accumulators& accumulators = of_group ? *of_group : sums;
      mma.fma_fragments(accumulators, fragments, stage + weights_bytes_, step);
      next.clear();
      if (step + piece_steps_ < steps) next = convert(step + piece_steps_);
      ValueCells written = accumulators.cells;
      for (const std::vector<Value>& fragment : fragments) written.push_back(k_.cell(fragment.front()));
      wait_for_wgmma(k_, 0, written);
      if (of_group && (step + piece_steps_) % steps_of_segment == 0) {
        const auto& [first, second] = scales[static_cast<std::size_t>(step / steps_of_segment)];
        add_scaled(sums.cells.front(), of_group->cells.front().get(), first, second);
      }
      fragments = std::move(next);
    }
  }

  /// sum += scale * group; the registers are two columns of the thread's first row, then two of the second, and so on.
  void add_scaled(const ValueCell& sum, const Value& group, const Value& first, const Value& second) {
    std::string text;
    for (int i = 0; i < group.count; ++i)
      text += fmt::format("fma.rn.f32 $0.{0}, $1.{0}, ${1}, $0.{0};\n", i, i / 2 % 2 == 0 ? 2 : 3);
    sum.set(k_.instruction(text, {update(sum.get()), input(group), input(first), input(second)}, Effect::pure).front());
  }

  void store(const TiledMmaBuilder& mma, const Accumulators& sums, const Number& warp, const TileIndex& tile) {
    const std::int64_t bytes = bits(about_.d) / 8;
    std::array<Value, 2> scales;  // of the thread's two rows
    if (!use_) {
      for (const int i : {0, 1}) {
        const Number row = tile.m * tile_m_ + warp * 16 + k_.thread() % 32 / 4 + 8 * i;
        const RegisterType type = about_.scales == DType::f32 ? RegisterType::f32 : RegisterType::b16;
        const Value scale = load_global_if(k_, less(row, m_), row_scales_, row * (bits(about_.scales) / 8), type);
        scales[static_cast<std::size_t>(i)] = to_f32(k_, scale, about_.scales);
      }
    }
    const Number stride_m = (about_.d_is_m_contiguous ? Number(1) : ldd_) * bytes;
    const Number stride_n = (about_.d_is_m_contiguous ? ldd_ : Number(1)) * bytes;
    // The pairs of a thread: two columns of its first row, then of its second, then those 8 columns further. Addresses
    // follow from each other, because the registers are not enough for all of them at once.
    std::array<Value, 2> addresses;  // of the two columns, in the first row
    int pairs = 0;
    mma.for_each_pair(sums, warp, [&](const AccumulatorPair& pair) {
      const int is_second_row = pairs % 2;
      const Number row = tile.m * tile_m_ + pair.row, column = tile.n * about_.tile_n + pair.column;
      if (is_second_row == 0) {
        addresses[0] = pairs == 0 ? global_address(k_, d_, row * stride_m + column * stride_n)
                                  : global_address(k_, addresses[0], stride_n * kColumnsOfPairs);
        addresses[1] = global_address(k_, addresses[0], stride_n);
      }
      for (const std::size_t i : {0U, 1U}) {
        Value value = i == 0 ? pair.low : pair.high;
        if (!use_) value = program::multiply(k_, value, scales[static_cast<std::size_t>(is_second_row)]);
        const Number holds = both(less(row, m_), less(column + static_cast<int>(i), n_));
        store_global_if(k_, holds, addresses[i], stride_m * (is_second_row * kRowsOfPairs),
                        {from_f32(k_, about_.d, value)});
      }
      ++pairs;
    });
  }

  WeightGemmDescription about_;
  WeightPacking packing_;
  std::optional<ScaleUse> use_;
  KernelBuilder k_;
  int tile_m_;
  int chunks_ = 0;                                          // along k, of a stage
  int segment_ = 0;                                         // k of a stage with the same scales
  int piece_steps_ = 0;                                     // instructions of one group of wgmma
  std::int64_t weights_bytes_ = 0, activations_bytes_ = 0;  // of a stage; the scales follow
  Number m_, n_, ldd_;
  Value d_, row_scales_;
};

}  // namespace

std::string_view name(ScaleUse use) { return use == ScaleUse::weights ? "weights" : "accumulators"; }

std::optional<ScaleUse> scale_use(const WeightGemmDescription& about) {
  if (about.group == 0) return std::nullopt;
  if (about.scale_use) return about.scale_use;
  if (about.scales != about.activations) return ScaleUse::accumulators;
  const int segment = std::min(about.group, about.tile_k);
  const int for_weights = segment / kInstructionK * kFragment, for_accumulators = about.tile_n / 2;
  return for_weights < for_accumulators ? ScaleUse::weights : ScaleUse::accumulators;
}

Result<Program> weight_gemm(std::string symbol, const WeightGemmDescription& description) {
  try {
    return WeightGemmAuthor(std::move(symbol), description).write();
  } catch (const InvalidArgument& error) {
    return refuse("{}", error.what()).as(RefusalCode::design);
  }
}

}  // namespace tilewright::program
