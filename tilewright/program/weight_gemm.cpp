#include "tilewright/program/weight_gemm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>
#include <vector>

#include "tilewright/arch/limits.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/base/rounding.hpp"
#include "tilewright/program/packed_weights.hpp"
#include "tilewright/program/ring.hpp"
#include "tilewright/program/roles.hpp"
#include "tilewright/program/tiled_copy.hpp"
#include "tilewright/program/tiled_mma.hpp"
#include "tilewright/program/tiles.hpp"
#include "tilewright/program/weight_gemm_choices.hpp"
#include "tilewright/program/widen.hpp"

namespace tilewright::program {
namespace {

using layout::Layout;
using layout::make_layout;

/// TMA needs lines that begin at multiples of this.
constexpr int kLineAlignment = 16;
constexpr int kStageAlignment = 1024;
/// A TMA box has at most 256 elements along a mode: a chunk of packed weights is two lines of 256 words.
constexpr int kLineWords = 256;
constexpr int kLinesOfChunk = WeightPacking::kBytes / (4 * kLineWords);
/// Distances of a thread's pairs of accumulators.
constexpr int kRowsOfPairs = 8, kColumnsOfPairs = 8;
constexpr int kThreadBytes = WeightPacking::kBytes / kWarpgroupThreads;
constexpr int kSumBytes = 4;
/// Sums that a thread sends at once through the workspace.
constexpr int kSentSums = 4, kFlagBytes = 4;
/// CTAs of a grid along x.
constexpr int kMaxCtas = std::numeric_limits<int>::max();

SharedTile plain_tile(DType element, Layout layout) { return {{{}, 0, std::move(layout)}, element}; }

SharedTile activations_tile(const WeightGemmDescription& description) {
  const int element_bits = bits(description.activations);
  const arch::SwizzleMode mode =
      arch::widest_swizzle(arch::Major::k, element_bits, description.tile_n, description.tile_k).value_or_throw();
  return {
      arch::smem_tile({.mode = mode, .element_bits = element_bits, .mn = description.tile_n, .k = description.tile_k})
          .value_or_throw(),
      description.activations};
}

class WeightGemmAuthor {
 public:
  WeightGemmAuthor(std::string symbol, const WeightGemmDescription& description)
      : description_(description),
        packing_(weight_packing(description.weights)),
        use_(scale_use(description)),
        k_(std::move(symbol), description.target,
           kWarpgroupThreads * (1 + std::clamp(all_consumers(description), 1, kMaxConsumers)),
           {std::clamp(description.cluster_m, 1, 2), 1, std::clamp(description.split_k, 1, kMaxSplitK)}),
        tile_m_(WeightPacking::kRows * description.consumers) {
    check(description_);
    chunks_ = description_.tile_k / packing_.chunk_k;
    part_k_ = part_k(description_);
    segment_ = segment_of(description_);
    const WeightGemmPipeline pipeline = pipeline_of(description_);
    span_steps_ = pipeline.span / kInstructionK;
    piece_steps_ = pipeline.group / kInstructionK;
    k_.set_min_ctas(description_.ctas_per_sm);
  }

  Program write() {
    const int aligned_d = description_.stores_by_tma ? kLineAlignment * 8 / bits(description_.d) : 1;
    m_ = k_.launch("m", aligned_d, 1);
    n_ = k_.launch("n", 1, 1);
    const Number extent_k = k_.launch("k", 1, 1);
    const Loads loads = make_loads(extent_k);
    ldd_ = k_.launch("ldd", aligned_d);
    std::optional<StagedOutput> staged;
    if (description_.stores_by_tma) {
      const Tensor d{.name = "d", .element = description_.d, .extents = {m_, n_}, .strides = {1, ldd_}};
      staged.emplace(k_, d, staging_of(description_));
    } else {
      d_ = k_.address("d", bits(description_.d) / 8);
    }
    const TiledMmaBuilder mma(k_, product());
    const Ring ring(
        k_, {.stages = description_.stages,
             .stage_bytes = round_up(weights_bytes_ + activations_bytes_ + loads.scales_bytes(), kStageAlignment),
             .transaction_bytes = loads.transaction_bytes(),
             .writer_arrivals = 1,
             .reader_arrivals = all_consumers(description_) * 4 * description_.cluster_m});
    if (parts_of_k(description_) > 1) check_exchange(ring);
    initialise(loads, staged, ring);

    const WeightGemmRegisters registers = registers_of(description_);
    const Roles roles(
        k_, {{"producer", 1, registers.producer}, {"consumer", all_consumers(description_), registers.consumer}});
    const Work work = make_work(extent_k);
    roles.play("producer", [&](const RoleThread& me) { produce(me, loads, ring, work); });
    roles.play("consumer", [&](const RoleThread& me) { consume(me, mma, ring, work, staged); });
    return k_.build();
  }

