#include "tilewright/program/gemm.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "tilewright/arch/limits.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/program/ring.hpp"
#include "tilewright/program/roles.hpp"
#include "tilewright/program/tiled_copy.hpp"
#include "tilewright/program/tiled_mma.hpp"
#include "tilewright/program/tiles.hpp"

namespace tilewright::program {
namespace {

constexpr int kWarpgroup = 128;
/// TMA and cp.async of 16 bytes need lines that begin at multiples of this.
constexpr int kLineAlignment = 16;

SharedTile operand_tile(DType element, arch::Major major, int mn, int k) {
  const arch::SwizzleMode mode = arch::widest_swizzle(major, bits(element), mn, k).value_or_throw();
  return {
      arch::smem_tile({.major = major, .mode = mode, .element_bits = bits(element), .mn = mn, .k = k}).value_or_throw(),
      element};
}

Tensor operand_tensor(std::string name, DType element, arch::Major major, const Number& mn, const Number& k,
                      const Number& batch, const Number& leading_dimension, const Number& batch_stride) {
  const bool is_k_major = major == arch::Major::k;
  return {.name = std::move(name),
          .element = element,
          .extents = {mn, k, batch},
          .strides = {is_k_major ? leading_dimension : Number(1), is_k_major ? Number(1) : leading_dimension,
                      batch_stride}};
}

/// How the roles divide the registers of a CTA with 1, 2 or 3 warpgroups that multiply.
struct Registers {
  int producer = 0, consumer = 0;
};
Registers split_registers(AtomMix mix, int consumers) {
  const bool copies_by_threads = mix == AtomMix::cp_async_wgmma;
  switch (consumers) {
    case 1:
      return {copies_by_threads ? 88 : 56, copies_by_threads ? 240 : 240};
    case 2:
      return copies_by_threads ? Registers{56, 224} : Registers{40, 232};
    default:
      return copies_by_threads ? Registers{32, 160} : Registers{32, 160};
  }
}

class GemmAuthor {
 public:
  GemmAuthor(std::string symbol, const GemmDescription& description)
      : about_(description),
        k_(std::move(symbol), description.target, kWarpgroup * (1 + description.consumers)),
        extent_m_(k_.launch("m", 1, 1)),
        extent_n_(k_.launch("n", 1, 1)),
        extent_k_(k_.launch("k", 1, 1)),
        batch_(k_.launch("batch", 1, 1, 65535)) {}

  Program write() {
    const SharedTile tile_a = operand_tile(about_.a, about_.a_major, about_.tile_m, about_.tile_k);
    const SharedTile tile_b = operand_tile(about_.b, about_.b_major, about_.tile_n, about_.tile_k);
    const Tensor a = operand_tensor("a", about_.a, about_.a_major, extent_m_, extent_k_, batch_,
                                    stride("lda", about_.a), stride("batch_a", about_.a));
    const Tensor b = operand_tensor("b", about_.b, about_.b_major, extent_n_, extent_k_, batch_,
                                    stride("ldb", about_.b), stride("batch_b", about_.b));
    const CopyAtom atom = about_.mix == AtomMix::cp_async_wgmma ? CopyAtom::cp_async : CopyAtom::tma;
    const bool by_tma = atom == CopyAtom::tma;
    const TiledCopyBuilder load_a(k_, atom, a, tile_a, kWarpgroup), load_b(k_, atom, b, tile_b, kWarpgroup);
    const TiledMmaBuilder mma(k_, tiled_mma(tile_a, tile_b));
    d_ = k_.address("d");
    ldd_ = k_.launch("ldd");
    batch_d_ = k_.launch("batch_d");

    const Ring ring(k_, {.stages = about_.stages,
                         .stage_bytes = tile_a.bytes() + tile_b.bytes(),
                         .transaction_bytes = load_a.transaction_bytes() + load_b.transaction_bytes(),
                         .writer_arrivals = by_tma ? 1 : kWarpgroup,
                         .reader_arrivals = about_.consumers * 4});
    k_.branch(equal(k_.thread(), 0), [&] {
      if (by_tma) {
        prefetch_tensor_map(k_, load_a.tensor_map());
        prefetch_tensor_map(k_, load_b.tensor_map());
      }
      ring.initialise();
      fence_mbarrier_init(k_);
    });
    synchronize(k_);

    const Registers registers = split_registers(about_.mix, about_.consumers);
    const Roles roles(k_, {{"producer", 1, registers.producer}, {"consumer", about_.consumers, registers.consumer}});
    const PersistentTiles tiles(k_, ceil_div(extent_m_, about_.tile_m), ceil_div(extent_n_, about_.tile_n), batch_,
                                about_.raster, arch::limits(about_.target).sm_count);
    const Number steps = ceil_div(extent_k_, about_.tile_k);

    roles.play("producer", [&](const RoleThread& me) {
      const auto produce = [&] {
        const RingWriter writer(k_, ring);
        tiles.for_each([&](const TileIndex& tile) {
          k_.loop(steps, [&](const Number& step) {
            writer.write([&](const Number& stage) {
              const TiledCopyBuilder::Call call{.thread = me.thread, .barrier = ring.full(stage)};
              const Number at_k = step * about_.tile_k;
              load_a.copy({tile.m * about_.tile_m, at_k, tile.batch}, ring.stage(stage), call);
              load_b.copy({tile.n * about_.tile_n, at_k, tile.batch}, ring.stage(stage) + tile_a.bytes(), call);
              if (!by_tma) cp_async_arrive(k_, ring.full(stage));
            });
          });
        });
      };
      if (by_tma) {
        k_.branch(less(me.thread, 32), [&] { by_one_thread(k_, produce); });
      } else {
        produce();
      }
    });

    roles.play("consumer", [&](const RoleThread& me) {
      const Number warp = broadcast(k_, me.warpgroup * 4 + me.thread / 32);
      // One lane of each warp releases a stage.
      const RingReader reader(k_, ring, [&](const Number& barrier) {
        if (!mma.uses_wgmma()) synchronize_warp(k_);
        k_.branch(equal(me.thread % 32, 0), [&] { mbarrier_arrive(k_, barrier); });
      });
      tiles.for_each([&](const TileIndex& tile) {
        const Accumulators accumulators = mma.zeros();
        k_.loop(steps, [&](const Number&) {
          const auto multiply = [&](const Number& stage) {
            if (!by_tma) fence_proxy_async(k_);
            mma.fma(accumulators, ring.stage(stage), ring.stage(stage) + tile_a.bytes(), warp);
          };
          if (about_.mix == AtomMix::tma_mma) {
            reader.read(multiply);
          } else if (about_.mix == AtomMix::tma_register_wgmma) {
            reader.read([&](const Number& stage) {
              multiply(stage);
              wait_for_wgmma(k_, 0, accumulators.cells);
            });
          } else {
            reader.read_by_wgmma(accumulators.cells, multiply);
          }
        });
        if (mma.uses_wgmma()) reader.drain(accumulators.cells);
        store(mma, accumulators, warp, tile);
      });
    });
    return k_.build();
  }

