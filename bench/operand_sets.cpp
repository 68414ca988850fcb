// Random operands, made once on the host and spread over device buffers.
#include "operand_sets.hpp"

#include <algorithm>
#include <cstring>
#include <random>
#include <span>

#include "tilewright/base/float_format.hpp"

namespace tilewright::bench {
namespace {

/// Elements of the random block. A prime, so that no row of a matrix repeats another at the same place.
constexpr std::size_t kRandomElements = 4194301;

template <class T, class Draw>
std::vector<std::byte> draw_block(const Draw& draw) {
  std::vector<std::byte> block(kRandomElements * sizeof(T));
  for (std::size_t i = 0; i < kRandomElements; ++i) {
    const T value = draw();
    std::memcpy(block.data() + i * sizeof(T), &value, sizeof(T));
  }
  return block;
}

std::vector<std::byte> random_block(DType dtype, std::uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<double> normal;
  const auto float32 = [&] { return static_cast<float>(normal(generator)); };
  switch (dtype) {
    case DType::f64:
      return draw_block<double>([&] { return normal(generator); });
    case DType::f32:
      return draw_block<float>(float32);
    case DType::f16:
      return draw_block<std::uint16_t>([&] { return f32_to_f16(float32()); });
    case DType::bf16:
      return draw_block<std::uint16_t>([&] { return f32_to_bf16(float32()); });
    case DType::e4m3:
      return draw_block<std::uint8_t>([&] { return f64_to_e4m3(normal(generator)); });
    case DType::e5m2:
      return draw_block<std::uint8_t>([&] { return f64_to_e5m2(normal(generator)); });
    case DType::s8:
    case DType::u8:
      return draw_block<std::uint8_t>([&] { return static_cast<std::uint8_t>(generator() >> 56); });
    default:
      throw InvalidArgument(fmt::format("{} is not the type of an operand here", name(dtype)));
  }
}

}  // namespace

OperandSets::OperandSets(std::shared_ptr<runtime::CudaDevice> device, const Problem& problem, std::uint64_t seed)
    : device_(std::move(device)) {
  const std::size_t a_bytes = stored_a(problem).bytes();
  const std::size_t b_bytes = stored_b(problem).bytes();
  const std::size_t d_bytes = stored_d(problem).bytes();
  const std::size_t all_bytes = a_bytes + b_bytes + d_bytes;
  const auto enough = 2 * static_cast<std::size_t>(device_->properties().l2_bytes);
  const std::size_t count = 1 + (enough + all_bytes - 1) / all_bytes;

  const std::vector<std::byte> block = random_block(problem.dtype, seed);
  const runtime::DeviceBuffer random(device_, block.size());
  device_->copy_in(random.address(), block.data(), block.size(), nullptr);
  const auto element = static_cast<std::size_t>(bytes(problem.dtype));
  std::mt19937_64 offsets(seed + 1);
  for (std::size_t i = 0; i < count; ++i) {
    sets_.push_back({runtime::DeviceBuffer(device_, a_bytes), runtime::DeviceBuffer(device_, b_bytes),
                     runtime::DeviceBuffer(device_, d_bytes)});
    fill(sets_.back().a, random, offsets() % kRandomElements * element);
    fill(sets_.back().b, random, offsets() % kRandomElements * element);
    spoil_d(static_cast<int>(i));
  }
  device_->synchronize(nullptr);
}

Addresses OperandSets::addresses(int set) const {
  const Set& memory = sets_[static_cast<std::size_t>(set)];
  return {memory.a.address(), memory.b.address(), memory.d.address()};
}

void OperandSets::fill(const runtime::DeviceBuffer& buffer, const runtime::DeviceBuffer& random,
                       std::size_t offset) const {
  const runtime::ContextScope scope(*device_->context());
  for (std::size_t done = 0; done < buffer.bytes(); offset = 0) {
    const std::size_t piece = std::min(buffer.bytes() - done, random.bytes() - offset);
    device_->context()->driver().copy_device_to_device(buffer.address() + done, random.address() + offset, piece,
                                                       nullptr);
    done += piece;
  }
}

std::vector<std::byte> OperandSets::read(const runtime::DeviceBuffer& buffer) const {
  std::vector<std::byte> host(buffer.bytes());
  device_->copy_out(host.data(), buffer.address(), host.size(), nullptr);
  device_->synchronize(nullptr);
  return host;
}

void OperandSets::spoil_d(int set) const {
  const runtime::DeviceBuffer& d = sets_[static_cast<std::size_t>(set)].d;
  device_->fill(d.address(), 0xff, d.bytes(), nullptr);
}

}  // namespace tilewright::bench