 private:
  /// The copies that fill a stage.
  struct Loads {
    TiledCopyBuilder weights, activations;
    std::optional<TiledCopyBuilder> scales;  // of groups; those of rows are not in the stages

    std::int64_t scales_bytes() const { return scales ? scales->transaction_bytes() : 0; }
    std::int64_t transaction_bytes() const {
      return weights.transaction_bytes() + activations.transaction_bytes() + scales_bytes();
    }
  };

  Loads make_loads(const Number& extent_k) {
    const SharedTile activations = activations_tile(description_);
    weights_bytes_ = std::int64_t{WeightPacking::kBytes} * chunks_ * description_.consumers;
    activations_bytes_ = activations.bytes();
    if (description_.consumers_k > 1)
      part_of_activations_ = activations.layout(0, part_k_) * bits(description_.activations) / 8;
    TiledCopyBuilder load_weights = weights_copy(m_, extent_k);
    TiledCopyBuilder load_activations(
        k_, CopyAtom::tma,
        {.name = "activations",
         .element = description_.activations,
         .extents = {n_, extent_k},
         .strides = {k_.launch("ld_activations", kLineAlignment * 8 / bits(description_.activations)), 1}},
        activations, kWarpgroupThreads, description_.cluster_m);
    Loads loads{.weights = std::move(load_weights), .activations = std::move(load_activations), .scales = {}};
    if (use_) {
      loads.scales.emplace(
          k_, CopyAtom::tma,
          Tensor{.name = "scales",
                 .element = description_.scales,
                 .extents = {m_, ceil_div(extent_k, description_.group)},
                 .strides = {1, k_.launch("ld_scales", kLineAlignment * 8 / bits(description_.scales))}},
          plain_tile(description_.scales, make_layout({tile_m_, description_.tile_k / segment_})));
    } else {
      row_scales_ = k_.address("scales", bits(description_.scales) / 8);
    }
    return loads;
  }

  /// Each warpgroup multiplies 64 rows of weights, which it has in registers, by all activations of the tile.
  TiledMma product() const {
    TiledMma product{.a = {arch::Major::k, plain_tile(description_.weights, packed_layout(description_.weights, tile_m_,
                                                                                          description_.tile_k))},
                     .b = {arch::Major::k, activations_tile(description_)}};
    product.atom = WgmmaChoice{arch::find_wgmma_atom(description_.activations, description_.activations, DType::f32,
                                                     arch::OperandSource::registers),
                               description_.tile_n};
    product.warps_m = 4 * description_.consumers;
    return product;
  }

  void initialise(const Loads& loads, const std::optional<StagedOutput>& staged, const Ring& ring) {
    k_.branch(equal(k_.thread(), 0), [&] {
      prefetch_tensor_map(k_, loads.weights.tensor_map());
      prefetch_tensor_map(k_, loads.activations.tensor_map());
      if (loads.scales) prefetch_tensor_map(k_, loads.scales->tensor_map());
      if (staged) prefetch_tensor_map(k_, staged->copy().tensor_map());
      ring.initialise();
    });
    description_.cluster_m == 1 ? synchronize(k_) : synchronize_cluster(k_);
    k_.wait_for_last_kernel();
  }

  /// The tiles of a CTA, and the steps along k of each.
  struct Work {
    std::optional<PersistentTiles> tiles;
    Number first_step, end_step;
    std::optional<StreamedTiles> streamed;  // instead of the others
    Number cta;                             // of those that stream

