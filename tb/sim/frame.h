// SPDX-License-Identifier: Apache-2.0
// Frames on the wire: reference-counted buffers from a pool. After warm-up nothing is allocated per packet; a
// frame that several hold (queue, capture, receiver) is shared and must be copied before it is changed
// (FramePool::writable).
//
// A frame holds either raw bytes or, with kFrameDecoded, a packet as a struct that only the two endpoints
// read. Switches and observers look at neither at every hop: what they need stands in the frame's FrameMeta.
//
// The pool may be used from several threads; each of the first 16 keeps a small cache of free buffers for
// itself, so that frames come and go without a lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace weft::tb {

class FramePool;

inline constexpr size_t kMaxFrameBytes = 9600;   // buffers of the large class; longer frames cannot be made
inline constexpr size_t kMaxDecodedBytes = 192;  // of the struct of a decoded frame

enum FrameFlag : uint8_t {
  kFrameCorrupt = 1,   // the fabric flipped bits
  kFrameCopy = 2,      // the fabric made this copy
  kFrameMacError = 4,  // the MAC reports a bad FCS (tuser)
  kFrameInjected = 8,  // a test put it at the port; it never crossed the fabric
  kFrameDecoded = 16   // holds a struct instead of raw bytes; who made it filled in `meta`
};

enum class FrameKind : uint8_t { kAny, kData, kAck, kProbe };  // kAny of a frame: none of the others

inline constexpr uint16_t kNoNode = 0xffff;
inline constexpr uint8_t kEcnNone = 0, kEcnEct0 = 2, kEcnCe = 3;  // 1 is ECT too

// What the fabric knows of a frame. For raw bytes it is read from them once, where the frame enters
// (describe() in tb/check/traffic.h), and marking CE changes both.
struct FrameMeta {
  uint64_t flow_hash = 0;   // of the 5-tuple; 32 bits will do: each switch mixes it with a salt of its own
  uint32_t wire_bytes = 0;  // that count on links and in queues; without preamble, FCS and gap
  uint16_t src_node = kNoNode, dst_node = kNoNode;  // kNoNode: no address of a cluster
  uint8_t src_port = 0, dst_port = 0;
  FrameKind kind = FrameKind::kAny;
  uint8_t ecn = kEcnNone;
};

struct Frame {
  std::atomic<uint32_t> references{0};
  uint16_t bytes = 0;  // stored; what the links carry is meta.wire_bytes
  uint8_t flags = 0;
  uint8_t size_class = 0;
  FramePool* pool = nullptr;
  Frame* next = nullptr;  // free list
  FrameMeta meta;
  uint32_t in_port = 0;  // of the switch that holds it; the switch's own
  uint8_t* data() { return reinterpret_cast<uint8_t*>(this) + kHeaderBytes; }
  const uint8_t* data() const { return reinterpret_cast<const uint8_t*>(this) + kHeaderBytes; }
  // The struct of a decoded frame.
  template <class Packet>
  Packet& packet() {
    return *reinterpret_cast<Packet*>(data());
  }
  template <class Packet>
  const Packet& packet() const {
    return *reinterpret_cast<const Packet*>(data());
  }
  static constexpr size_t kHeaderBytes = 64;
};
static_assert(sizeof(Frame) <= Frame::kHeaderBytes);

class FrameRef {
 public:
  FrameRef() = default;
  explicit FrameRef(Frame* frame) : frame_(frame) {}  // takes over one reference
  FrameRef(const FrameRef& o) : frame_(o.frame_) {
    if (frame_) frame_->references.fetch_add(1, std::memory_order_relaxed);
  }
  FrameRef(FrameRef&& o) noexcept : frame_(std::exchange(o.frame_, nullptr)) {}
  FrameRef& operator=(FrameRef o) noexcept {
    std::swap(frame_, o.frame_);
    return *this;
  }
  ~FrameRef() { reset(); }

  void reset();
  Frame* release() { return std::exchange(frame_, nullptr); }  // hands its reference over
  explicit operator bool() const { return frame_ != nullptr; }
  Frame* operator->() const { return frame_; }
  Frame& operator*() const { return *frame_; }
  Frame* get() const { return frame_; }

 private:
  Frame* frame_ = nullptr;
};

class FramePool {
 public:
  FramePool() = default;
  ~FramePool();
  FramePool(const FramePool&) = delete;
  FramePool& operator=(const FramePool&) = delete;

  // A frame that may grow to `capacity` bytes (<= kMaxFrameBytes), not initialised, flags 0, size `capacity`,
  // nothing known of it.
  FrameRef make(size_t capacity);
  FrameRef make(const void* bytes, size_t count);
  // A frame that holds a copy of `packet`.
  template <class Packet>
  FrameRef make_decoded(const Packet& packet, const FrameMeta& meta) {
    static_assert(std::is_trivially_copyable_v<Packet> && sizeof(Packet) <= kMaxDecodedBytes &&
                  alignof(Packet) <= 64);
    FrameRef frame = make(&packet, sizeof packet);
    frame->flags = kFrameDecoded;
    frame->meta = meta;
    return frame;
  }
  // Makes `frame` the only reference to its bytes, by a copy if need be.
  void writable(FrameRef& frame);

  uint64_t allocations() const { return allocations_.load(std::memory_order_relaxed); }  // chunks, for tests

 private:
  friend class FrameRef;
  static constexpr size_t kClasses = 2;
  static constexpr size_t kClassBytes[kClasses] = {256, kMaxFrameBytes};
  static constexpr size_t kCaches = 16;
  static constexpr size_t kBatch = 32;  // frames moved between a cache and the common list
  struct alignas(64) Cache {
    Frame* free[kClasses] = {};
    size_t count[kClasses] = {};
  };

  Cache* own_cache();  // of the calling thread, or null
  Frame* take(size_t size_class);
  void release(Frame* frame);
  void refill(Cache& cache, size_t size_class);
  void grow(size_t size_class);  // with common_mutex_ held

  Cache caches_[kCaches];
  std::mutex common_mutex_;
  Frame* common_[kClasses] = {};
  size_t chunk_frames_[kClasses] = {};  // of the newest chunk
  std::vector<std::pair<void*, std::align_val_t>> chunks_;
  std::atomic<uint64_t> allocations_{0};
};

inline void FrameRef::reset() {
  Frame* frame = std::exchange(frame_, nullptr);
  if (!frame) return;
  // The only reference cannot be copied by anybody else meanwhile: no atomic subtraction for it.
  if (frame->references.load(std::memory_order_acquire) == 1 ||
      frame->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    frame->pool->release(frame);
  }
}

}  // namespace weft::tb
