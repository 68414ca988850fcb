#include "tilewright/program/weight_gemm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "tilewright/arch/limits.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/base/rounding.hpp"
#include "tilewright/program/packed_weights.hpp"
#include "tilewright/program/ring.hpp"
#include "tilewright/program/roles.hpp"
#include "tilewright/program/staged_output.hpp"
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
/// Registers of a thread for the rows and columns of one 8 x 8 matrix and the one below it.
constexpr int kRegistersOfColumns = 4;
constexpr int kSumBytes = 4;
/// Registers of a thread for fragments of two groups of wgmma, packed weights, scales and addresses, and those for more
/// addresses of a stage with more than two chunks along k; from ptxas -v.
constexpr int kBesideAccumulators = 72, kForMoreChunks = 8;
constexpr int kMaxSplitK = 8;
constexpr int kAllTiles = std::numeric_limits<int>::max();

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

/// The largest number from `most` down to 1 that `divides`.
int largest_part(int most, const std::function<bool(int)>& divides) {
  int part = std::max(most, 1);
  while (part > 1 && !divides(part)) --part;
  return part;
}

/// The panels by which a warpgroup stores its rows of a tile, two at a time.
StagingUse staging_of(const WeightGemmDescription& about) {
  constexpr int kMaxColumns = 32;
  const int columns = std::min(kMaxColumns, about.tile_n / 2);
  return {
      .major = arch::Major::mn, .columns = columns, .panels_n = about.tile_n / columns, .warpgroups = about.consumers};
}

int registers_beside_accumulators(const WeightGemmDescription& about) {
  return kBesideAccumulators + (about.tile_k > 2 * kInstructionK * steps_of_chunk(about.weights) ? kForMoreChunks : 0);
}

int registers_at_launch(const WeightGemmDescription& about) {
  const arch::ArchLimits& limits = arch::limits(about.target);
  return std::min(limits.registers_per_sm / (about.ctas_per_sm * kWarpgroup * (1 + about.consumers)) / 8 * 8,
                  limits.max_registers_per_thread);
}

int producer_registers(const WeightGemmDescription& about) {
  constexpr std::array kProducer{56, 40, 32};
  return about.ctas_per_sm > 1 ? 24 : kProducer.at(static_cast<std::size_t>(std::clamp(about.consumers, 1, 3)) - 1);
}

int consumer_registers(const WeightGemmDescription& about) {
  const int given = registers_at_launch(about) * (1 + about.consumers) - producer_registers(about);
  return std::min(given / about.consumers / 8 * 8, 240);
}

/// Whether two sets of accumulators beside their sum fit in the registers, so that a scale multiplies one set while
/// wgmma writes the other.
bool spans_take_turns(const WeightGemmDescription& about) {
  return 3 * about.tile_n / 2 + registers_beside_accumulators(about) <= consumer_registers(about);
}

/// Number of consecutive k in a stage with one scale.
int segment_of(const WeightGemmDescription& about) {
  return about.group == 0 ? about.tile_k : std::min(about.group, about.tile_k);
}

/// Number of consecutive k whose products are summed before a scale multiplies them, for ScaleUse::accumulators. If two
/// sets of accumulators take turns, a stage has an even number of spans.
int span_of(const WeightGemmDescription& about) {
  const int segment = segment_of(about), steps = about.tile_k / kInstructionK;
  if (!spans_take_turns(about)) return segment;
  return kInstructionK * largest_part(segment / kInstructionK, [&](int part) {
           return steps % (2 * part) == 0 && segment / kInstructionK % part == 0;
         });
}

class WeightGemmAuthor {
 public:
  WeightGemmAuthor(std::string symbol, const WeightGemmDescription& description)
      : about_(description),
        packing_(weight_packing(description.weights)),
        use_(scale_use(description)),
        k_(std::move(symbol), description.target, kWarpgroup * (1 + std::clamp(description.consumers, 1, 3)),
           {std::clamp(description.cluster_m, 1, 2), 1, std::clamp(description.split_k, 1, kMaxSplitK)}),
        tile_m_(WeightPacking::kRows * description.consumers) {
    check();
    chunks_ = about_.tile_k / packing_.chunk_k;
    segment_ = segment_of(about_);
    const WeightGemmPipeline pipeline = pipeline_of(about_);
    span_steps_ = pipeline.span / kInstructionK;
    piece_steps_ = pipeline.group / kInstructionK;
    k_.set_min_ctas(about_.ctas_per_sm);
  }

