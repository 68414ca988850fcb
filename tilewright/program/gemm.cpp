#include "tilewright/program/gemm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tilewright/arch/limits.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/program/gemm_output.hpp"
#include "tilewright/program/launch.hpp"
#include "tilewright/program/ring.hpp"
#include "tilewright/program/roles.hpp"
#include "tilewright/program/staged_output.hpp"
#include "tilewright/program/tiled_copy.hpp"
#include "tilewright/program/tiled_mma.hpp"
#include "tilewright/program/tiles.hpp"

namespace tilewright::program {
namespace {

constexpr int kWarpgroup = 128;
/// TMA and cp.async of 16 bytes need lines that begin at multiples of this.
constexpr int kLineAlignment = 16;

/// An operand (mn, k, batch). `step` is 0 if all matrices of D share one of it, else 1.
struct Operand {
  Tensor tensor;
  Number step;
};

/// How the roles divide the registers of a CTA with 1, 2 or 3 warpgroups that multiply.
struct Registers {
  int producer = 0, consumer = 0;
};
Registers split_registers(plan::AtomMix mix, int consumers) {
  const bool copies_by_threads = mix == plan::AtomMix::cp_async_wgmma;
  switch (consumers) {
    case 1:
      return {copies_by_threads ? 88 : 56, 240};
    case 2:
      return copies_by_threads ? Registers{88, 208} : Registers{40, 232};
    default:
      return {32, 160};
  }
}

class GemmAuthor {
 public:
  GemmAuthor(std::string symbol, const plan::ProgramGemmPlan& plan)
      : plan_(plan),
        k_(std::move(symbol), plan.target, plan.threads(), {plan.cluster_m, plan.cluster_n, 1}),
        extent_m_(k_.launch("m", 1, 1)),
        extent_n_(k_.launch("n", 1, 1)),
        extent_k_(k_.launch("k", 1, 1)),
        batch_(k_.launch("batch", 1, 1)) {}

  Program write() {
    const auto [tile_m, tile_n, tile_k] = plan_.tile;
    const SharedTile tile_a{smem_layout(plan_, true), plan_.element_a};
    const SharedTile tile_b{smem_layout(plan_, false), plan_.element_b};
    a_bytes_ = tile_a.bytes();
    const Loads loads = make_loads(tile_a, tile_b);
    const TiledMmaBuilder mma(k_, tiled_mma(tile_a, tile_b));
    const bool stages_d = plan_.panel_columns != 0;
    Output output{.stores = GemmOutput(k_, plan_.operands, extent_m_, extent_n_, stages_d), .staged = {}};
    if (stages_d) {
      output.staged.emplace(k_, GemmOutput::staged_d(k_, plan_.operands, extent_m_, extent_n_, batch_),
                            StagingUse{.columns = plan_.panel_columns,
                                       .panels_m = plan_.panels_m(),
                                       .panels_n = plan_.panels_n(),
                                       .buffers = plan_.output_buffers,
                                       .warpgroups = plan_.consumers()});
    }
    const Ring ring(k_, {.stages = plan_.stages,
                         .stage_bytes = tile_a.bytes() + tile_b.bytes(),
                         .transaction_bytes = loads.a.transaction_bytes() + loads.b.transaction_bytes(),
                         .writer_arrivals = loads_by_tma() ? 1 : kWarpgroup,
                         .reader_arrivals = plan_.consumers() * 4 * plan_.cluster_size()});
    initialise(loads, output, ring);

    const Registers registers = split_registers(plan_.mix, plan_.consumers());
    const Roles roles(k_, {{"producer", 1, registers.producer}, {"consumer", plan_.consumers(), registers.consumer}});
    const PersistentTiles tiles(k_, ceil_div(extent_m_, tile_m), ceil_div(extent_n_, tile_n), batch_, plan_.raster,
                                arch::resident_clusters(arch::limits(plan_.target), plan_.cluster_size()));
    const Work work{.tiles = tiles, .steps = k_.computed("steps", ceil_div(extent_k_, tile_k))};
    roles.play("producer", [&](const RoleThread& me) { produce(me, loads, ring, work); });
    roles.play("consumer", [&](const RoleThread& me) { consume(me, mma, ring, work, output); });
    return k_.build();
  }

