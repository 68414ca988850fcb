#include "tilewright/engine/packed_launches.hpp"

#include <cstdint>
#include <mutex>

#include "tilewright/engine/launch.hpp"

namespace tilewright::engine {

std::shared_ptr<const plan::Launch> PackedLaunches::get(const registry::KernelPtr& kernel, const Call& call) {
  const auto launch_of = [](const std::shared_ptr<const Packed>& packed) {
    return std::shared_ptr<const plan::Launch>(packed, &packed->launch);
  };
  const bool is_remembered = kernel->depends_only_on_key() && call.is_shared();
  const std::size_t hash = call.hash() ^ (reinterpret_cast<std::uintptr_t>(kernel.get()) >> 4);
  std::shared_ptr<const Packed>& slot = slots_[hash % kSlots];
  if (is_remembered) {
    const std::scoped_lock lock(mutex_);
    if (slot != nullptr && slot->kernel == kernel && slot->call.is_same(call)) return launch_of(slot);
  }
  const auto packed = std::make_shared<Packed>(kernel, call, kernel->launch(call.problem()));
  encode_tensor_maps(*device_, packed->launch);
  if (is_remembered) {
    std::shared_ptr<const Packed> replaced = packed;  // destroyed after the lock is released
    const std::scoped_lock lock(mutex_);
    std::swap(slot, replaced);
  }
  return launch_of(packed);
}

}  // namespace tilewright::engine
