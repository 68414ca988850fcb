#include "tools/cuda_runtime/repeated_work.hpp"

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

namespace tilewright::cuda_runtime {
namespace {

using emulator::ByteRanges;

std::uint64_t hash_of_contents(const ByteRanges& ranges) {
  std::uint64_t hash = 0;
  for (const auto& [begin, end] : ranges.ranges()) {
    const std::string_view bytes(reinterpret_cast<const char*>(begin), end - begin);
    hash = hash * 0x100000001b3 ^ std::hash<std::string_view>()(bytes);  // the multiplier of FNV-1a
  }
  return hash;
}

}  // namespace

RepeatedWork::Verdict RepeatedWork::judge(const std::string& key) {
  if (state_ == State::running && next_ == length_) end_second_run();
  if (state_ == State::leaving_out) {
    if (key != history_[history_.size() - length_ + next_].key) {
      forget();
      return Verdict::run;
    }
    next_ = (next_ + 1) % length_;
    return next_ == 0 ? Verdict::finish : Verdict::defer;
  }
  // Each work of the second run has added an entry, so that the one to be repeated is always `length_` entries back.
  if (state_ == State::running && key == history_[history_.size() - length_].key) {
    ++next_;
  } else {
    begin_second_run(key);
  }
  return Verdict::run;
}

void RepeatedWork::begin_second_run(const std::string& key) {
  state_ = State::looking;
  if (std::ranges::find(refused_, key) != refused_.end()) return;
  const auto last =
      std::find_if(history_.rbegin(), history_.rend(), [&](const Entry& each) { return each.key == key; });
  const auto length = static_cast<std::size_t>(last - history_.rbegin()) + 1;
  if (last == history_.rend() || length > kLongestSequence) return;
  state_ = State::running;
  length_ = length;
  next_ = 1;
  written_ = written_by_last();
  contents_ = hash_of_contents(written_);
}

void RepeatedWork::end_second_run() {
  if (written_.contains(written_by_last()) && hash_of_contents(written_) == contents_) {
    state_ = State::leaving_out;
    next_ = 0;
  } else {
    state_ = State::looking;
    refused_.push_back(history_[history_.size() - length_].key);
  }
}

void RepeatedWork::note(const std::string& key, ByteRanges written) {
  history_.push_back({key, std::move(written)});
  if (history_.size() > 2 * kLongestSequence) history_.erase(history_.begin(), history_.end() - kLongestSequence);
}

void RepeatedWork::forget() {
  history_.clear();
  refused_.clear();
  state_ = State::looking;
}

ByteRanges RepeatedWork::written_by_last() const {
  ByteRanges all;
  for (auto entry = history_.end() - static_cast<std::ptrdiff_t>(length_); entry != history_.end(); ++entry) {
    all.add(entry->written);
  }
  all.normalise();
  return all;
}

}  // namespace tilewright::cuda_runtime
