#pragma once

// Processes the packets of one AQL queue, in order, on a thread of its own. A packet that can't be
// processed gives a message and an error of the queue, which then processes no further packet; its
// completion signal stays as it is.

#include <atomic>
#include <chrono>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

#include "emu/exec/launch.h"
#include "emu/model/aql.h"
#include "emu/model/model.h"

namespace emu::model {

using Clock = std::chrono::steady_clock;

/// A packet that can't be processed.
struct PacketError : std::runtime_error {
  PacketError(QueueError code, const std::string& what) : std::runtime_error(what), code(code) {}
  QueueError code;
};

/// Copies a packet. Throws PacketError if it can't be read.
template <class T>
T read_packet(uint64_t packet) {
  T copy;
  if (!read_at(packet, copy)) throw PacketError(QueueError::memory, "the packet can't be read");
  return copy;
}

class Queue {
 public:
  Queue(Model& model, const QueueInfo& info, int number);
  /// Ends the packet that is being processed, and the thread.
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

 private:
  void loop();
  void process_all();
  bool process_next(uint64_t index);
  void process(uint64_t packet, PacketType type);
  void dispatch(uint64_t packet);
  void run(Launch& launch);
  void barrier(uint64_t packet, bool all);
  void vendor(uint64_t packet);
  template <class Met>
  void wait(uint64_t signal, const Met& met);
  void complete(uint64_t handle, uint64_t started);
  void refuse(const PacketError& error);
  /// Pauses between polls of memory, for a part of the time since the first one, so that a wait
  /// ends late by no more than this part. Returns false if the queue was stopped.
  bool pause(Clock::time_point since) const;

  Model& model_;
  const QueueInfo info_;
  const int number_;
  uint64_t packet_index_ = 0;
  std::atomic<bool> stopped_{false};
  std::mutex mutex_;
  Launch* running_ = nullptr;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace emu::model