 private:
  /// The copies that fill a stage, A before B.
  struct Loads {
    TiledCopyBuilder a, b;
    Number batch_step_a, batch_step_b;  // Operand::step
  };
  /// The stores of a tile of D and of the other outputs.
  struct Output {
    GemmOutput stores;
    std::optional<StagedOutput> staged;  // D, if it goes through shared memory
  };
  /// The tiles of a CTA, and the steps along k of each.
  struct Work {
    PersistentTiles tiles;
    Number steps;
  };

  bool loads_by_tma() const { return plan_.mix != plan::AtomMix::cp_async_wgmma; }

  Loads make_loads(const SharedTile& tile_a, const SharedTile& tile_b) {
    const Operand a = operand("a", plan_.element_a, plan_.major_a, extent_m_);
    const Operand b = operand("b", plan_.element_b, plan_.major_b, extent_n_);
    const CopyAtom atom = loads_by_tma() ? CopyAtom::tma : CopyAtom::cp_async;
    TiledCopyBuilder load_a(k_, atom, a.tensor, tile_a, kWarpgroup, plan_.cluster_n);
    TiledCopyBuilder load_b(k_, atom, b.tensor, tile_b, kWarpgroup, plan_.cluster_m);
    return {.a = std::move(load_a), .b = std::move(load_b), .batch_step_a = a.step, .batch_step_b = b.step};
  }

  void initialise(const Loads& loads, const Output& output, const Ring& ring) {
    k_.branch(equal(k_.thread(), 0), [&] {
      if (loads_by_tma()) {
        prefetch_tensor_map(k_, loads.a.tensor_map());
        prefetch_tensor_map(k_, loads.b.tensor_map());
      }
      if (output.staged) prefetch_tensor_map(k_, output.staged->copy().tensor_map());
      ring.initialise();
    });
    plan_.cluster_size() == 1 ? synchronize(k_) : synchronize_cluster(k_);
    k_.wait_for_last_kernel();
  }

  void produce(const RoleThread& me, const Loads& loads, const Ring& ring, const Work& work) {
    const auto fill_all_stages = [&] {
      const RingWriter writer(k_, ring);
      work.tiles.for_each([&](const TileIndex& tile) {
        k_.loop(work.steps, [&](const Number& step) {
          writer.write([&](const Number& stage) {
            const TiledCopyBuilder::Call call{.thread = me.thread, .barrier = ring.full(stage)};
            // The CTAs of a cluster along m share B: each loads its part of the tile for all of them.
            TiledCopyBuilder::Call shared = call;
            shared.slice = k_.cluster_rank();
            shared.ctas = (1 << plan_.cluster_size()) - 1;
            const Number at_k = step * plan_.tile.k;
            loads.a.copy({tile.m * plan_.tile.m, at_k, tile.batch * loads.batch_step_a}, ring.stage(stage),
                         plan_.cluster_n == 1 ? call : shared);
            loads.b.copy({tile.n * plan_.tile.n, at_k, tile.batch * loads.batch_step_b}, ring.stage(stage) + a_bytes_,
                         plan_.cluster_m == 1 ? call : shared);
            if (!loads_by_tma()) cp_async_arrive(k_, ring.full(stage));
          });
        });
      });
      launch_dependents(k_);
      // The other CTA's loads and arrivals need this CTA's shared memory.
      if (plan_.cluster_size() > 1) writer.wait_for_readers();
    };
    if (loads_by_tma()) {
      k_.branch(less(me.thread, 32), [&] { by_one_thread(k_, fill_all_stages); });
    } else {
      fill_all_stages();
    }
  }

