// SPDX-License-Identifier: Apache-2.0
#include "tb/sim/frame.h"

#include <cstdlib>
#include <cstring>
#include <new>

namespace weft::tb {
namespace {

// Each thread gets a number on first use; it selects a cache, nothing else depends on it.
size_t thread_number() {
  static std::atomic<size_t> next{0};
  thread_local const size_t number = next.fetch_add(1, std::memory_order_relaxed);
  return number;
}

}  // namespace

FramePool::~FramePool() {
  for (void* chunk : chunks_) ::operator delete (chunk, std::align_val_t{64});
}

FrameRef FramePool::make(size_t capacity) {
  if (capacity > kMaxFrameBytes) std::abort();  // a caller's bug: no port hands over so long a frame
  const size_t size_class = capacity <= kClassBytes[0] ? 0 : 1;
  Cache& cache = caches_[thread_number() % kCaches];
  Frame* frame;
  {
    std::lock_guard lock(cache.mutex);
    if (!cache.free[size_class]) refill(cache, size_class);
    frame = cache.free[size_class];
    cache.free[size_class] = frame->next;
    --cache.count[size_class];
  }
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

void FramePool::refill(Cache& cache, size_t size_class) {
  std::lock_guard lock(common_mutex_);
  if (!common_[size_class]) {
    const size_t stride = (Frame::kHeaderBytes + kClassBytes[size_class] + 63) & ~size_t{63};
    auto* chunk = static_cast<uint8_t*>(::operator new (stride* kBatch, std::align_val_t{64}));
    chunks_.push_back(chunk);
    allocations_.fetch_add(1, std::memory_order_relaxed);
    for (size_t i = 0; i < kBatch; ++i) {
      auto* frame = new (chunk + i * stride) Frame;
      frame->pool = this;
      frame->size_class = static_cast<uint8_t>(size_class);
      frame->next = common_[size_class];
      common_[size_class] = frame;
    }
  }
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
  Cache& cache = caches_[thread_number() % kCaches];
  std::lock_guard lock(cache.mutex);
  frame->next = cache.free[size_class];
  cache.free[size_class] = frame;
  if (++cache.count[size_class] <= 2 * kBatch) return;
  // A thread that only receives would hoard what another only sends.
  std::lock_guard common_lock(common_mutex_);
  for (size_t i = 0; i < kBatch; ++i) {
    Frame* spare = cache.free[size_class];
    cache.free[size_class] = spare->next;
    --cache.count[size_class];
    spare->next = common_[size_class];
    common_[size_class] = spare;
  }
}

}  // namespace weft::tb