  Program write() {
    const int aligned_d = about_.stores_by_tma ? kLineAlignment * 8 / bits(about_.d) : 1;
    const Number m = k_.launch("m", aligned_d, 1), n = k_.launch("n", 1, 1), extent_k = k_.launch("k", 1, 1);
    const SharedTile activations = activations_tile(about_);
    const TiledCopyBuilder load_weights = weights_copy(m, extent_k);
    const TiledCopyBuilder load_activations(
        k_, CopyAtom::tma,
        {.name = "activations",
         .element = about_.activations,
         .extents = {n, extent_k},
         .strides = {k_.launch("ld_activations", kLineAlignment * 8 / bits(about_.activations)), 1}},
        activations, kWarpgroup, about_.cluster_m);
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
    ldd_ = k_.launch("ldd", aligned_d);
    std::optional<StagedOutput> staged;
    if (about_.stores_by_tma) {
      const Tensor d{.name = "d", .element = about_.d, .extents = {m, n}, .strides = {1, ldd_}};
      staged.emplace(k_, d, staging_of(about_));
    } else {
      d_ = k_.address("d", bits(about_.d) / 8);
    }
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
                         .reader_arrivals = about_.consumers * 4 * about_.cluster_m});
    if (about_.split_k > 1) check_exchange(ring);
    k_.branch(equal(k_.thread(), 0), [&] {
      prefetch_tensor_map(k_, load_weights.tensor_map());
      prefetch_tensor_map(k_, load_activations.tensor_map());
      if (load_scales) prefetch_tensor_map(k_, load_scales->tensor_map());
      if (staged) prefetch_tensor_map(k_, staged->copy().tensor_map());
      ring.initialise();
      fence_mbarrier_init(k_);
    });
    about_.cluster_m == 1 ? synchronize(k_) : synchronize_cluster(k_);
    k_.wait_for_last_kernel();

    const WeightGemmRegisters registers = registers_of(about_);
    const Roles roles(k_, {{"producer", 1, registers.producer}, {"consumer", about_.consumers, registers.consumer}});
    // With split-K each cluster computes one tile, because partial sums overwrite the stages.
    const int most_clusters =
        arch::resident_clusters(arch::limits(about_.target), about_.cluster_m) * about_.ctas_per_sm;
    const PersistentTiles tiles(k_, ceil_div(m, tile_m_), ceil_div(n, about_.tile_n), 1, {about_.raster, false},
                                about_.split_k == 1 ? most_clusters : kAllTiles);
    const Number steps = k_.computed("steps", ceil_div(extent_k, about_.tile_k));
    if (about_.split_k > 1) {
      k_.require(negation(less(steps, about_.split_k)),
                 fmt::format("k must have at least {} tiles of {}", about_.split_k, about_.tile_k), steps);
    }
    const Number part = about_.split_k == 1 ? Number(0) : k_.cluster_rank();
    const Number first_step = part * steps / about_.split_k, end_step = (part + 1) * steps / about_.split_k;

    roles.play("producer", [&](const RoleThread& me) {
      k_.branch(less(me.thread, 32), [&] {
        by_one_thread(k_, [&] {
          const RingWriter writer(k_, ring);
          tiles.for_each([&](const TileIndex& tile) {
            k_.loop(first_step, end_step, 1, [&](const Number& step) {
              writer.write([&](const Number& stage) {
                const TiledCopyBuilder::Call call{.barrier = ring.full(stage)};
                TiledCopyBuilder::Call shared = call;
                if (about_.cluster_m > 1) {
                  shared.slice = k_.cluster_rank();
                  shared.ctas = (1 << about_.cluster_m) - 1;
                }
                const Number to = ring.stage(stage);
                load_weights.copy({0, step * (chunks_ * kLinesOfChunk), tile.m * about_.consumers}, to, call);
                load_activations.copy({tile.n * about_.tile_n, step * about_.tile_k}, to + weights_bytes_, shared);
                if (load_scales) {
                  load_scales->copy({tile.m * tile_m_, step * about_.tile_k / about_.group},
                                    to + weights_bytes_ + activations_bytes_, call);
                }
              });
            });
          });
          launch_dependents(k_);
          // The other CTA's loads and arrivals need this CTA's shared memory.
          if (about_.cluster_m > 1) writer.wait_for_readers();
        });
      });
    });

    roles.play("consumer", [&](const RoleThread& me) {
      const Number warp = broadcast(k_, me.warpgroup * 4 + me.thread / 32);
      const RingReader reader(k_, ring, [&](const Number& barrier) {
        // All lanes have read their weights and scales before one of them releases the stage.
        synchronize_warp(k_);
        const Number lane = me.thread % 32;
        if (about_.cluster_m == 1) {
          k_.branch(equal(lane, 0), [&] { mbarrier_arrive(k_, barrier); });
        } else {
          k_.branch(less(lane, about_.cluster_m), [&] { mbarrier_arrive_at(k_, barrier, lane); });
        }
      });
      std::optional<StagedWriter> writer;
      if (staged) writer.emplace(k_, *staged, me, warp);
      tiles.for_each([&](const TileIndex& tile) {
        const Mainloop mainloop = begin_mainloop(mma, ring.stage(reader.begin_read()), warp, me);
        k_.loop(first_step, end_step, 1, [&](const Number& step) {
          multiply(mainloop, mma, ring, reader, equal(step + 1, end_step), warp, me);
        });
        end_mainloop(mainloop, reader);
        std::vector<Value> results = results_of(mainloop.sums, warp, tile);
        if (writer) {
          writer->begin(tile.m * tile_m_ + warp / 4 * WeightPacking::kRows, tile.n * about_.tile_n);
          for (std::size_t i = 0; i < results.size(); i += 2) writer->put({results[i], results[i + 1]});
          return;
        }
        Number first = 0;  // of the accumulators that this CTA stores
        if (about_.split_k > 1) {
          results = exchange(results, ring, me);
          first = k_.cluster_rank() * static_cast<int>(results.size());
        }
        store(mma, results, first, warp, tile);
      });
      if (writer) writer->finish();
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
    if (about_.ctas_per_sm < 1)
      throw InvalidArgument(fmt::format("an SM has 1 CTA or more, got {}", about_.ctas_per_sm));
    check_split_k();
    if (about_.stores_by_tma && !can_store_by_tma(about_)) {
      throw InvalidArgument(fmt::format(
          "TMA stores 16-bit elements along m of tiles of 32 columns or more without split-K, got {} along {}, "
          "{} columns and split_k {}",
          tilewright::name(about_.d), about_.d_is_m_contiguous ? "m" : "n", about_.tile_n, about_.split_k));
    }
    const WeightGemmRegisters registers = registers_of(about_);
    if (registers.needed > registers.consumer) {
      throw InvalidArgument(fmt::format("a tile_n of {} needs about {} registers a thread, of {}", about_.tile_n,
                                        registers.needed, registers.consumer));
    }
    if (registers.of_instruction > registers.at_launch) {
      throw InvalidArgument(
          fmt::format("an instruction of {} columns needs {} registers a thread, of {} with {} CTAs on an SM",
                      about_.tile_n, registers.of_instruction, registers.at_launch, about_.ctas_per_sm));
    }
    if (!use_) return;
    if (!group_fits(about_)) {
      throw InvalidArgument(
          fmt::format("the group must be a multiple of tile_k, {0}, or a multiple of {1} that divides it, got {2}",
                      about_.tile_k, kInstructionK, about_.group));
    }
    if (*use_ == ScaleUse::weights && about_.scales != about_.activations) {
      throw InvalidArgument(fmt::format("scales that multiply weights have the type of the activations, {}, got {}",
                                        tilewright::name(about_.activations), tilewright::name(about_.scales)));
    }
  }

  void check_split_k() const {
    if (about_.split_k != 1 && about_.split_k != 2 && about_.split_k != 4 && about_.split_k != 8)
      throw InvalidArgument(fmt::format("split_k must be 1, 2, 4 or 8, got {}", about_.split_k));
    // Each CTA stores whole columns of four registers, or a part of those four.
    const int accumulators = about_.tile_n / 2, share = accumulators / about_.split_k;
    if (about_.cluster_m != 1 && (about_.cluster_m != 2 || about_.split_k != 1)) {
      throw InvalidArgument(fmt::format("cluster_m must be 1, or 2 without split-K, got {} and split_k {}",
                                        about_.cluster_m, about_.split_k));
    }
    if (about_.split_k == 1) return;
    if (accumulators % about_.split_k != 0 || (share % kRegistersOfColumns != 0 && kRegistersOfColumns % share != 0)) {
      throw InvalidArgument(
          fmt::format("split_k {} must divide the {} accumulators of a thread into multiples of {}, 2 or 1",
                      about_.split_k, accumulators, kRegistersOfColumns));
    }
  }

  void check_exchange(const Ring& ring) const {
    const std::int64_t stages = ring.use().stages * ring.use().stage_bytes;
    const std::int64_t sums = std::int64_t{tile_m_} * about_.tile_n * kSumBytes;
    if (sums <= stages) return;
    throw InvalidArgument(
        fmt::format("with split-K, the sums of a tile, {} bytes, must fit in the stages, {} bytes", sums, stages));
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

  bool scale_spans() const { return use_ == ScaleUse::accumulators; }

  /// The scales of a thread's two rows, for a segment of a stage: an f32 for accumulators, a pair for weights.
  using RowScales = std::array<Value, 2>;
  RowScales load_scales(const Number& stage, int segment, const Number& warp) {
    const Number row = warp * 16 + k_.thread() % 32 / 4;
    const auto load = [&](int below) {
      const Number at = (row + segment * tile_m_ + below) * (bits(about_.scales) / 8);
      const RegisterType type = about_.scales == DType::f32 ? RegisterType::f32 : RegisterType::b16;
      const Value scale = load_shared(k_, stage + weights_bytes_ + activations_bytes_ + at, type);
      return use_ == ScaleUse::weights ? duplicate(k_, scale) : to_f32(k_, scale, about_.scales);
    };
    return {load(0), load(kRowsOfPairs)};
  }

  /// The 16 bytes of a chunk of a stage that are the thread's.
  Value load_words(const Number& stage, int chunk, const Number& warp, const RoleThread& me) {
    const Number at = (warp / 4 * chunks_ + chunk) * WeightPacking::kBytes + me.thread * kThreadBytes;
    return load_shared(k_, stage + at, RegisterType::b32, kFragment);
  }

  /// The fragments of one group of wgmma, from `first_step` on, of the words of its chunk.
  std::vector<Value> convert(const Value& words, int first_step, const RowScales& scales) {
    const int words_of_step = kFragment / packing_.steps;
    std::vector<Value> fragments;
    for (int step = first_step; step < first_step + piece_steps_; ++step) {
      std::vector<Value> packed;
      for (int i = 0; i < words_of_step; ++i) packed.push_back(words[step % packing_.steps * words_of_step + i]);
      Value fragment = widen(k_, about_.weights, about_.activations, packed);
      if (use_ == ScaleUse::weights) fragment = scale_fragment(k_, about_.activations, fragment, scales[0], scales[1]);
      fragments.push_back(fragment);
    }
    return fragments;
  }

  /// The packed words of one chunk of a stage and, if these multiply weights, the scales of one segment.
  struct Loaded {
    Value words = {};
    RowScales scales = {};
    int chunk = -1, segment = -1;
  };
  /// Appends the loads that the conversion for instruction `step` of a stage needs, beyond what `loaded` has.
  void load(Loaded& loaded, const Number& stage, int step, const Number& warp, const RoleThread& me) {
    const int chunk = step / packing_.steps, segment = step / (segment_ / kInstructionK);
    if (std::exchange(loaded.chunk, chunk) != chunk) loaded.words = load_words(stage, chunk, warp, me);
    if (use_ == ScaleUse::weights && std::exchange(loaded.segment, segment) != segment)
      loaded.scales = load_scales(stage, segment, warp);
  }

  /// The registers of a thread that the mainloop carries.
  struct Mainloop {
    Accumulators sums;
    ValueCells next = {};  // the fragments of the next group of wgmma
    ValueCells read = {};  // those that the newest group reads
  };

  Mainloop begin_mainloop(const TiledMmaBuilder& mma, const Number& stage, const Number& warp, const RoleThread& me) {
    Mainloop loop{.sums = scale_spans() ? zero_sums() : mma.zeros()};
    Loaded first;
    load(first, stage, 0, warp, me);
    for (const Value& fragment : convert(first.words, 0, first.scales)) {
      loop.next.push_back(k_.cell(fragment));
      loop.read.push_back(k_.cell(k_.undefined(RegisterType::b32, kFragment)));
    }
    return loop;
  }

  /// The products of consecutive k, and the scales that multiply their sums.
  struct Span {
    Accumulators accumulators;
    RowScales scales;
  };

  /// Accumulators of f32 that are 0 before the first span is added.
  Accumulators zero_sums() {
    const int count = about_.tile_n / 2;
    std::string text;
    for (int i = 0; i < count; ++i) text += fmt::format("mov.f32 $0.{}, 0f00000000;\n", i);
    const Value zeros = k_.instruction(text, {output(RegisterType::f32, count)}, Effect::pure).front();
    return {.cells = {k_.cell(zeros)}, .started = k_.cell(1, 2)};
  }

  /// sums += the weights of the reader's stage, times their scales, times the activations. The fragments of a group of
  /// wgmma are converted while the group before it runs, which is waited for when this group has been issued: the
  /// tensor cores have a group to do at all times. The first group of the next stage is converted too, unless
  /// `is_last`.
  void multiply(const Mainloop& loop, const TiledMmaBuilder& mma, const Ring& ring, const RingReader& reader,
                const Number& is_last, const Number& warp, const RoleThread& me) {
    const int steps = about_.tile_k / kInstructionK, steps_of_segment = segment_ / kInstructionK;
    const Number number = reader.stage(), stage = ring.stage(number);
    Loaded loaded;
    std::optional<Span> span, last_span;  // that wgmma multiplies now, and that it has left
    for (int step = 0; step < steps; step += piece_steps_) {
      const int next = step + piece_steps_;
      if (next < steps) {
        load(loaded, stage, next, warp, me);
      } else {
        loaded = {};
        load(loaded, ring.stage(reader.begin_read_ahead(is_last)), 0, warp, me);
      }
      last_span.reset();
      if (scale_spans() && step % span_steps_ == 0)
        last_span = std::exchange(span, Span{mma.zeros(), load_scales(stage, step / steps_of_segment, warp)});
      std::vector<std::vector<Value>> fragments;
      for (const ValueCell& cell : loop.next) fragments.push_back({cell.get()});
      mma.fma_fragments(span ? span->accumulators : loop.sums, fragments, stage + weights_bytes_, step);
      // The group before the newest has ended.
      ValueCells completed = loop.read;
      if (last_span) completed.push_back(last_span->accumulators.cells.front());
      wait_for_wgmma(k_, 1, completed);
      if (step == 0 && !scale_spans()) reader.release_held();
      if (last_span) add_scaled(loop.sums, *last_span);
      const std::vector<Value> converted = convert(loaded.words, next, loaded.scales);
      for (std::size_t i = 0; i < converted.size(); ++i) {
        loop.read[i].set(fragments[i].front());
        loop.next[i].set(converted[i]);
      }
      if (!span || next % span_steps_ != 0 || (spans_take_turns(about_) && next < steps)) continue;
      // ptxas serialises wgmma if another iteration reads its accumulators (C7514): the last span of a stage is waited
      // for.
      ValueCells written = span->accumulators.cells;
      written.insert(written.end(), loop.read.begin(), loop.read.end());
      wait_for_wgmma(k_, 0, written);
      add_scaled(loop.sums, *std::exchange(span, std::nullopt));
    }
    scale_spans() ? reader.end_read(number) : reader.hold(number);
  }

  void end_mainloop(const Mainloop& loop, const RingReader& reader) {
    if (scale_spans()) return;
    ValueCells written = loop.sums.cells;
    written.insert(written.end(), loop.read.begin(), loop.read.end());
    reader.drain(written);
  }

  /// sums += scales * span; the registers are two columns of the thread's first row, then two of the second, and so on.
  void add_scaled(const Accumulators& sums, const Span& span) {
    const ValueCell& sum = sums.cells.front();
    const Value addend = span.accumulators.cells.front().get();
    std::string text;
    for (int i = 0; i < addend.count; ++i)
      text += fmt::format("fma.rn.f32 $0.{0}, $1.{0}, ${1}, $0.{0};\n", i, i / 2 % 2 == 0 ? 2 : 3);
    std::vector<Operand> operands{update(sum.get()), input(addend), input(span.scales[0]), input(span.scales[1])};
    sum.set(k_.instruction(text, std::move(operands), Effect::pure).front());
  }

  /// The sums of a thread, times the scales of their rows if the weights have such.
  std::vector<Value> results_of(const Accumulators& sums, const Number& warp, const TileIndex& tile) {
    const Value registers = sums.cells.front().get();
    std::array<Value, 2> scales;  // of the thread's two rows
    if (!use_) {
      for (const int i : {0, 1}) {
        const Number row = tile.m * tile_m_ + warp * 16 + k_.thread() % 32 / 4 + 8 * i;
        const RegisterType type = about_.scales == DType::f32 ? RegisterType::f32 : RegisterType::b16;
        const Value scale = load_global_if(k_, less(row, m_), row_scales_, row * (bits(about_.scales) / 8), type);
        scales[static_cast<std::size_t>(i)] = to_f32(k_, scale, about_.scales);
      }
    }
    std::vector<Value> results;
    for (int i = 0; i < registers.count; ++i) {
      results.push_back(use_ ? registers[i]
                             : program::multiply(k_, registers[i], scales[static_cast<std::size_t>(i / 2 % 2)]));
    }
    return results;
  }

  /// The sums over the whole k, of this CTA's share of the accumulators. Each CTA of the cluster has partial sums of
  /// all of them, sends each CTA its share, and adds what it has received in the order of k.
  std::vector<Value> exchange(const std::vector<Value>& partial, const Ring& ring, const RoleThread& me) {
    const int share = static_cast<int>(partial.size()) / about_.split_k;
    const int width = share % 4 == 0 ? 4 : share % 2 == 0 ? 2 : 1;  // registers that are moved together
    const int threads = kWarpgroup * about_.consumers;
    const Number thread = me.warpgroup * kWarpgroup + me.thread;
    const auto place = [&](const Number& sender, int vector) {
      return ring.stage(0) + ((sender * (share / width) + vector) * threads + thread) * (width * kSumBytes);
    };
    synchronize_cluster(k_);  // All CTAs have read their stages for the last time.
    for (int receiver = 0; receiver < about_.split_k; ++receiver) {
      for (int vector = 0; vector < share / width; ++vector) {
        const auto first = partial.begin() + receiver * share + vector * width;
        store_shared_at(k_, place(k_.cluster_rank(), vector), receiver, {first, first + width});
      }
    }
    synchronize_cluster(k_);
    std::vector<Value> sums;
    for (int vector = 0; vector < share / width; ++vector) {
      std::vector<Value> of_vector;
      for (int sender = 0; sender < about_.split_k; ++sender) {
        const Value received = load_shared(k_, place(sender, vector), RegisterType::f32, width);
        for (std::size_t i = 0; i < static_cast<std::size_t>(width); ++i) {
          const Value value = received[static_cast<int>(i)];
          if (sender == 0) {
            of_vector.push_back(value);
          } else {
            of_vector[i] = add(k_, of_vector[i], value);
          }
        }
      }
      sums.insert(sums.end(), of_vector.begin(), of_vector.end());
    }
    return sums;
  }

  /// Stores the results, which are those of the thread's accumulators from number `first` on.
  void store(const TiledMmaBuilder& mma, const std::vector<Value>& results, const Number& first, const Number& warp,
             const TileIndex& tile) {
    const std::int64_t bytes = bits(about_.d) / 8;
    const Number stride_m = (about_.d_is_m_contiguous ? Number(1) : ldd_) * bytes;
    const Number stride_n = (about_.d_is_m_contiguous ? ldd_ : Number(1)) * bytes;
    // Four registers are two columns of the thread's first row, then of its second; the next four are 8 columns
    // further. Addresses follow from each other, because the registers are not enough for all of them at once.
    const int count = static_cast<int>(results.size());
    std::array<Value, 2> addresses;  // of the two columns, in the first row
    for (int i = 0; i < count; ++i) {
      const AccumulatorPlace place = mma.place(first + i, warp);
      const Number row = tile.m * tile_m_ + place.row, column = tile.n * about_.tile_n + place.column;
      const auto parity = static_cast<std::size_t>(i % 2);
      const bool is_second_row = i % kRegistersOfColumns >= 2;
      if (i == 0 || count < kRegistersOfColumns) {
        addresses[parity] = global_address(k_, d_, row * stride_m + column * stride_n);
      } else if (parity == 1 && !is_second_row) {
        addresses[1] = global_address(k_, addresses[0], stride_n);
      } else if (parity == 0 && !is_second_row) {
        addresses[0] = global_address(k_, addresses[0], stride_n * kColumnsOfPairs);
      }
      const Number holds = both(less(row, m_), less(column, n_));
      store_global_if(k_, holds, addresses[parity], is_second_row ? stride_m * kRowsOfPairs : Number(0),
                      {from_f32(k_, about_.d, results[static_cast<std::size_t>(i)])});
    }
  }

  WeightGemmDescription about_;
  WeightPacking packing_;
  std::optional<ScaleUse> use_;
  KernelBuilder k_;
  int tile_m_;
  int chunks_ = 0;                                          // along k, of a stage
  int segment_ = 0;                                         // k of a stage with the same scales
  int span_steps_ = 0;                                      // instructions after which scales multiply accumulators
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
  if (!spans_take_turns(about)) return ScaleUse::weights;
  const int for_weights = about.tile_k / kInstructionK * kFragment;
  const int for_accumulators = about.tile_k / span_of(about) * (about.tile_n / 2);
  return for_weights <= for_accumulators ? ScaleUse::weights : ScaleUse::accumulators;
}

bool group_fits(const WeightGemmDescription& about) {
  if (about.group == 0) return true;
  return about.group % kInstructionK == 0 && (about.group % about.tile_k == 0 || about.tile_k % about.group == 0);
}

bool can_store_by_tma(const WeightGemmDescription& about) {
  constexpr int kMinN = 32;
  return about.d_is_m_contiguous && bits(about.d) == 16 && about.tile_n >= kMinN && about.tile_n % kMinN == 0 &&
         about.split_k == 1;
}

int staging_bytes(const WeightGemmDescription& about) {
  if (!about.stores_by_tma) return 0;
  const StagingUse use = staging_of(about);
  return use.warpgroups * use.buffers * StagedOutput::kRows * use.columns * bits(about.d) / 8;
}

WeightGemmPipeline pipeline_of(const WeightGemmDescription& about) {
  // A stage has an even number of groups, because two sets of fragments take turns: with an odd number, a loop would
  // copy registers that wgmma reads, and ptxas would serialise wgmma (C7513).
  WeightGemmPipeline pipeline{.span = span_of(about)};
  const int steps = about.tile_k / kInstructionK, steps_of_span = pipeline.span / kInstructionK;
  const int chunk = steps_of_chunk(about.weights);
  pipeline.group = kInstructionK * largest_part(std::min(chunk, steps_of_span), [&](int part) {
                     return steps % (2 * part) == 0 && steps_of_span % part == 0 && chunk % part == 0;
                   });
  return pipeline;
}

WeightGemmRegisters registers_of(const WeightGemmDescription& about) {
  WeightGemmRegisters registers;
  registers.producer = producer_registers(about);
  registers.consumer = consumer_registers(about);
  int sets = 1;  // of accumulators
  if (scale_use(about) == ScaleUse::accumulators) sets = spans_take_turns(about) ? 3 : 2;
  registers.needed = sets * about.tile_n / 2 + registers_beside_accumulators(about);
  // ptxas requires that one wgmma fits in the registers that a thread has at launch (C7602).
  constexpr int kBesideInstruction = 30;
  registers.at_launch = registers_at_launch(about);
  registers.of_instruction = about.tile_n / 2 + kBesideInstruction;
  return registers;
}

Result<Program> weight_gemm(std::string symbol, const WeightGemmDescription& description) {
  try {
    return WeightGemmAuthor(std::move(symbol), description).write();
  } catch (const InvalidArgument& error) {
    return refuse("{}", error.what()).as(RefusalCode::design);
  }
}

}  // namespace tilewright::program