    void for_each(const std::function<void(const TilePart&)>& body) const {
      if (streamed) {
        streamed->for_each(cta, body);
      } else {
        tiles->for_each([&](const TileIndex& tile) { body({tile, first_step, end_step}); });
      }
    }
  };

  Work make_work(const Number& extent_k) {
    const int most_clusters =
        arch::resident_clusters(arch::limits(description_.target), description_.cluster_m) * description_.ctas_per_sm;
    const Number tiles_m = ceil_div(m_, tile_m_), tiles_n = ceil_div(n_, description_.tile_n);
    const plan::Raster raster{description_.raster, false};
    const Number steps = k_.computed("steps", ceil_div(extent_k, description_.tile_k));
    Work work;
    if (description_.streaming_ctas > 0) {
      work.streamed.emplace(k_, TileOrder(k_, tiles_m, tiles_n, 1, raster), steps, description_.streaming_ctas);
      workspace_ = k_.workspace(work.streamed->ctas() * sums_bytes());
      work.cta = work.streamed->cta();
      return work;
    }
    // Where k has several parts, each cluster computes one tile, because partial sums overwrite the stages.
    work.tiles.emplace(k_, tiles_m, tiles_n, 1, raster, parts_of_k(description_) == 1 ? most_clusters : kMaxCtas);
    if (description_.split_k > 1) {
      k_.require(negation(less(steps, description_.split_k)),
                 fmt::format("k must have at least {} tiles of {}", description_.split_k, description_.tile_k), steps);
    }
    const Number part = description_.split_k == 1 ? Number(0) : k_.cluster_rank();
    work.first_step = part * steps / description_.split_k;
    work.end_step = (part + 1) * steps / description_.split_k;
    return work;
  }

  void produce(const RoleThread& me, const Loads& loads, const Ring& ring, const Work& work) {
    k_.branch(less(me.thread, 32), [&] {
      by_one_thread(k_, [&] {
        const RingWriter writer(k_, ring);
        work.for_each([&](const TilePart& part) {
          k_.loop(part.first_step, part.end_step, 1, [&](const Number& step) {
            writer.write([&](const Number& stage) { fill(loads, ring, stage, part.tile, step); });
          });
        });
        launch_dependents(k_);
        // The other CTA's loads and arrivals need this CTA's shared memory.
        if (description_.cluster_m > 1) writer.wait_for_readers();
      });
    });
  }

  /// Appends the copies of one step along k to a stage.
  void fill(const Loads& loads, const Ring& ring, const Number& stage, const TileIndex& tile, const Number& step) {
    const TiledCopyBuilder::Call call{.barrier = ring.full(stage)};
    TiledCopyBuilder::Call shared = call;
    if (description_.cluster_m > 1) {
      shared.slice = k_.cluster_rank();
      shared.ctas = (1 << description_.cluster_m) - 1;
    }
    const Number to = ring.stage(stage);
    loads.weights.copy({0, step * (chunks_ * kLinesOfChunk), tile.m * description_.consumers}, to, call);
    loads.activations.copy({tile.n * description_.tile_n, step * description_.tile_k}, to + weights_bytes_, shared);
    if (loads.scales) {
      loads.scales->copy({tile.m * tile_m_, step * description_.tile_k / description_.group},
                         to + weights_bytes_ + activations_bytes_, call);
    }
  }

  /// This struct holds the objects that the statements of a consumer use.
  struct Consumer {
    const TiledMmaBuilder& mma;
    const Ring& ring;
    const RingReader& reader;
    RoleThread thread;
    Number warp;  // of those along m
    Number part;  // of the k of a stage
  };

