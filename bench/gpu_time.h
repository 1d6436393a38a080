#pragma once

// Times measured by a GPU.

#include <algorithm>
#include <cmath>

#include "wick/backend/gpu/gpu_backend.h"

namespace wick::bench {

class GpuTime {
 public:
  explicit GpuTime(gpu::Gpu& gpu) : gpu_(gpu) {
    gpu_.enter();
    for (void*& event : events_) gpu_.check(gpu_.driver.api.event_create(&event, 0), "an event");
  }
  ~GpuTime() {
    for (void* event : events_) gpu_.driver.api.event_destroy(event);
  }
  GpuTime(const GpuTime&) = delete;
  GpuTime& operator=(const GpuTime&) = delete;

  /// Returns the seconds between events before and after some work; the minimum of some rounds.
  template <class F>
  double best(int rounds, const F& work) {
    const gpu::Api& api = gpu_.driver.api;
    double least = INFINITY;
    for (int round = 0; round < rounds; ++round) {
      gpu_.check(api.event_record(events_[0], gpu_.stream()), "an event");
      work();
      gpu_.check(api.event_record(events_[1], gpu_.stream()), "an event");
      gpu_.check(api.event_synchronize(events_[1]), "waiting");
      float ms = 0;
      gpu_.check(api.event_elapsed(&ms, events_[0], events_[1]), "an event");
      least = std::min(least, static_cast<double>(ms) * 1e-3);
    }
    return least;
  }

  /// Returns the bytes per second that the driver's copies read and write together. The copies
  /// aren't captured as a graph, where the driver copies more slowly.
  double copy_rate() {
    const size_t bytes = size_t{1} << 30;
    const gpu::Scratch a(gpu_, bytes), b(gpu_, bytes);
    const double seconds = best(7, [&] {
      gpu_.check(gpu_.driver.api.copy_on_device(b.data(), a.data(), bytes, gpu_.stream()),
                 "copying");
    });
    return 2.0 * static_cast<double>(bytes) / seconds;
  }

 private:
  gpu::Gpu& gpu_;
  void* events_[2] = {};
};

}  // namespace wick::bench
