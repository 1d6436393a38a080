// Calls RCCL's collective operations over all devices of this process and compares their results,
// which are exact for the whole numbers used: rccl_calls LIBRARY_OF_HIP LIBRARY_OF_RCCL. Prints "ok
// NAME" or "bad NAME: why" for each operation.

#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace {

enum Type : int { kInt32 = 2, kFloat = 7 };
enum Op : int { kSum = 0, kMax = 2 };
constexpr size_t kCount = 1000;
constexpr int kToDevice = 1, kToHost = 2;

void* library(const char* name) {
  void* handle = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
  if (handle != nullptr) return handle;
  std::printf("bad start: %s\n", dlerror());
  std::exit(1);
}

void* hip = nullptr;
void* rccl = nullptr;

/// Calls a function and ends the program if it fails.
template <class... Arguments>
void call(void* handle, const char* name, Arguments... arguments) {
  void* address = dlsym(handle, name);
  if (address == nullptr) {
    std::printf("bad start: no %s\n", name);
    std::exit(1);
  }
  const int error = reinterpret_cast<int (*)(Arguments...)>(address)(arguments...);
  if (error == 0) return;
  std::printf("bad %s: it gave %d\n", name, error);
  std::exit(1);
}

struct Rank {
  int device;
  void *communicator, *stream = nullptr, *in = nullptr, *out = nullptr;
};

using Values = std::vector<int32_t>;

/// The value that rank `rank` sends at `i`.
int32_t sent(size_t rank, size_t i) {
  return static_cast<int32_t>((i * 7 + rank * 31) % 201) - 100;
}

template <class T>
void put(const Rank& rank, size_t number, size_t count) {
  std::vector<T> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<T>(sent(number, i));
  call(hip, "hipMemcpy", rank.in, static_cast<const void*>(values.data()), count * sizeof(T),
       kToDevice);
  call(hip, "hipMemset", rank.out, 0, 2 * kCount * 4);
  call(hip, "hipDeviceSynchronize");
}

template <class T>
Values got(const Rank& rank, size_t count) {
  std::vector<T> values(count);
  call(hip, "hipMemcpy", static_cast<void*>(values.data()), static_cast<const void*>(rank.out),
       count * sizeof(T), kToHost);
  return Values(values.begin(), values.end());
}

/// Runs one operation on all ranks. wanted: what a rank must have got at a position.
template <class T>
void check(const char* name, std::vector<Rank>& ranks, size_t count_out,
           const std::function<void(const Rank&)>& operation,
           const std::function<int32_t(size_t rank, size_t i)>& wanted) {
  for (size_t r = 0; r < ranks.size(); ++r) {
    call(hip, "hipSetDevice", ranks[r].device);
    put<T>(ranks[r], r, kCount);
  }
  call(rccl, "ncclGroupStart");
  for (const Rank& rank : ranks) operation(rank);
  call(rccl, "ncclGroupEnd");
  for (size_t r = 0; r < ranks.size(); ++r) {
    call(hip, "hipSetDevice", ranks[r].device);
    call(hip, "hipStreamSynchronize", ranks[r].stream);
    const Values values = got<T>(ranks[r], count_out);
    for (size_t i = 0; i < count_out; ++i) {
      if (values[i] == wanted(r, i)) continue;
      std::printf("bad %s: rank %zu has %d at %zu, not %d\n", name, r, values[i], i, wanted(r, i));
      return;
    }
  }
  std::printf("ok %s\n", name);
  std::fflush(stdout);
}

std::vector<Rank> start(int count) {
  std::vector<Rank> ranks;
  std::vector<void*> communicators(static_cast<size_t>(count));
  std::vector<int> devices;
  for (int i = 0; i < count; ++i) devices.push_back(i);
  call(rccl, "ncclCommInitAll", communicators.data(), count,
       static_cast<const int*>(devices.data()));
  for (int i = 0; i < count; ++i) {
    Rank rank{i, communicators[static_cast<size_t>(i)]};
    call(hip, "hipSetDevice", i);
    call(hip, "hipStreamCreate", &rank.stream);
    call(hip, "hipMalloc", &rank.in, 2 * kCount * 4);
    call(hip, "hipMalloc", &rank.out, 2 * kCount * 4);
    ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace

int main(int count_of_arguments, char** arguments) {
  if (count_of_arguments != 3) {
    std::fprintf(stderr, "rccl_calls LIBRARY_OF_HIP LIBRARY_OF_RCCL\n");
    return 2;
  }
  hip = library(arguments[1]);
  rccl = library(arguments[2]);
  int count = 0;
  call(hip, "hipGetDeviceCount", &count);
  std::vector<Rank> ranks = start(count);
  const size_t part = kCount / ranks.size();
  const auto total = [&](size_t i) {
    int32_t sum = 0;
    for (size_t r = 0; r < ranks.size(); ++r) sum += sent(r, i);
    return sum;
  };
  const auto most = [&](size_t i) {
    int32_t found = sent(0, i);
    for (size_t r = 1; r < ranks.size(); ++r) found = std::max(found, sent(r, i));
    return found;
  };
  const auto all_reduce = [](int type, int op) {
    return [=](const Rank& r) {
      call(rccl, "ncclAllReduce", r.in, r.out, kCount, type, op, r.communicator, r.stream);
    };
  };
  check<float>("all-reduce, sum of f32", ranks, kCount, all_reduce(kFloat, kSum),
               [&](size_t, size_t i) { return total(i); });
  check<int32_t>("all-reduce, maximum of i32", ranks, kCount, all_reduce(kInt32, kMax),
                 [&](size_t, size_t i) { return most(i); });
  check<float>(
      "reduce-scatter, f32", ranks, part,
      [&](const Rank& r) {
        call(rccl, "ncclReduceScatter", r.in, r.out, part, int{kFloat}, int{kSum}, r.communicator,
             r.stream);
      },
      [&](size_t r, size_t i) { return total(r * part + i); });
  check<int32_t>(
      "all-gather, i32", ranks, part * ranks.size(),
      [&](const Rank& r) {
        call(rccl, "ncclAllGather", r.in, r.out, part, int{kInt32}, r.communicator, r.stream);
      },
      [&](size_t, size_t i) { return sent(i / part, i % part); });
  check<int32_t>(
      "broadcast, i32", ranks, kCount,
      [&](const Rank& r) {
        call(rccl, "ncclBroadcast", r.in, r.out, kCount, int{kInt32}, 1, r.communicator, r.stream);
      },
      [&](size_t, size_t i) { return sent(1, i); });
  std::fflush(stdout);
  std::_Exit(0);  // RCCL's threads may still wait
}
