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
  if (state_ == State::running && next_ == length_) {  // the sequence has run for the second time
    const std::string& first = history_[history_.size() - length_].key;
    if (written_.contains(written_by_last()) && hash_of_contents(written_) == contents_) {
      state_ = State::leaving_out;
      next_ = 0;
    } else {
      refused_.push_back(first);
      state_ = State::looking;
    }
  }
  if (state_ != State::looking &&
      history_[history_.size() - length_ + (state_ == State::running ? 0 : next_)].key != key) {
    if (state_ == State::leaving_out) {
      forget();
      return Verdict::run;
    }
    state_ = State::looking;
  }
  if (state_ == State::leaving_out) {
    next_ = (next_ + 1) % length_;
    return next_ == 0 ? Verdict::finish : Verdict::defer;
  }
  if (state_ == State::running) {
    ++next_;
    return Verdict::run;
  }
  if (std::ranges::find(refused_, key) != refused_.end()) return Verdict::run;
  const std::size_t longest = std::min(kLongestSequence, history_.size());
  for (std::size_t length = 1; length <= longest; ++length) {
    if (history_[history_.size() - length].key != key) continue;
    length_ = length;
    written_ = written_by_last();
    contents_ = hash_of_contents(written_);
    state_ = State::running;
    next_ = 1;
    break;
  }
  return Verdict::run;
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
