// SPDX-License-Identifier: Apache-2.0
#include "tb/sim/frame.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>

namespace weft::tb {
namespace {

constexpr size_t kHugePage = 2 << 20;  // Linux on x86-64; elsewhere only a size of chunks

// The number of a running thread, the lowest that no other has; it selects a cache, nothing else depends on
// it. Threads come and go, a simulation makes its own: what one leaves behind, the next with its number has.
class ThreadNumber {
 public:
  ThreadNumber() {
    uint32_t taken = taken_.load(std::memory_order_relaxed);
    do {
      number_ = static_cast<unsigned>(std::countr_one(taken));
    } while (number_ < 32 &&
             !taken_.compare_exchange_weak(taken, taken | 1u << number_, std::memory_order_acquire));
  }
  ~ThreadNumber() {
    if (number_ < 32) taken_.fetch_and(~(1u << number_), std::memory_order_release);
  }
  unsigned get() const { return number_; }

 private:
  static inline std::atomic<uint32_t> taken_{0};
  unsigned number_ = 0;
};

}  // namespace

FramePool::~FramePool() {
  for (const auto& [chunk, alignment] : chunks_) ::operator delete(chunk, alignment);
}

FrameRef FramePool::make(size_t capacity) {
  if (capacity > kMaxFrameBytes) std::abort();  // a caller's bug: no port hands over so long a frame
  Frame* const frame = take(capacity <= kClassBytes[0] ? 0 : 1);
  frame->references.store(1, std::memory_order_relaxed);
  frame->bytes = static_cast<uint16_t>(capacity);
  frame->flags = 0;
  frame->meta = {};
  return FrameRef(frame);
}

FrameRef FramePool::make(const void* bytes, size_t count) {
  FrameRef frame = make(count);
  std::memcpy(frame->data(), bytes, count);
  return frame;
}

void FramePool::writable(FrameRef& frame) {
  if (frame->references.load(std::memory_order_acquire) == 1) return;
  FrameRef copy = make(frame->data(), frame->bytes);
  copy->flags = frame->flags;
  copy->meta = frame->meta;
  copy->in_port = frame->in_port;
  frame = std::move(copy);
}

FramePool::Cache* FramePool::own_cache() {
  thread_local const ThreadNumber number;
  return number.get() < kCaches ? &caches_[number.get()] : nullptr;
}

Frame* FramePool::take(size_t size_class) {
  Cache* const cache = own_cache();
  if (!cache) {
    std::lock_guard lock(common_mutex_);
    if (!common_[size_class]) grow(size_class);
    return std::exchange(common_[size_class], common_[size_class]->next);
  }
  if (!cache->free[size_class]) refill(*cache, size_class);
  --cache->count[size_class];
  return std::exchange(cache->free[size_class], cache->free[size_class]->next);
}

void FramePool::grow(size_t size_class) {
  // Chunks grow up to a huge page: a thousand hosts hold tens of megabytes of frames, and every hop looks at
  // another one.
  const size_t stride = (Frame::kHeaderBytes + kClassBytes[size_class] + 63) & ~size_t{63};
  size_t& count = chunk_frames_[size_class];
  count = std::clamp(2 * count, kBatch, kHugePage / stride);
  const bool huge = count == kHugePage / stride;
  auto* chunk = static_cast<uint8_t*>(
      ::operator new (huge ? kHugePage : stride* count, std::align_val_t{huge ? kHugePage : 64}));
  if (huge) madvise(chunk, kHugePage, MADV_HUGEPAGE);  // a wish; without it things are only slower
  chunks_.push_back({chunk, std::align_val_t{huge ? kHugePage : 64}});
  allocations_.fetch_add(1, std::memory_order_relaxed);
  for (size_t i = 0; i < count; ++i) {
    auto* frame = new (chunk + i * stride) Frame;
    frame->pool = this;
    frame->size_class = static_cast<uint8_t>(size_class);
    frame->next = common_[size_class];
    common_[size_class] = frame;
  }
}

void FramePool::refill(Cache& cache, size_t size_class) {
  std::lock_guard lock(common_mutex_);
  if (!common_[size_class]) grow(size_class);
  for (size_t i = 0; i < kBatch && common_[size_class]; ++i) {
    Frame* frame = common_[size_class];
    common_[size_class] = frame->next;
    frame->next = cache.free[size_class];
    cache.free[size_class] = frame;
    ++cache.count[size_class];
  }
}

void FramePool::release(Frame* frame) {
  const size_t size_class = frame->size_class;
  Cache* const cache = own_cache();
  if (!cache) {
    std::lock_guard lock(common_mutex_);
    frame->next = std::exchange(common_[size_class], frame);
    return;
  }
  frame->next = std::exchange(cache->free[size_class], frame);
  if (++cache->count[size_class] <= 2 * kBatch) return;
  // A thread that only receives would hoard what another only sends.
  std::lock_guard lock(common_mutex_);
  for (size_t i = 0; i < kBatch; ++i) {
    Frame* spare = cache->free[size_class];
    cache->free[size_class] = spare->next;
    --cache->count[size_class];
    spare->next = common_[size_class];
    common_[size_class] = spare;
  }
}

}  // namespace weft::tb
