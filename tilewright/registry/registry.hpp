// The providers that engines ask, those that Tilewright ships and those that users bring.
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

/// Shared by engines; they see every change at once. Thread-safe: a query under way goes on with what it began with.
class Registry {
 public:
  /// `shipped` cannot be removed.
  explicit Registry(std::vector<ProviderPtr> shipped = {});

  /// Refuses a family that is registered; the same provider again is accepted and changes nothing.
  Support add(ProviderPtr provider);
  /// In place of a provider of the same family that was added, if there is one. Refuses families that are shipped.
  Support replace(ProviderPtr provider);
  /// Whether it was there. Kernels that were found live on. @throws InvalidArgument for a family that is shipped
  bool remove(std::string_view family);

  /// Makes an operation known by its name, for those who read problems from files. Refuses a name that another has; the
  /// same operation again is accepted and changes nothing.
  Support add(op::OperationPtr operation);
  /// Null where none has the name.
  op::OperationPtr find_operation(std::string_view name) const;
  /// Their names, sorted.
  std::vector<std::string> operations() const;

  struct Snapshot {
    std::vector<ProviderPtr> providers;  // added ones first, in their order, then those that are shipped
    std::size_t added = 0;               // of them
  };
  std::shared_ptr<const Snapshot> snapshot() const;

 private:
  Support put(ProviderPtr provider, bool replaces);
  /// Returns the snapshot that it replaces.
  std::shared_ptr<const Snapshot> publish();

  const std::vector<ProviderPtr> shipped_;
  mutable ForkSafeMutex mutex_;  // guards what follows
  std::vector<ProviderPtr> added_;
  std::map<std::string, op::OperationPtr, std::less<>> operations_;
  std::shared_ptr<const Snapshot> snapshot_;
};

}  // namespace tilewright::registry
