// SPDX-License-Identifier: Apache-2.0
// The events of a process, in the order (time, source, number within the source).
//
// They are in two parts, because of how windows feed them. Most events come from other processes and are due
// in the very window at whose start they are taken in: those are sorted once and read from the front. The
// rest, timers of the process itself and frames that wait behind long queues, lie in a heap of four children
// a node.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tb/sim/time.h"

namespace weft::tb {

struct Frame;

// Owns one reference to its frame, by hand: queues move items about, and that must cost no more than a copy.
struct EventItem {
  Ps time;
  uint64_t order;  // source and number: see Process
  Frame* frame;
  uint32_t tag;

  bool before(const EventItem& o) const { return key() < o.key(); }

 private:
  // Both parts in one comparison without a branch; times are never negative.
  unsigned __int128 key() const { return static_cast<unsigned __int128>(time) << 64 | order; }
};
static_assert(sizeof(EventItem) == 32);

// What arrived for a process in time for the running window. One serves all processes that a thread runs.
class EventBatch {
 public:
  void add(const EventItem& item) {
    items_.push_back(item);
    __builtin_prefetch(item.frame);
  }
  void sort() {
    next_ = 0;
    std::sort(items_.begin(), items_.end(),
              [](const EventItem& a, const EventItem& b) { return a.before(b); });
  }
  bool empty() const { return next_ == items_.size(); }
  const EventItem& first() const { return items_[next_]; }
  void pop() { ++next_; }
  void clear() {
    items_.clear();
    next_ = 0;
  }

 private:
  std::vector<EventItem> items_;
  size_t next_ = 0;
};

class EventQueue {
 public:
  // At any time, in any order.
  void push(const EventItem& item) {
    size_t i = heap_.size();
    heap_.push_back(item);
    while (i != 0) {
      const size_t parent = (i - 1) / kChildren;
      if (!item.before(heap_[parent])) break;
      heap_[i] = heap_[parent];
      i = parent;
    }
    heap_[i] = item;
  }

  // The next event before `end`, of those in here and in the batch; false: there is none.
  bool take(EventBatch& batch, Ps end, EventItem& item) {
    if (!batch.empty()) {
      if (heap_.empty() || batch.first().before(heap_.front())) {
        item = batch.first();
        batch.pop();
        return true;
      }
    } else if (heap_.empty() || heap_.front().time >= end) {
      return false;
    }
    item = heap_.front();
    pop();
    return true;
  }

  void prefetch() const {
    const auto* line = reinterpret_cast<const char*>(heap_.data());
    __builtin_prefetch(line);
    __builtin_prefetch(line + 64);
    __builtin_prefetch(line + 128);
  }

  // Between windows.
  Ps first() const { return heap_.empty() ? kNever : heap_.front().time; }
  size_t size() const { return heap_.size(); }
  template <class Visitor>
  void each(Visitor&& visit) const {
    for (const EventItem& item : heap_) visit(item);
  }

 private:
  static constexpr size_t kChildren = 4;

  void pop() {
    const EventItem last = heap_.back();
    heap_.pop_back();
    const size_t count = heap_.size();
    if (count == 0) return;
    size_t i = 0;
    for (;;) {
      const size_t child = i * kChildren + 1;
      if (child >= count) break;
      size_t least = child;
      for (size_t c = child + 1; c < std::min(child + kChildren, count); ++c)
        least = heap_[c].before(heap_[least]) ? c : least;
      if (!heap_[least].before(last)) break;
      heap_[i] = heap_[least];
      i = least;
    }
    heap_[i] = last;
  }

  std::vector<EventItem> heap_;
};

}  // namespace weft::tb
