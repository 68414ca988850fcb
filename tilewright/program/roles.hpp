// Warpgroups of a CTA with different tasks.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tilewright/program/instructions.hpp"

namespace tilewright::program {

/// A task of consecutive warpgroups.
struct Role {
  std::string name;
  int warpgroups = 1;
  /// Registers of each thread, which setmaxnreg sets; 0: as many as at launch.
  int registers = 0;
};

/// A thread in its role.
struct RoleThread {
  Number warpgroup;  // among those of the role
  Number thread;     // in its warpgroup, 0 to 127
};

class Roles {
 public:
  /// The warpgroups of the roles follow each other. Registers are moved from roles with fewer to roles with more.
  /// @pre KernelBuilder::set_min_ctas() has been called if an SM shall hold several CTAs
  /// @throws InvalidArgument unless the roles have all threads of the kernel, and unless the registers of all roles
  /// together are at most those that the CTA has at launch
  Roles(KernelBuilder& k, std::vector<Role> roles);

  /// Appends what the threads of one role do.
  void play(const std::string& name, const std::function<void(const RoleThread&)>& part) const;
  /// The same in two pieces.
  RoleThread begin(const std::string& name) const;
  void end() const { kernel_->end_branch(); }

 private:
  KernelBuilder* kernel_;
  std::vector<Role> roles_;
  Number warpgroup_;  // of the CTA, the same in all lanes
};

/// `number`, known to be from 0 to count - 1 and a multiple of `divisor` for a reason that its expression does not say.
Number assume(KernelBuilder& k, const Number& number, const Number& count, std::int64_t divisor = 1);

/// Appends statements that one thread of the warp executes. All lanes must get here together.
void by_one_thread(KernelBuilder& k, const std::function<void()>& body);

}  // namespace tilewright::program
