// A bounded map: what was used least recently goes when there is no room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tilewright {

/// Not thread-safe. Each value has a cost, such as its bytes; the sum of costs stays within `capacity`, but for a
/// single value that exceeds it alone.
template <class Key, class Value, class Hash = std::hash<Key>>
class LruMap {
 public:
  explicit LruMap(std::int64_t capacity) : capacity_(capacity) {}

  /// Null where it is not there. Counts as a use. The pointer is valid until the next insert() or erase.
  Value* find(const Key& key) {
    const auto found = index_.find(key);
    if (found == index_.end()) return nullptr;
    items_.splice(items_.begin(), items_, found->second);
    return &found->second->value;
  }

  /// Replaces a value of equal key. Returns what had to go, for the caller to destroy outside of its lock.
  [[nodiscard]] std::vector<Value> insert(const Key& key, Value value, std::int64_t cost = 1) {
    std::vector<Value> gone;
    if (const auto found = index_.find(key); found != index_.end()) gone.push_back(remove(found->second));
    items_.push_front({key, std::move(value), cost});
    index_.emplace(key, items_.begin());
    cost_ += cost;
    while (cost_ > capacity_ && items_.size() > 1) gone.push_back(remove(std::prev(items_.end())));
    return gone;
  }

  /// Removes the values for whose key and value `condition` holds, and returns them.
  template <class Condition>
  [[nodiscard]] std::vector<Value> erase_if(const Condition& condition) {
    std::vector<Value> gone;
    for (auto item = items_.begin(); item != items_.end();) {
      const auto next = std::next(item);
      if (condition(std::as_const(item->key), std::as_const(item->value))) gone.push_back(remove(item));
      item = next;
    }
    return gone;
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
