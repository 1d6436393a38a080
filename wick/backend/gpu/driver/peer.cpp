#include "wick/backend/gpu/driver/peer.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/trace/trace.h"
#include "wick/base/error.h"

namespace wick::gpu {
namespace {

/// A pattern in which no two words are equal, so that pieces that were lost, or ended up
/// elsewhere, show.
constexpr size_t kPatternWords = size_t{1} << 19;

std::vector<uint64_t> pattern() {
  std::vector<uint64_t> words(kPatternWords);
  for (size_t i = 0; i < words.size(); ++i) {
    uint64_t x = (i + 1) * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    words[i] = (x ^ x >> 27) * 0x94d049bb133111ebu;
  }
  return words;
}

}  // namespace

/// The way from one GPU, and the events that put its stream and the own one in order.
struct Peers::Link {
  Link(const Driver& of_both, int to, int from) : driver(of_both), own(to), other(from) {}
  ~Link() {
    if (ready != nullptr && driver.try_enter(other)) driver.api.event_destroy(ready);
    if (done != nullptr && driver.try_enter(own)) driver.api.event_destroy(done);
  }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  const Driver& driver;
  const int own, other;  // indices of devices
  bool tested = false;
  Way way;
  void* ready = nullptr;  // of the other: what is copied is there
  void* done = nullptr;   // of the own: it has been copied
};

Peers::Peers(Gpu& own) : own_(own) {}
Peers::~Peers() = default;

void Peers::copy(void* to, Gpu& from_gpu, const void* from, size_t bytes) {
  if (bytes == 0) return;
  if (own_.captures() || from_gpu.captures()) {
    throw Error(ErrorKind::runtime, "to", "a copy between devices can't be recorded",
                fmt::format("{} to {}", from_gpu.device.str(), own_.device.str()),
                "copy before or after");
  }
  {
    std::lock_guard lock(mutex_);
    Link& from_there = link(from_gpu);
    if (from_there.way.direct) return copy_directly(from_there, to, from_gpu, from, bytes);
  }
  copy_staged(to, from_gpu, from, bytes);
}

Peers::Way Peers::way(Gpu& from_gpu) {
  std::lock_guard lock(mutex_);
  return link(from_gpu).way;
}

Peers::Link& Peers::link(Gpu& from_gpu) {
  const Device there = from_gpu.device;
  std::unique_ptr<Link>& found = links_[{there.kind, there.index}];
  if (found == nullptr) {
    found = std::make_unique<Link>(own_.driver, own_.device.index, there.index);
  }
  if (!found->tested) {
    found->way = test(*found, from_gpu);
    found->tested = true;
  }
  return *found;
}

Peers::Way Peers::test(Link& link, Gpu& from_gpu) {
  const int here = own_.device.index, there = from_gpu.device.index;
  if (own_.device.kind != from_gpu.device.kind) return {false, "devices of two vendors"};
  const Driver& driver = own_.driver;
  own_.enter();
  int reaches = 0;
  if (driver.api.device_reaches(&reaches, here, there) != 0 || reaches == 0) {
    return {false, "the devices don't reach each other"};
  }
  if (const int code = driver.reach(there)) return {false, driver.text(code)};
  constexpr unsigned kNoTiming = 2;
  if (link.done == nullptr) {
    own_.check(driver.api.event_create(&link.done, kNoTiming), "creating an event");
  }
  from_gpu.enter();
  if (link.ready == nullptr) {
    from_gpu.check(driver.api.event_create(&link.ready, kNoTiming), "creating an event");
  }
  try {
    if (!copies_right(link, from_gpu)) return {false, "what is copied arrives damaged"};
  } catch (const Error& error) {
    own_.enter();  // throws what is worse than a copy that failed: a lost device
    from_gpu.enter();
    return {false, error.what()};
  }
  return {true, ""};
}

bool Peers::copies_right(Link& link, Gpu& from_gpu) {
  const std::vector<uint64_t> sent = pattern();
  const size_t bytes = sent.size() * sizeof sent[0];
  std::vector<uint64_t> got(sent.size());
  const Scratch source(from_gpu, bytes), target(own_, bytes);
  own_.enter();
  own_.check(own_.driver.api.set_bytes(target.data(), 0, bytes, own_.stream()), "clearing memory");
  from_gpu.enter();
  from_gpu.staging.upload(source.data(), sent.data(), bytes, from_gpu.stream());
  copy_directly(link, target.data(), from_gpu, source.data(), bytes);
  own_.enter();
  own_.staging.download(got.data(), target.data(), bytes, own_.stream());
  return got == sent;
}

void Peers::copy_directly(Link& link, void* to, Gpu& from_gpu, const void* from, size_t bytes) {
  const Driver& driver = own_.driver;
  from_gpu.enter();
  from_gpu.check(driver.api.event_record(link.ready, from_gpu.stream()), "recording an event");
  own_.enter();
  void* const stream = own_.stream();
  own_.check(driver.api.stream_wait_event(stream, link.ready, 0), "waiting for an event");
  const int code =
      trace_work(own_.device.kind, stream, "copy", "copy from " + from_gpu.device.str(),
                 fmt::format("\"bytes\":{}", bytes), [&] {
                   return driver.copy_from_peer(to, own_.device.index, from, from_gpu.device.index,
                                                bytes, stream);
                 });
  own_.check(code, "copying from " + from_gpu.device.str());
  own_.check(driver.api.event_record(link.done, stream), "recording an event");
  // Whoever gets the source's memory next is behind the copy.
  from_gpu.enter();
  from_gpu.check(driver.api.stream_wait_event(from_gpu.stream(), link.done, 0),
                 "waiting for an event");
}

void Peers::copy_staged(void* to, Gpu& from_gpu, const void* from, size_t bytes) {
  // It holds the staging memory of both devices: two such copies, there and back, would wait for
  // each other.
  const std::scoped_lock lock(staged_, from_gpu.peers.staged_);
  from_gpu.enter();
  from_gpu.staging.download_pieces(
      from, bytes, from_gpu.stream(), [&](const char* data, size_t at, size_t count) {
        own_.enter();
        own_.staging.upload(static_cast<char*>(to) + at, data, count, own_.stream());
        from_gpu.enter();
      });
  from_gpu.check_faults();
}

}  // namespace wick::gpu