  void consume(const RoleThread& me, const TiledMmaBuilder& mma, const Ring& ring, const Work& work,
               const std::optional<StagedOutput>& staged) {
    const Number warp = broadcast(k_, me.warpgroup % description_.consumers * 4 + me.thread / 32);
    const RingReader reader(k_, ring, [&](const Number& barrier) {
      // All lanes have read their weights and scales before one of them releases the stage.
      synchronize_warp(k_);
      const Number lane = me.thread % 32;
      if (description_.cluster_m == 1) {
        k_.branch(equal(lane, 0), [&] { mbarrier_arrive(k_, barrier); });
      } else {
        k_.branch(less(lane, description_.cluster_m), [&] { mbarrier_arrive_at(k_, barrier, lane); });
      }
    });
    const Consumer consumer{.mma = mma,
                            .ring = ring,
                            .reader = reader,
                            .thread = me,
                            .warp = warp,
                            .part = me.warpgroup / description_.consumers};
    std::optional<StagedWriter> writer;
    if (staged) writer.emplace(k_, *staged, me, warp);
    work.for_each([&](const TilePart& part) {
      const Mainloop mainloop = begin_mainloop(consumer);
      k_.loop(part.first_step, part.end_step, 1,
              [&](const Number& step) { multiply(mainloop, consumer, equal(step + 1, part.end_step)); });
      end_mainloop(mainloop, reader);
      if (!work.streamed) {
        finish_tile(mainloop.sums, consumer, part.tile, writer);
        return;
      }
      k_.branch(
          equal(part.first_step, 0),
          [&] {
            receive(mainloop.sums, consumer, work.cta, work.streamed->is_continued(part));
            finish_tile(mainloop.sums, consumer, part.tile, writer);
          },
          [&] { send(mainloop.sums, consumer, work.cta); });
    });
    if (writer) writer->finish();
  }

  /// Stores the sums of a tile over its whole k, or over this CTA's part of k if there are several.
  void finish_tile(const Accumulators& sums, const Consumer& consumer, const TileIndex& tile,
                   std::optional<StagedWriter>& writer) {
    std::vector<Value> results = results_of(sums, consumer.warp, tile);
    if (writer) {
      writer->begin(tile.m * tile_m_ + consumer.warp / 4 * WeightPacking::kRows, tile.n * description_.tile_n);
      for (std::size_t i = 0; i < results.size(); i += 2) writer->put({results[i], results[i + 1]});
      return;
    }
    Number first = 0;  // of the accumulators that this warpgroup stores
    if (parts_of_k(description_) > 1) {
      results = exchange(results, consumer);
      first = part_number(consumer) * static_cast<int>(results.size());
    }
    store(results, first, consumer, tile);
  }

  /// The bytes of the sums of a tile, which a CTA that streams writes to the workspace for one tile at most: the first
  /// one of which it has a part.
  std::int64_t sums_bytes() const { return std::int64_t{tile_m_} * description_.tile_n * kSumBytes; }
  /// The offset of the flag of a warp's sums in the workspace.
  Number flag_of(const Number& cta, const Consumer& consumer) const {
    return workspace_.flags + (cta * (4 * description_.consumers) + consumer.warp) * kFlagBytes;
  }
  /// The offset of the first kSentSums sums that a thread of a CTA sends, and the distance to the next ones.
  Number sent_sums(const Number& cta, const Consumer& consumer) const {
    const Number thread = consumer.warp / 4 * kWarpgroupThreads + consumer.thread.thread;
    return workspace_.data + cta * sums_bytes() + thread * (kSentSums * kSumBytes);
  }
  int bytes_between_sent_sums() const { return kWarpgroupThreads * description_.consumers * kSentSums * kSumBytes; }

  /// Writes a warp's sums over this CTA's part of a tile's k to the workspace.
  void send(const Accumulators& sums, const Consumer& consumer, const Number& cta) {
    const Value sent = sums.cells.front().get();
    std::string stores;
    for (int i = 0; i < sent.count; i += kSentSums) {
      stores += fmt::format("st.global.v4.f32 [$0 + {}], {{$1.{}, $1.{}, $1.{}, $1.{}}};\n",
                            i / kSentSums * bytes_between_sent_sums(), i, i + 1, i + 2, i + 3);
    }
    k_.instruction("{\n" + stores + "}",
                   {input(global_address(k_, workspace_.address, sent_sums(cta, consumer))), input(sent)});
    raise_flag(k_, workspace_.address, flag_of(cta, consumer));
  }