  void consume(const RoleThread& me, const TiledMmaBuilder& mma, const Ring& ring, const Work& work,
               const Output& output) {
    const Number warp = broadcast(k_, me.warpgroup * 4 + me.thread / 32);
    // One lane of each warp releases a stage, or one for each CTA of the cluster, whose loads reach this one.
    const RingReader reader(k_, ring, [&](const Number& barrier) {
      if (!mma.uses_wgmma()) synchronize_warp(k_);  // the other lanes have read the stage, too
      const Number lane = me.thread % 32;
      if (plan_.cluster_size() == 1) {
        k_.branch(equal(lane, 0), [&] { mbarrier_arrive(k_, barrier); });
      } else {
        k_.branch(less(lane, plan_.cluster_size()), [&] { mbarrier_arrive_at(k_, barrier, lane); });
      }
    });
    std::optional<StagedWriter> writer;
    if (output.staged) writer.emplace(k_, *output.staged, me, warp);
    work.tiles.for_each([&](const TileIndex& tile) {
      const Accumulators accumulators = multiply(mma, ring, reader, work.steps, warp);
      const Number first_m = tile.m * plan_.tile.m, first_n = tile.n * plan_.tile.n;
      if (writer) writer->begin(first_m + warp / 4 * (plan_.tile.m / plan_.consumers()), first_n, tile.batch);
      mma.for_each_pair(accumulators, warp, [&](const AccumulatorPair& pair) {
        const std::array<Value, 2> elements =
            output.stores.store({pair.low, pair.high}, tile.batch, first_m + pair.row, first_n + pair.column);
        if (writer) writer->put(elements);
      });
    });
    if (writer) writer->finish();
  }

  /// The sums of a tile over all steps along k.
  Accumulators multiply(const TiledMmaBuilder& mma, const Ring& ring, const RingReader& reader, const Number& steps,
                        const Number& warp) {
    const Accumulators accumulators = mma.zeros();
    if (plan_.mix == plan::AtomMix::tma_register_wgmma) {
      multiply_from_registers(reader, mma, accumulators, warp, steps, [&](const Number& stage) {
        return std::pair(ring.stage(stage), ring.stage(stage) + a_bytes_);
      });
      accumulators.started.set(1);  // k is at least 1, which two stages of each iteration hide
      return accumulators;
    }
    const auto multiply_stage = [&](const Number& stage) {
      mma.fma(accumulators, ring.stage(stage), ring.stage(stage) + a_bytes_, warp);
    };
    k_.loop(steps, [&](const Number&) {
      if (plan_.mix == plan::AtomMix::tma_mma) {
        reader.read(multiply_stage);
      } else {
        reader.read_by_wgmma(accumulators.cells, multiply_stage);
      }
    });
    if (mma.uses_wgmma()) reader.drain(accumulators.cells);
    return accumulators;
  }

  /// The mainloop of wgmma with A in registers: the fragments of a stage are loaded while wgmma multiplies those of the
  /// last one. Two sets of registers take turns, so that the loop has two stages: with one, the registers that wgmma
  /// reads would have to be copied.
  void multiply_from_registers(const RingReader& reader, const TiledMmaBuilder& mma, const Accumulators& accumulators,
                               const Number& warp, const Number& steps,
                               const std::function<std::pair<Number, Number>(const Number&)>& operands_of) {
    ValueCells held;  // the fragments that wgmma reads
    for (std::int64_t i = 0; i < mma.fragment_count(); ++i)
      held.push_back(k_.cell(k_.undefined(RegisterType::b32, TiledMmaBuilder::kFragmentRegisters)));
    const auto written = [&] {
      ValueCells cells = accumulators.cells;
      cells.insert(cells.end(), held.begin(), held.end());
      return cells;
    };
    const auto multiply = [&] {
      const Number stage = reader.begin_read();
      const auto [a, b] = operands_of(stage);
      const std::vector<Value> loaded = mma.load_fragments(a, warp);
      std::vector<std::vector<Value>> fragments;
      for (const Value& fragment : loaded) fragments.push_back({fragment});
      mma.fma_fragments(accumulators, fragments, b, 0);
      reader.end_read_by_wgmma(stage, written());  // waits for the last stage's group, which reads `held`
      for (std::size_t i = 0; i < held.size(); ++i) held[i].set(loaded[i]);
    };
    k_.loop(steps / 2, [&](const Number&) {
      multiply();
      multiply();
    });
    k_.branch(
        steps % 2,
        [&] {
          multiply();
          reader.drain(written());
        },
        [&] { reader.drain(written()); });
  }