 private:
  /// A stride of lines that are aligned to 16 bytes.
  Number stride(std::string_view name, DType element) { return k_.launch(name, kLineAlignment * 8 / bits(element)); }

  TiledMma tiled_mma(const SharedTile& a, const SharedTile& b) const {
    TiledMma mma{.a = {about_.a_major, a}, .b = {about_.b_major, b}};
    mma.warps_m = 4 * about_.consumers;
    if (about_.mix == AtomMix::tma_mma) {
      const int k = 32 * 8 / bits(about_.a);
      const arch::MmaAtom* atom = arch::find_mma_atom(16, 8, k, about_.a, about_.b, about_.accumulator);
      if (atom == nullptr) {
        throw InvalidArgument(fmt::format("mma.sync has no m16n8k{} of {} and {} with {} accumulators", k,
                                          tilewright::name(about_.a), tilewright::name(about_.b),
                                          tilewright::name(about_.accumulator)));
      }
      mma.atom = MmaChoice{atom};
      mma.warps_m = 2;
      mma.warps_n = 2 * about_.consumers;
      return mma;
    }
    const arch::OperandSource source =
        about_.mix == AtomMix::tma_register_wgmma ? arch::OperandSource::registers : arch::OperandSource::shared_memory;
    const arch::WgmmaAtom* atom = arch::find_wgmma_atom(about_.a, about_.b, about_.accumulator, source);
    if (atom == nullptr) {
      throw InvalidArgument(fmt::format("wgmma does not multiply {} and {} with {} accumulators",
                                        tilewright::name(about_.a), tilewright::name(about_.b),
                                        tilewright::name(about_.accumulator)));
    }
    mma.atom = WgmmaChoice{atom, about_.tile_n};
    return mma;
  }

  /// Stores the accumulators to D, those outside it excepted.
  void store(const TiledMmaBuilder& mma, const Accumulators& accumulators, const Number& warp, const TileIndex& tile) {
    const std::int64_t bytes = bits(about_.d) / 8;
    mma.for_each_pair(accumulators, warp, [&](const AccumulatorPair& pair) {
      const Number row = tile.m * about_.tile_m + pair.row, column = tile.n * about_.tile_n + pair.column;
      const Number offset = tile.batch * batch_d_ + row * ldd_ + column;
      for (const int i : {0, 1}) {
        const Number holds = both(less(row, extent_m_), less(column + i, extent_n_));
        store_global_if(k_, holds, d_, (offset + i) * bytes,
                        {about_.d == DType::s32 ? (i == 0 ? pair.low : pair.high)
                                                : from_f32(k_, about_.d, i == 0 ? pair.low : pair.high)});
      }
    });
  }

  GemmDescription about_;
  KernelBuilder k_;
  Number extent_m_, extent_n_, extent_k_, batch_;
  Number ldd_, batch_d_;
  Value d_;
};

}  // namespace

std::string_view name(AtomMix mix) {
  constexpr std::array<std::string_view, 4> kNames{"tma_wgmma", "cp_async_wgmma", "tma_mma", "tma_register_wgmma"};
  return kNames.at(static_cast<std::size_t>(mix));
}

Result<Program> gemm(std::string symbol, const GemmDescription& description) {
  try {
    return GemmAuthor(std::move(symbol), description).write();
  } catch (const InvalidArgument& error) {
    return refuse("{}", error.what()).as(RefusalCode::design);
  }
}

}  // namespace tilewright::program