  /// Adds what the same warp of the CTA after this one sends, if `holds` is not 0. The instruction has the branch
  /// around the additions, and changes the sums in place: a branch of the program would make ptxas copy all sums, and
  /// spill.
  void receive(const Accumulators& sums, const Consumer& consumer, const Number& cta, const Number& holds) {
    const Number from = cta + 1;
    k_.branch(holds, [&] { wait_for_flag(k_, workspace_.address, flag_of(from, consumer)); });
    const ValueCell& sum = sums.cells.front();
    const int count = sum.get().count;
    std::string text = fmt::format("{{\n.reg .pred p;\n.reg .f32 r<{}>;\nsetp.eq.b32 p, $2, 0;\n@p bra done;\n", count);
    for (int i = 0; i < count; i += kSentSums) {
      text += fmt::format("ld.global.v4.f32 {{r{}, r{}, r{}, r{}}}, [$1 + {}];\n", i, i + 1, i + 2, i + 3,
                          i / kSentSums * bytes_between_sent_sums());
      for (int j = i; j < i + kSentSums; ++j) text += fmt::format("add.rn.f32 $0.{0}, $0.{0}, r{0};\n", j);
    }
    text += "done:\n}";
    const Value address = global_address(k_, workspace_.address, sent_sums(from, consumer));
    sum.set(k_.instruction(text, {update(sum.get()), input(address), number(holds)}).front());
    k_.branch(holds, [&] { lower_flag(k_, workspace_.address, flag_of(from, consumer)); });
  }

  void check_exchange(const Ring& ring) const {
    const std::int64_t stages = ring.use().stages * ring.use().stage_bytes;
    const std::int64_t sums = std::int64_t{tile_m_} * description_.tile_n * description_.consumers_k * kSumBytes;
    if (sums <= stages) return;
    throw InvalidArgument(
        fmt::format("the sums of the {} parts of k that a CTA exchanges, {} bytes, must fit in the stages, {} bytes",
                    parts_of_k(description_), sums, stages));
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
            plain_tile(DType::s32, make_layout({kLineWords, lines_of_tile, description_.consumers}))};
  }

  bool scale_spans() const { return use_ == ScaleUse::accumulators; }

  /// The scales of a thread's two rows, for a segment of its part of a stage: an f32 for accumulators, a pair for
  /// weights.
  using RowScales = std::array<Value, 2>;
  RowScales load_scales(const Number& stage, int segment, const Consumer& consumer) {
    const Number row = consumer.warp * 16 + k_.thread() % 32 / 4;
    const Number of_stage = consumer.part * part_k_ / segment_ + segment;
    const auto load = [&](int below) {
      const Number at = (row + of_stage * tile_m_ + below) * (bits(description_.scales) / 8);
      const RegisterType type = description_.scales == DType::f32 ? RegisterType::f32 : RegisterType::b16;
      const Value scale = load_shared(k_, stage + weights_bytes_ + activations_bytes_ + at, type);
      return use_ == ScaleUse::weights ? duplicate(k_, scale) : to_f32(k_, scale, description_.scales);
    };
    return {load(0), load(kRowsOfPairs)};
  }

  /// The 16 bytes of a chunk of the warpgroup's part of a stage that are the thread's.
  Value load_words(const Number& stage, int chunk, const Consumer& consumer) {
    const Number of_stage = consumer.part * (part_k_ / packing_.chunk_k) + chunk;
    const Number at =
        (consumer.warp / 4 * chunks_ + of_stage) * WeightPacking::kBytes + consumer.thread.thread * kThreadBytes;
    return load_shared(k_, stage + at, RegisterType::b32, kFragmentRegisters);
  }

