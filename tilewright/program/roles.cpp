#include "tilewright/program/roles.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "tilewright/arch/limits.hpp"
#include "tilewright/base/error.hpp"

namespace tilewright::program {
namespace {

constexpr int kWarpgroup = 128;
/// ptxas gives each thread of a CTA at most this number of registers, of which there are multiples of 8.
constexpr int kMaxRegisters = 255;

/// Registers of each thread at launch, for which __launch_bounds__ leaves room.
int registers_at_launch(const KernelBuilder& k) {
  const int per_thread = arch::limits(k.target()).registers_per_sm / (k.min_ctas() * k.threads()) / 8 * 8;
  return std::min(per_thread, kMaxRegisters);
}

}  // namespace

Roles::Roles(KernelBuilder& k, std::vector<Role> roles) : kernel_(&k), roles_(std::move(roles)) {
  const int warpgroups =
      std::accumulate(roles_.begin(), roles_.end(), 0, [](int sum, const Role& role) { return sum + role.warpgroups; });
  if (warpgroups * kWarpgroup != k.threads()) {
    throw InvalidArgument(fmt::format("the roles have {} warpgroups of {} threads, the kernel has {} threads",
                                      warpgroups, kWarpgroup, k.threads()));
  }
  const int at_launch = registers_at_launch(k);
  int given = 0;
  for (const Role& role : roles_) given += role.warpgroups * (role.registers == 0 ? at_launch : role.registers);
  if (given > warpgroups * at_launch) {
    throw InvalidArgument(fmt::format("the roles take {} registers for each {} threads, the CTA has {} at launch",
                                      given, kWarpgroup, warpgroups * at_launch));
  }
  warpgroup_ = broadcast(k, k.thread() / kWarpgroup);
}

void Roles::play(const std::string& name, const std::function<void(const RoleThread&)>& part) const {
  part(begin(name));
  end();
}

RoleThread Roles::begin(const std::string& name) const {
  KernelBuilder& k = *kernel_;
  int first = 0;
  const auto role = std::find_if(roles_.begin(), roles_.end(), [&](const Role& each) {
    if (each.name == name) return true;
    first += each.warpgroups;
    return false;
  });
  if (role == roles_.end()) throw InvalidArgument(fmt::format("the kernel has no role named '{}'", name));
  const Number after_first = negation(less(warpgroup_, first));
  const Number before_end = less(warpgroup_, first + role->warpgroups);
  k.begin_branch(both(after_first, before_end));
  k.remark(fmt::format("role {}", name));
  if (role->registers != 0) set_registers(k, role->registers, role->registers > registers_at_launch(k));
  return {.warpgroup = assume(k, warpgroup_ - first, role->warpgroups), .thread = k.thread() % kWarpgroup};
}

Number assume(KernelBuilder& k, const Number& from, const Number& count, std::int64_t divisor) {
  if (from.lower() >= 0 && count.is_static() && from.upper() < count.value() && from.divisor() % divisor == 0)
    return from;
  const Value value = k.instruction("mov.b32 $0, $1;", {output(RegisterType::b32), number(from)}, Effect::pure).front();
  return k.number(value, count, divisor);
}

void by_one_thread(KernelBuilder& k, const std::function<void()>& body) { k.branch(elect(k), body); }

}  // namespace tilewright::program
