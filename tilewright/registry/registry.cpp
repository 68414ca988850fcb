#include "tilewright/registry/registry.hpp"

#include <algorithm>
#include <utility>

#include "tilewright/base/text.hpp"

namespace tilewright::registry {
namespace {

auto find_family(const std::vector<ProviderPtr>& providers, std::string_view family) {
  return std::ranges::find_if(providers, [&](const ProviderPtr& provider) { return provider->family() == family; });
}

}  // namespace

Registry::Registry(std::vector<ProviderPtr> shipped) : shipped_(std::move(shipped)) { publish(); }

Support Registry::add(ProviderPtr provider) { return put(std::move(provider), false); }
Support Registry::replace(ProviderPtr provider) { return put(std::move(provider), true); }

Support Registry::put(ProviderPtr provider, bool replaces) {
  if (provider == nullptr) throw InvalidArgument("the provider to register is null");
  const std::string family = provider->family();
  if (!is_identifier(family)) return refuse("the name of a family must be an identifier, got '{}'", printable(family));
  if (find_family(shipped_, family) != shipped_.end())
    return refuse("'{}' is a family shipped with Tilewright", family).as(RefusalCode::duplicate);
  std::shared_ptr<const Snapshot> old;  // destroyed after the lock is released, since user destructors may run
  const std::scoped_lock lock(mutex_);
  const auto found = find_family(added_, family);
  if (found == added_.end()) {
    added_.push_back(std::move(provider));
  } else if (*found == provider) {
    return {};
  } else if (!replaces) {
    return refuse("the family '{}' is already registered", family).as(RefusalCode::duplicate);
  } else {
    added_[static_cast<std::size_t>(found - added_.begin())] = std::move(provider);
  }
  old = publish();
  return {};
}

bool Registry::remove(std::string_view family) {
  if (find_family(shipped_, family) != shipped_.end())
    throw InvalidArgument(fmt::format("'{}' is a family shipped with Tilewright: filter it out instead", family));
  std::shared_ptr<const Snapshot> old;  // as above
  const std::scoped_lock lock(mutex_);
  const auto found = find_family(added_, family);
  if (found == added_.end()) return false;
  added_.erase(added_.begin() + (found - added_.begin()));
  old = publish();
  return true;
}

std::shared_ptr<const Registry::Snapshot> Registry::snapshot() const {
  const std::scoped_lock lock(mutex_);
  return snapshot_;
}

std::shared_ptr<const Registry::Snapshot> Registry::publish() {
  auto next = std::make_shared<Snapshot>();
  next->providers = added_;
  next->providers.insert(next->providers.end(), shipped_.begin(), shipped_.end());
  next->added = added_.size();
  std::shared_ptr<const Snapshot> old = std::move(snapshot_);
  snapshot_ = std::move(next);
  return old;
}

Support Registry::add(op::OperationPtr operation) {
  if (operation == nullptr) throw InvalidArgument("the operation to register is null");
  const std::scoped_lock lock(mutex_);
  const auto [known, is_new] = operations_.try_emplace(operation->name(), operation);
  if (is_new || known->second == operation) return {};
  return refuse("the operation '{}' is already registered", operation->name()).as(RefusalCode::duplicate);
}

op::OperationPtr Registry::find_operation(std::string_view name) const {
  const std::scoped_lock lock(mutex_);
  const auto found = operations_.find(name);
  return found == operations_.end() ? nullptr : found->second;
}

std::vector<std::string> Registry::operations() const {
  const std::scoped_lock lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, operation] : operations_) names.push_back(name);
  return names;
}

}  // namespace tilewright::registry
