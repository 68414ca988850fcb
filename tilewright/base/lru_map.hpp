// A bounded map that evicts the least recently used entries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tilewright {

/// Each value has a cost, such as its size in bytes. The sum of costs is at most `capacity`, unless the newest value
/// alone exceeds it. Not thread-safe.
template <class Key, class Value, class Hash = std::hash<Key>>
class LruMap {
 public:
  explicit LruMap(std::int64_t capacity) : capacity_(capacity) {}

  /// Null if the key is absent. Counts as a use. The pointer is valid until the next insert(), erase_if() or clear().
  Value* find(const Key& key) {
    const auto found = index_.find(key);
    if (found == index_.end()) return nullptr;
    items_.splice(items_.begin(), items_, found->second);
    return &found->second->value;
  }

  /// Replaces the value of an equal key. Returns the replaced and evicted values, which the caller may destroy after it
  /// released its lock.
  [[nodiscard]] std::vector<Value> insert(const Key& key, Value value, std::int64_t cost = 1) {
    std::vector<Value> removed;
    if (const auto found = index_.find(key); found != index_.end()) removed.push_back(remove(found->second));
    items_.push_front({key, std::move(value), cost});
    index_.emplace(key, items_.begin());
    cost_ += cost;
    while (cost_ > capacity_ && items_.size() > 1) removed.push_back(remove(std::prev(items_.end())));
    return removed;
  }

  /// Removes and returns the values for which condition(key, value) holds.
  template <class Condition>
  [[nodiscard]] std::vector<Value> erase_if(const Condition& condition) {
    std::vector<Value> removed;
    for (auto item = items_.begin(); item != items_.end();) {
      const auto next = std::next(item);
      if (condition(std::as_const(item->key), std::as_const(item->value))) removed.push_back(remove(item));
      item = next;
    }
    return removed;
  }
  [[nodiscard]] std::vector<Value> clear() {
    return erase_if([](const Key&, const Value&) { return true; });
  }

  std::size_t size() const { return items_.size(); }
  std::int64_t cost() const { return cost_; }

  /// Calls visit(key, value), most recently used first.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const Item& item : items_) visit(item.key, item.value);
  }

 private:
  struct Item {
    Key key;
    Value value;
    std::int64_t cost;
  };
  using Items = std::list<Item>;

  Value remove(typename Items::iterator item) {
    Value value = std::move(item->value);
    cost_ -= item->cost;
    index_.erase(item->key);
    items_.erase(item);
    return value;
  }

  std::int64_t capacity_;
  std::int64_t cost_ = 0;
  Items items_;  // most recently used first
  std::unordered_map<Key, typename Items::iterator, Hash> index_;
};

}  // namespace tilewright
