#include "work_ahead.hpp"

#include <utility>

namespace tilewright::bench {
namespace {

template <class Call>
void drop_exceptions(const Call& call) {
  try {
    call();
  } catch (...) {
  }
}

}  // namespace

WorkAhead::WorkAhead(std::size_t items, int threads, std::function<std::vector<Work>(std::size_t)> works_of)
    : works_of_(std::move(works_of)), open_(items, 1) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
}

WorkAhead::~WorkAhead() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  changed_.notify_all();
  threads_.clear();
}

void WorkAhead::wait_for(std::size_t item) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return open_[item] == 0; });
}

void WorkAhead::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stops_ || !parts_.empty() || (next_ < open_.size() && !is_adding_); });
    if (stops_) return;
    if (parts_.empty()) {
      add_item(lock);
      continue;
    }
    const Part part = std::move(parts_.front());
    parts_.pop_front();
    lock.unlock();
    drop_exceptions(part.work);
    lock.lock();
    end_part(part.item);
  }
}

void WorkAhead::add_item(std::unique_lock<std::mutex>& lock) {
  const std::size_t item = next_++;
  is_adding_ = true;
  lock.unlock();
  std::vector<Work> works;
  drop_exceptions([&] { works = works_of_(item); });
  lock.lock();
  is_adding_ = false;
  open_[item] += works.size();
  for (Work& work : works) parts_.push_back({item, std::move(work)});
  end_part(item);
}

void WorkAhead::end_part(std::size_t item) {
  --open_[item];
  changed_.notify_all();
}

}  // namespace tilewright::bench
