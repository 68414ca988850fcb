// The providers that engines query: those shipped with Tilewright and those added by users.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/base/fork.hpp"
#include "tilewright/registry/provider.hpp"

namespace tilewright::registry {

/// May be shared by engines, which see each change at once. Thread-safe: a running query keeps using its snapshot.
class Registry {
 public:
  /// `shipped` cannot be removed.
  explicit Registry(std::vector<ProviderPtr> shipped = {});

  /// Refuses a family that is already registered. Adding the same provider again is accepted and has no effect.
  Support add(ProviderPtr provider);
  /// Replaces the added provider of the same family, or adds the provider if there is none. Refuses shipped families.
  Support replace(ProviderPtr provider);
  /// Returns whether the family was registered. Kernels found before stay valid.
  /// @throws InvalidArgument for a shipped family
  bool remove(std::string_view family);

  /// Registers an operation, so that problems in files can name it. Refuses a name that is already registered; adding
  /// the same operation again is accepted and has no effect.
  Support add(op::OperationPtr operation);
  /// The operation of that name, or null.
  op::OperationPtr find_operation(std::string_view name) const;
  /// The names of the registered operations, sorted.
  std::vector<std::string> operations() const;

  struct Snapshot {
    std::vector<ProviderPtr> providers;  // the added ones in the order of registration, then the shipped ones
    std::size_t added = 0;               // the number of added ones
  };
  std::shared_ptr<const Snapshot> snapshot() const;

 private:
  Support put(ProviderPtr provider, bool replaces);
  /// Makes a new snapshot and returns the old one.
  std::shared_ptr<const Snapshot> publish();

  const std::vector<ProviderPtr> shipped_;
  mutable ForkSafeMutex mutex_;  // guards the members below
  std::vector<ProviderPtr> added_;
  std::map<std::string, op::OperationPtr, std::less<>> operations_;
  std::shared_ptr<const Snapshot> snapshot_;
};

}  // namespace tilewright::registry