  Operand operand(const std::string& name, DType element, arch::Major major, const Number& mn) {
    const std::int64_t divisor = kLineAlignment * 8 / bits(element);
    const bool is_k_major = major == arch::Major::k;
    const Number line = k_.launch("ld" + name, divisor), batch = k_.launch("batch_stride_" + name, divisor);
    const Number batches = k_.launch("batches_" + name, 1, 1);
    return {.tensor = {.name = name,
                       .element = element,
                       .extents = {mn, extent_k_, batches},
                       .strides = {is_k_major ? line : Number(1), is_k_major ? Number(1) : line, batch}},
            .step = k_.launch("step_" + name, 1, 0, 1)};
  }

  TiledMma tiled_mma(const SharedTile& a, const SharedTile& b) const {
    TiledMma mma{.warps_m = plan_.warps_m, .warps_n = plan_.warps_n, .a = {plan_.major_a, a}, .b = {plan_.major_b, b}};
    if (plan_.mma != nullptr) {
      mma.atom = MmaChoice{plan_.mma};
    } else {
      mma.atom = WgmmaChoice{plan_.wgmma, plan_.tile.n};
    }
    return mma;
  }

  const plan::ProgramGemmPlan& plan_;
  KernelBuilder k_;
  Number extent_m_, extent_n_, extent_k_, batch_;
  std::int64_t a_bytes_ = 0;  // of a stage; those of B follow
};

/// An operand of the caller's problem as the kernel sees it: the strides along m or n, along k, and of the batch.
struct OperandStrides {
  std::int64_t mn = 0, k = 0, batch = 0, batches = 1;
};
OperandStrides strides_of(const op::Tensor& tensor, bool rows_are_mn) {
  return {.mn = rows_are_mn ? tensor.row_stride() : tensor.column_stride(),
          .k = rows_are_mn ? tensor.column_stride() : tensor.row_stride(),
          .batch = tensor.batch_stride(),
          .batches = tensor.batch()};
}

void add_operand(LaunchArguments& arguments, const std::string& name, const op::Tensor& tensor,
                 const OperandStrides& strides, arch::Major major, DType element) {
  const std::int64_t line = major == arch::Major::k ? strides.mn : strides.k;
  // TMA takes no stride of 0, and the stride of a single line or matrix does not matter.
  const std::int64_t least = kLineAlignment * 8 / bits(element);
  const bool is_shared = strides.batches == 1 || strides.batch == 0;
  arguments.address(name, tensor.address)
      .integer("ld" + name, std::max(line / least * least, least))
      .integer("batch_stride_" + name, is_shared ? least : strides.batch)
      .integer("batches_" + name, is_shared ? 1 : strides.batches)
      .integer("step_" + name, is_shared ? 0 : 1);
}

}  // namespace

Program gemm(std::string symbol, const plan::ProgramGemmPlan& plan) {
  return GemmAuthor(std::move(symbol), plan).write();
}

plan::Launch launch(const Program& program, const plan::ProgramGemmPlan& plan, const op::GemmView& arguments) {
  const bool is_transposed = plan.is_transposed;
  const op::Tensor& a = (is_transposed ? arguments.b : arguments.a).tensor;
  const op::Tensor& b = (is_transposed ? arguments.a : arguments.b).tensor;
  LaunchArguments values;
  values.integer("m", is_transposed ? arguments.n() : arguments.m())
      .integer("n", is_transposed ? arguments.m() : arguments.n())
      .integer("k", arguments.k())
      .integer("batch", arguments.batch());
  add_operand(values, "a", a, strides_of(a, !is_transposed), plan.major_a, plan.element_a);
  add_operand(values, "b", b, strides_of(b, is_transposed), plan.major_b, plan.element_b);
  GemmOutput::add_arguments(values, plan.operands.epilogue, arguments, is_transposed);
  return launch(program, values);
}

}  // namespace tilewright::program
