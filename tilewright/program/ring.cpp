#include "tilewright/program/ring.hpp"

#include <fmt/format.h>

#include <utility>

#include "tilewright/base/error.hpp"
#include "tilewright/base/rounding.hpp"
#include "tilewright/base/target_features.hpp"

namespace tilewright::program {
namespace {

constexpr std::int64_t kBarrierBytes = 8;
/// The stages begin at multiples of the period of the widest swizzle.
constexpr std::int64_t kStageAlignment = 1024;

}  // namespace

Ring::Ring(KernelBuilder& k, const RingUse& use) : kernel_(&k), use_(use) {
  if (use.stages < 2) throw InvalidArgument(fmt::format("a ring has at least 2 stages, got {}", use.stages));
  if (use.stage_bytes < 1)
    throw InvalidArgument(fmt::format("the stage of a ring has at least 1 byte, got {}", use.stage_bytes));
  if (!has_feature(k.target(), TargetFeature::tma))
    throw InvalidArgument(fmt::format("the mbarriers of a ring need sm_90, the target is {}", k.target().name()));
  for (const auto& [arrivals, who] : {std::pair(use.writer_arrivals, "writers"), {use.reader_arrivals, "readers"}}) {
    if (arrivals < 1 || arrivals > kMaxArrivals) {
      throw InvalidArgument(
          fmt::format("{} arrive 1 to {} times at the mbarrier of a stage, got {}", who, kMaxArrivals, arrivals));
    }
  }
  use_.stage_bytes = round_up(use.stage_bytes, kStageAlignment);
  stages_ = k.shared(use.stages * use_.stage_bytes, kStageAlignment);
  barriers_ = k.shared(2 * use.stages * kBarrierBytes, kBarrierBytes);
}

const Number& Ring::checked(const Number& index) const {
  if (index.upper() >= 0 && index.lower() < use_.stages) return index;
  throw InvalidArgument(fmt::format("the stages of the ring are 0 to {}, got {}", use_.stages - 1, to_string(index)));
}

void Ring::initialise() const {
  KernelBuilder& k = *kernel_;
  for (int stage = 0; stage < use_.stages; ++stage) {
    mbarrier_init(k, full(stage), use_.writer_arrivals);
    mbarrier_init(k, empty(stage), use_.reader_arrivals);
  }
  fence_mbarrier_init(k);
}

RingPosition::RingPosition(KernelBuilder& k, const Ring& ring)
    : stages_(ring.use().stages), stage_(k.cell(0, stages_)), parity_(k.cell(0, 2)) {}

std::pair<Number, Number> RingPosition::next() const {
  const Number next = stage_.get() + 1;
  const Number wraps = equal(next, stages_);
  return {select(wraps, 0, next), parity_.get() ^ wraps};
}

void RingPosition::advance() const {
  const auto [stage, parity] = next();
  stage_.set_within(stage);  // A stage is below their number, which ranges of sums and selections cannot express.
  parity_.set(parity);
}

void RingWriter::write(const std::function<void(const Number&)>& fill) const {
  fill(begin_write());
  end_write();
}

Number RingWriter::begin_write() const {
  KernelBuilder& k = *kernel_;
  const Number stage = at_.stage();
  mbarrier_wait(k, ring_->empty(stage), at_.parity() ^ 1);
  if (ring_->use().transaction_bytes > 0) mbarrier_arrive_expect(k, ring_->full(stage), ring_->use().transaction_bytes);
  return stage;
}

void RingWriter::end_write() const { at_.advance(); }

void RingWriter::wait_for_readers() const {
  KernelBuilder& k = *kernel_;
  k.loop(ring_->use().stages, [&](const Number&) {
    mbarrier_wait(k, ring_->empty(at_.stage()), at_.parity() ^ 1);
    at_.advance();
  });
}

RingReader::RingReader(KernelBuilder& k, const Ring& ring, std::function<void(const Number&)> release)
    : kernel_(&k),
      ring_(&ring),
      at_(k, ring),
      release_(std::move(release)),
      held_(k.cell(0, ring.use().stages)),
      is_held_(k.cell(0, 2)) {
  if (!release_) release_ = [&k](const Number& barrier) { mbarrier_arrive(k, barrier); };
}

void RingReader::read(const std::function<void(const Number&)>& use) const {
  const Number stage = begin_read();
  use(stage);
  end_read(stage);
}

Number RingReader::begin_read() const {
  groups_before_ = kernel_->wgmma_groups();
  const Number stage = at_.stage();
  mbarrier_wait(*kernel_, ring_->full(stage), at_.parity());
  return stage;
}

Number RingReader::begin_read_by_wgmma() const {
  const Number stage = begin_read();
  if (ring_->use().transaction_bytes == 0) fence_proxy_async(*kernel_);
  return stage;
}

Number RingReader::begin_read_ahead(const Number& is_last) const {
  KernelBuilder& k = *kernel_;
  const auto [next, parity] = at_.next();
  // The phase of the stage that is read is complete, so that the wait ends at once.
  const Number stage = select(is_last, at_.stage(), next);
  const Value value = k.instruction("mov.b32 $0, $1;", {output(RegisterType::b32), number(stage)}).front();
  const Number ahead = k.number(value, ring_->use().stages);
  mbarrier_wait(k, ring_->full(ahead), select(is_last, at_.parity(), parity));
  return ahead;
}

void RingReader::end_read(const Number& stage) const {
  // TMA overwrites what threads have read. Without the fence, rows of A were those of the next step in a few tiles of
  // products of 4096x4096x4096 (H100, 2026-11-26): ptxas does not wait for the results of ldmatrix before the arrival.
  if (ring_->use().transaction_bytes > 0) fence_proxy_async(*kernel_);
  release_(ring_->empty(stage));
  at_.advance();
}

void RingReader::read_by_wgmma(const ValueCells& accumulators, const std::function<void(const Number&)>& use) const {
  const Number stage = begin_read_by_wgmma();
  use(stage);
  end_read_by_wgmma(stage, accumulators);
}

void RingReader::end_read_by_wgmma(const Number& stage, const ValueCells& accumulators) const {
  if (kernel_->wgmma_groups() == groups_before_) {
    throw InvalidArgument(
        "no group of wgmma was committed while the stage was read; read() releases a stage that threads have read");
  }
  wait_for_wgmma(*kernel_, 1, accumulators);
  release_held();
  hold(stage);
}

void RingReader::drain(const ValueCells& accumulators) const {
  wait_for_wgmma(*kernel_, 0, accumulators);
  release_held();
}

void RingReader::hold(const Number& stage) const {
  held_.set_within(stage);  // a stage is below their number, see RingPosition::advance()
  is_held_.set(1);
  at_.advance();
}

void RingReader::release_held() const {
  kernel_->branch(is_held_.get(), [&] { release_(ring_->empty(held_.get())); });
  is_held_.set(0);
}

}  // namespace tilewright::program