  /// The fragments of one group of wgmma, from `first_step` on, of the words of its chunk.
  std::vector<Value> convert(const Value& words, int first_step, const RowScales& scales) {
    const int words_of_step = kFragmentRegisters / packing_.steps;
    std::vector<Value> fragments;
    for (int step = first_step; step < first_step + piece_steps_; ++step) {
      std::vector<Value> packed;
      for (int i = 0; i < words_of_step; ++i) packed.push_back(words[step % packing_.steps * words_of_step + i]);
      Value fragment = widen(k_, description_.weights, description_.activations, packed);
      if (use_ == ScaleUse::weights)
        fragment = scale_fragment(k_, description_.activations, fragment, scales[0], scales[1]);
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
  void load(Loaded& loaded, const Number& stage, int step, const Consumer& consumer) {
    const int chunk = step / packing_.steps, segment = step / (segment_ / kInstructionK);
    if (std::exchange(loaded.chunk, chunk) != chunk) loaded.words = load_words(stage, chunk, consumer);
    if (use_ == ScaleUse::weights && std::exchange(loaded.segment, segment) != segment)
      loaded.scales = load_scales(stage, segment, consumer);
  }

  /// The registers of a thread that the mainloop carries.
  struct Mainloop {
    Accumulators sums;
    ValueCells next = {};  // the fragments of the next group of wgmma
    ValueCells read = {};  // those that the newest group reads
  };

  Mainloop begin_mainloop(const Consumer& consumer) {
    const Number stage = consumer.ring.stage(consumer.reader.begin_read());
    Mainloop loop{.sums = scale_spans() ? zero_sums() : consumer.mma.zeros()};
    Loaded first;
    load(first, stage, 0, consumer);
    for (const Value& fragment : convert(first.words, 0, first.scales)) {
      loop.next.push_back(k_.cell(fragment));
      loop.read.push_back(k_.cell(k_.undefined(RegisterType::b32, kFragmentRegisters)));
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
    const int count = description_.tile_n / 2;
    std::string text;
    for (int i = 0; i < count; ++i) text += fmt::format("mov.f32 $0.{}, 0f00000000;\n", i);
    const Value zeros = k_.instruction(text, {output(RegisterType::f32, count)}, Effect::pure).front();
    return {.cells = {k_.cell(zeros)}, .started = k_.cell(1, 2)};
  }

  /// sums += the weights of the reader's stage, times their scales, times the activations. The fragments of a group of
  /// wgmma are converted while the group before it runs, which is waited for when this group has been issued: the
  /// tensor cores have a group to do at all times. The first group of the next stage is converted too, unless
  /// `is_last`.
  void multiply(const Mainloop& loop, const Consumer& consumer, const Number& is_last) {
    const TiledMmaBuilder& mma = consumer.mma;
    const Ring& ring = consumer.ring;
    const RingReader& reader = consumer.reader;
    const int steps = part_k_ / kInstructionK, steps_of_segment = segment_ / kInstructionK;
    const Number number = reader.stage(), stage = ring.stage(number);
    const Number activations = stage + weights_bytes_ + consumer.part * part_of_activations_;
    Loaded loaded;
    std::optional<Span> span, last_span;  // that wgmma multiplies now, and that it has left
    for (int step = 0; step < steps; step += piece_steps_) {
      const int next = step + piece_steps_;
      if (next < steps) {
        load(loaded, stage, next, consumer);
      } else {
        loaded = {};
        load(loaded, ring.stage(reader.begin_read_ahead(is_last)), 0, consumer);
      }
      last_span.reset();
      if (scale_spans() && step % span_steps_ == 0)
        last_span = std::exchange(span, Span{mma.zeros(), load_scales(stage, step / steps_of_segment, consumer)});
      std::vector<std::vector<Value>> fragments;
      for (const ValueCell& cell : loop.next) fragments.push_back({cell.get()});
      mma.fma_fragments(span ? span->accumulators : loop.sums, fragments, activations, step);
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
      if (!span || next % span_steps_ != 0 || (spans_take_turns(description_) && next < steps)) continue;
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
        const RegisterType type = description_.scales == DType::f32 ? RegisterType::f32 : RegisterType::b16;
        const Value scale = load_global_if(k_, less(row, m_), row_scales_, row * (bits(description_.scales) / 8), type);
        scales[static_cast<std::size_t>(i)] = to_f32(k_, scale, description_.scales);
      }
    }
    std::vector<Value> results;
    for (int i = 0; i < registers.count; ++i) {
      results.push_back(use_ ? registers[i]
                             : program::multiply(k_, registers[i], scales[static_cast<std::size_t>(i / 2 % 2)]));
    }
    return results;
  }

  /// The number of the warpgroup's part of k among all parts of the tile.
  Number part_number(const Consumer& consumer) const {
    const Number rank = description_.split_k == 1 ? Number(0) : k_.cluster_rank();
    return rank * description_.consumers_k + consumer.part;
  }

  /// Waits for all warpgroups that multiply parts of the tile.
  void synchronize_parts() {
    if (description_.split_k > 1) {
      synchronize_cluster(k_);
    } else {
      named_barrier(k_, 1, kWarpgroupThreads * all_consumers(description_));
    }
  }

  /// The sums over the whole k, of this warpgroup's share of the accumulators. The warpgroup of each part of k has
  /// partial sums of all of them, sends that of each other part its share, and adds what it has received in the order
  /// of the parts.
  std::vector<Value> exchange(const std::vector<Value>& partial, const Consumer& consumer) {
    const int parts = parts_of_k(description_), share = static_cast<int>(partial.size()) / parts;
    const int width = share % 4 == 0 ? 4 : share % 2 == 0 ? 2 : 1;  // registers that are moved together
    const int threads = kWarpgroupThreads * description_.consumers;
    const Number thread = consumer.warp / 4 * kWarpgroupThreads + consumer.thread.thread;
    const auto place = [&](const Number& receiver_of_cta, const Number& sender, int vector) {
      const Number vectors = (receiver_of_cta * parts + sender) * (share / width) + vector;
      return consumer.ring.stage(0) + (vectors * threads + thread) * (width * kSumBytes);
    };
    synchronize_parts();  // All have read their stages for the last time.
    const Number sender_here = part_number(consumer);
    for (int receiver = 0; receiver < parts; ++receiver) {
      for (int vector = 0; vector < share / width; ++vector) {
        const auto first = partial.begin() + receiver * share + vector * width;
        const Number at = place(receiver % description_.consumers_k, sender_here, vector);
        const std::vector<Value> sent(first, first + width);
        if (description_.split_k > 1) {
          store_shared_at(k_, at, receiver / description_.consumers_k, sent);
        } else {
          store_shared(k_, at, sent);
        }
      }
    }
    synchronize_parts();
    std::vector<Value> sums;
    for (int vector = 0; vector < share / width; ++vector) {
      std::vector<Value> of_vector;
      for (int sender = 0; sender < parts; ++sender) {
        const Value received = load_shared(k_, place(consumer.part, sender, vector), RegisterType::f32, width);
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
  void store(const std::vector<Value>& results, const Number& first, const Consumer& consumer, const TileIndex& tile) {
    const std::int64_t bytes = bits(description_.d) / 8;
    const Number stride_m = (description_.d_is_m_contiguous ? Number(1) : ldd_) * bytes;
    const Number stride_n = (description_.d_is_m_contiguous ? ldd_ : Number(1)) * bytes;
    // Four registers are two columns of the thread's first row, then of its second; the next four are 8 columns
    // further. Addresses follow from each other, because the registers are not enough for all of them at once.
    const int count = static_cast<int>(results.size());
    std::array<Value, 2> addresses;  // of the two columns, in the first row
    for (int i = 0; i < count; ++i) {
      const AccumulatorPlace place = consumer.mma.place(first + i, consumer.warp);
      const Number row = tile.m * tile_m_ + place.row, column = tile.n * description_.tile_n + place.column;
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
                      {from_f32(k_, description_.d, results[static_cast<std::size_t>(i)])});
    }
  }

  WeightGemmDescription description_;
  WeightPacking packing_;
  std::optional<ScaleUse> use_;
  KernelBuilder k_;
  int tile_m_;
  int chunks_ = 0;                                          // along k, of a stage
  int part_k_ = 0;                                          // k of a stage that a warpgroup multiplies
  int segment_ = 0;                                         // k of a stage with the same scales
  int span_steps_ = 0;                                      // instructions after which scales multiply accumulators
  int piece_steps_ = 0;                                     // instructions of one group of wgmma
  std::int64_t weights_bytes_ = 0, activations_bytes_ = 0;  // of a stage; the scales follow
  std::int64_t part_of_activations_ = 0;                    // bytes from one warpgroup's part of k to the next one's
  Number m_, n_, ldd_;
  Value d_, row_scales_;
  WorkspaceMemory workspace_;
};

}  // namespace

Result<Program> weight_gemm(std::string symbol, const WeightGemmDescription& description) {
  try {
    return WeightGemmAuthor(std::move(symbol), description).write();
  } catch (const InvalidArgument& error) {
    return refuse("{}", error.what()).as(RefusalCode::design);
  }
}

}  // namespace tilewright::program
