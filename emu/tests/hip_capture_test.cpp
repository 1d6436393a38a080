// Stream capture: its rules, and what may be queried during a capture.

#include <functional>
#include <thread>

#include "emu/tests/hip_graph_support.h"

namespace {

constexpr auto kGlobal = hipStreamCaptureModeGlobal;
constexpr auto kThreadLocal = hipStreamCaptureModeThreadLocal;
constexpr auto kRelaxed = hipStreamCaptureModeRelaxed;

/// Ends a capture that must give a graph.
hipGraph_t end(hipStream_t stream) {
  hipGraph_t graph = nullptr;
  EXPECT_EQ(hipSuccess, hipStreamEndCapture(stream, &graph));
  EXPECT_NE(nullptr, graph);
  return graph;
}

/// Ends a capture that must fail.
void expect_end(hipError_t error, hipStream_t stream) {
  hipGraph_t graph = reinterpret_cast<hipGraph_t>(1);
  HIP_REFUSES(error, hipStreamEndCapture(stream, &graph));
  EXPECT_EQ(nullptr, graph);
}

hipStreamCaptureStatus status_of(hipStream_t stream) {
  hipStreamCaptureStatus status = hipStreamCaptureStatusInvalidated;
  EXPECT_EQ(hipSuccess, hipStreamIsCapturing(stream, &status));
  return status;
}

struct Info {
  explicit Info(hipStream_t stream) {
    const hipGraphNode_t* nodes = nullptr;
    size_t count = 0;
    EXPECT_EQ(hipSuccess, hipStreamGetCaptureInfo_v2(stream, &status, &id, &graph, &nodes, &count));
    next_after.assign(nodes, nodes + count);
  }
  hipStreamCaptureStatus status = hipStreamCaptureStatusNone;
  unsigned long long id = 0;
  hipGraph_t graph = nullptr;
  Nodes next_after;
};

TEST(HipCapture, EveryKindOfWorkBecomesItsNode) {
  const Kernels kernels;
  Buffer<int> data(64);
  const Stream stream;
  int number = 0;
  std::vector<int> on_host(4, 3);
  HIP_OK(hipStreamBeginCapture(stream, kGlobal));
  HIP_OK(launch(kernels["set_to"], 1, 32, 0, stream, data.data, 5));
  HIP_OK(hipMemcpyAsync(data.data + 32, data.data, 16, hipMemcpyDeviceToDevice, stream));
  HIP_OK(hipMemsetAsync(data.data + 36, 1, 16, stream));
  HIP_OK(hipLaunchHostFunc(stream, &add_ten, &number));
  HIP_OK(hipMemcpyAsync(on_host.data(), data.data, 16, hipMemcpyDeviceToHost, stream));
  const Graph graph(end(stream));
  EXPECT_EQ(0, number);
  EXPECT_EQ(std::vector<int>(4, 3), on_host);
  EXPECT_EQ(std::vector<int>(64, 0), data.get());
  const hipGraphNodeType types[] = {hipGraphNodeTypeKernel, hipGraphNodeTypeMemcpy,
                                    hipGraphNodeTypeMemset, hipGraphNodeTypeHost,
                                    hipGraphNodeTypeMemcpy};
  const Nodes nodes = graph.nodes();
  ASSERT_EQ(5u, nodes.size());
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(types[i], type_of(nodes[i])) << i;
    EXPECT_EQ(i == 0 ? Nodes{} : Nodes{nodes[i - 1]}, Graph::before(nodes[i])) << i;
  }
  Exec(graph).run();
  EXPECT_EQ(10, number);
  EXPECT_EQ(std::vector<int>(4, 5), on_host);
  const std::vector<int> out = data.get();
  EXPECT_EQ(5, out[32]);
  EXPECT_EQ(0x01010101, out[36]);
}

TEST(HipCapture, GraphsWithinAreChildren) {
  int number = 0;
  const Stream stream;
  const Graph inner;
  inner.host(&add_ten, &number);
  const Exec exec(inner);
  HIP_OK(hipStreamBeginCapture(stream, kGlobal));
  HIP_OK(hipGraphLaunch(exec, stream));
  HIP_OK(hipGraphLaunch(exec, stream));
  const Graph graph(end(stream));
  EXPECT_EQ(0, number);
  ASSERT_EQ(2u, graph.nodes().size());
  EXPECT_EQ(hipGraphNodeTypeGraph, type_of(graph.nodes()[0]));
  Exec(graph).run();
  EXPECT_EQ(20, number);
}

TEST(HipCapture, TellsAboutItself) {
  const Stream stream, other;
  EXPECT_EQ(hipStreamCaptureStatusNone, status_of(stream));
  EXPECT_EQ(hipStreamCaptureStatusNone, Info(stream).status);
  HIP_OK(hipStreamBeginCapture(stream, kGlobal));
  EXPECT_EQ(hipStreamCaptureStatusActive, status_of(stream));
  EXPECT_EQ(hipStreamCaptureStatusNone, status_of(other));
  hipStreamCaptureStatus status = hipStreamCaptureStatusNone;
  unsigned long long id = 0, second = 0;
  HIP_OK(hipStreamGetCaptureInfo(stream, &status, &id));
  EXPECT_EQ(hipStreamCaptureStatusActive, status);
  EXPECT_EQ(Info(stream).id, id);
  EXPECT_EQ(Nodes{}, Info(stream).next_after);
  int number = 0;
  HIP_OK(hipLaunchHostFunc(stream, &add_ten, &number));
  const Info info(stream);
  const Nodes nodes = Graph::list(&hipGraphGetNodes, info.graph);
  ASSERT_EQ(1u, nodes.size());
  EXPECT_EQ(nodes, info.next_after);
  const Graph graph(end(stream));
  EXPECT_EQ(info.graph, graph.handle);
  EXPECT_EQ(hipStreamCaptureStatusNone, status_of(stream));
  HIP_OK(hipStreamBeginCapture(stream, kGlobal));
  HIP_OK(hipStreamGetCaptureInfo(stream, &status, &second));
  EXPECT_NE(id, second);
  HIP_OK(hipStreamGetCaptureInfo_v2(stream, &status, nullptr, nullptr, nullptr, nullptr));
  HIP_OK(hipStreamGetCaptureInfo(stream, &status, nullptr));
  const Graph empty(end(stream));
  EXPECT_EQ(Nodes{}, empty.nodes());
  HIP_REFUSES(hipErrorInvalidValue, hipStreamIsCapturing(stream, nullptr));
  HIP_REFUSES(hipErrorInvalidValue, hipStreamGetCaptureInfo(stream, nullptr, &id));
  HIP_REFUSES(hipErrorInvalidValue,
              hipStreamGetCaptureInfo_v2(stream, nullptr, &id, nullptr, nullptr, nullptr));
  HIP_REFUSES(hipErrorContextIsDestroyed, hipStreamIsCapturing(destroyed_stream(), &status));
  HIP_REFUSES(hipErrorContextIsDestroyed,
              hipStreamGetCaptureInfo(destroyed_stream(), &status, &id));
}

/// The handle of a graph that was given out during a capture becomes invalid if the capture fails.
TEST(HipCapture, GraphsOfFailedCapturesAreNone) {
  const Stream stream;
  HIP_OK(hipStreamBeginCapture(stream, kGlobal));
  const hipGraph_t graph = Info(stream).graph;
  size_t count = 0;
  HIP_OK(hipGraphGetNodes(graph, nullptr, &count));
  HIP_REFUSES(hipErrorStreamCaptureUnsupported, hipStreamQuery(stream));
  EXPECT_EQ(hipStreamCaptureStatusInvalidated, status_of(stream));
  EXPECT_EQ(hipStreamCaptureStatusInvalidated, Info(stream).status);
  HIP_REFUSES(hipErrorStreamCaptureInvalidated, hipLaunchHostFunc(stream, &add_ten, &count));
  expect_end(hipErrorStreamCaptureInvalidated, stream);
  HIP_REFUSES(hipErrorInvalidValue, hipGraphGetNodes(graph, nullptr, &count));
}

TEST(HipCapture, BeginsAndEndsOnce) {
  const Stream stream;
  HIP_REFUSES(hipErrorInvalidValue,
              hipStreamBeginCapture(stream, static_cast<hipStreamCaptureMode>(3)));
  HIP_REFUSES(hipErrorStreamCaptureUnsupported, hipStreamBeginCapture(hipStreamLegacy, kGlobal));
  HIP_REFUSES(hipErrorContextIsDestroyed, hipStreamBeginCapture(destroyed_stream(), kGlobal));
  expect_end(hipErrorIllegalState, stream);
  HIP_OK(hipStreamBeginCapture(stream, kGlobal));
  HIP_REFUSES(hipErrorIllegalState, hipStreamBeginCapture(stream, kGlobal));
  HIP_REFUSES(hipErrorInvalidValue, hipStreamEndCapture(stream, nullptr));
  const Graph graph(end(stream));
  expect_end(hipErrorIllegalState, stream);
  expect_end(hipErrorContextIsDestroyed, destroyed_stream());
}

TEST(HipCapture, TheThreadsOwnStreamCanBeWatched) {
  int number = 0;
  HIP_OK(hipStreamBeginCapture(hipStreamPerThread, kGlobal));
  HIP_OK(hipLaunchHostFunc(hipStreamPerThread, &add_ten, &number));
  const Graph graph(end(hipStreamPerThread));
  EXPECT_EQ(1u, graph.nodes().size());
  EXPECT_EQ(0, number);
}

// --- calls that a capture forbids

/// Begins a capture, makes the call, and checks that the capture is invalidated.
template <class Call>
void expect_spoils(hipError_t error, const Call& call, unsigned flags = hipStreamNonBlocking) {
  const Stream stream(flags);
  const Event event;
  HIP_OK(hipStreamBeginCapture(stream, kGlobal));
  HIP_OK(hipEventRecord(event, stream));
  HIP_REFUSES(error, call(stream, event));
  expect_end(hipErrorStreamCaptureInvalidated, stream);
}

TEST(HipCapture, WaitingAndAskingSpoilIt) {
  constexpr auto kUnsupported = hipErrorStreamCaptureUnsupported;
  const Buffer<uint64_t> flag(1);
  expect_spoils(kUnsupported, [](hipStream_t s, hipEvent_t) { return hipStreamSynchronize(s); });
  expect_spoils(kUnsupported, [](hipStream_t s, hipEvent_t) { return hipStreamQuery(s); });
  expect_spoils(kUnsupported, [](hipStream_t s, hipEvent_t) { return hipStreamDestroy(s); });
  expect_spoils(kUnsupported, [](hipStream_t, hipEvent_t) { return hipDeviceSynchronize(); });
  expect_spoils(kUnsupported, [&](hipStream_t s, hipEvent_t) {
    return hipStreamWriteValue64(s, flag.data, 1, 0);
  });
  expect_spoils(kUnsupported, [&](hipStream_t s, hipEvent_t) {
    return hipStreamWaitValue32(s, flag.data, 0, hipStreamWaitValueEq, ~0u);
  });
  expect_spoils(hipErrorCapturedEvent, [](hipStream_t, hipEvent_t e) { return hipEventQuery(e); });
  expect_spoils(hipErrorCapturedEvent,
                [](hipStream_t, hipEvent_t e) { return hipEventSynchronize(e); });
  expect_spoils(hipErrorCapturedEvent, [](hipStream_t, hipEvent_t e) {
    float time = 0;
    return hipEventElapsedTime(&time, e, e);
  });
}

TEST(HipCapture, TheNullStreamMustNotWaitForIt) {
  int number = 0;
  constexpr auto kImplicit = hipErrorStreamCaptureImplicit;
  const auto use = [&](hipStream_t, hipEvent_t) {
    return hipLaunchHostFunc(nullptr, &add_ten, &number);
  };
  expect_spoils(kImplicit, use, hipStreamDefault);
  expect_spoils(
      kImplicit, [](hipStream_t, hipEvent_t e) { return hipStreamWaitEvent(nullptr, e, 0); },
      hipStreamDefault);
  const Stream blocking(hipStreamDefault), free;
  hipStreamCaptureStatus status = hipStreamCaptureStatusNone;
  HIP_OK(hipStreamBeginCapture(blocking, kGlobal));
  HIP_REFUSES(kImplicit, hipStreamIsCapturing(nullptr, &status));
  HIP_REFUSES(kImplicit, hipStreamGetCaptureInfo(nullptr, &status, nullptr));
  HIP_REFUSES(kImplicit, hipStreamGetCaptureInfo_v2(hipStreamLegacy, &status, nullptr, nullptr,
                                                    nullptr, nullptr));
  const Graph graph(end(blocking));  // queries did no harm
  EXPECT_EQ(hipStreamCaptureStatusNone, status_of(nullptr));
  HIP_OK(hipStreamBeginCapture(free, kGlobal));  // the null stream doesn't wait for this stream
  EXPECT_EQ(hipStreamCaptureStatusNone, status_of(nullptr));
  HIP_OK(hipLaunchHostFunc(nullptr, &add_ten, &number));
  const Graph other(end(free));
  HIP_OK(hipStreamSynchronize(nullptr));
  EXPECT_EQ(10, number);
  HIP_OK(hipStreamBeginCapture(blocking, kGlobal));
  HIP_REFUSES(kImplicit, hipStreamSynchronize(nullptr));
  expect_end(hipErrorStreamCaptureInvalidated, blocking);
  HIP_OK(hipStreamBeginCapture(blocking, kGlobal));
  HIP_REFUSES(kImplicit, hipStreamQuery(nullptr));
  expect_end(hipErrorStreamCaptureInvalidated, blocking);
}

/// A call that waits for work, queries its state, or implicitly depends on it.
struct Wait {
  const char* name;
  std::function<hipError_t()> call;
  hipError_t error;
  /// Whether every capture forbids the call; otherwise the modes decide, as for hipMalloc.
  bool in_any_mode;
};

/// Which captures forbid, to which threads, calls that wait for work outside of the capture.
TEST(HipCapture, ModesSayWhoMayWait) {
  constexpr auto kUnsupported = hipErrorStreamCaptureUnsupported;
  constexpr auto kImplicit = hipErrorStreamCaptureImplicit;
  const Stream other;
  const Event event;
  HIP_OK(hipEventRecord(event, other));
  HIP_OK(hipStreamSynchronize(other));
  const Buffer<int> data(4);
  int number = 0;
  const Wait waits[] = {
      {"device", [] { return hipDeviceSynchronize(); }, kUnsupported, true},
      {"copy", [&] { return hipMemcpy(&number, data.data, 4, hipMemcpyDeviceToHost); }, kImplicit,
       true},
      {"copy of nothing", [&] { return hipMemcpyHtoD(data.data, &number, 0); }, kImplicit, true},
      {"fill", [&] { return hipMemset(data.data, 0, 4); }, kImplicit, true},
      {"copy in a stream",
       [&] { return hipMemcpyWithStream(&number, data.data, 4, hipMemcpyDeviceToHost, other); },
       kUnsupported, false},
      {"stream", [&] { return hipStreamSynchronize(other); }, kUnsupported, false},
      {"null stream", [] { return hipStreamSynchronize(nullptr); }, kUnsupported, false},
      {"question to a stream", [&] { return hipStreamQuery(other); }, kUnsupported, false},
      {"event", [&] { return hipEventSynchronize(event); }, kUnsupported, false},
      {"question to an event", [&] { return hipEventQuery(event); }, kUnsupported, false},
      {"free", [] { return hipFree(nullptr); }, kUnsupported, false},
      {"free of pinned memory", [] { return hipHostFree(nullptr); }, kUnsupported, false},
  };
  for (const Wait& wait : waits) {
    for (const hipStreamCaptureMode mode : {kGlobal, kThreadLocal, kRelaxed}) {
      for (const bool here : {false, true}) {
        SCOPED_TRACE(testing::Message() << wait.name << ", mode " << mode << ", here " << here);
        const bool by_mode = mode == kGlobal || (mode == kThreadLocal && here);
        const bool refused = wait.in_any_mode || by_mode;
        const Stream stream;
        HIP_OK(hipStreamBeginCapture(stream, mode));
        const auto run = [&] { HIP_REFUSES(refused ? wait.error : hipSuccess, wait.call()); };
        if (here) {
          run();
        } else {
          std::thread(run).join();
        }
        if (refused) {
          expect_end(hipErrorStreamCaptureInvalidated, stream);
        } else {
          const Graph graph(end(stream));
        }
      }
    }
  }
}

/// A relaxed thread may wait for other work in a capture of any mode, but not for the device.
TEST(HipCapture, RelaxedThreadsMayWait) {
  const Stream stream, other;
  hipStreamCaptureMode mode = kRelaxed;
  HIP_OK(hipThreadExchangeStreamCaptureMode(&mode));
  HIP_OK(hipStreamBeginCapture(stream, kGlobal));
  HIP_OK(hipStreamSynchronize(other));
  HIP_OK(hipStreamQuery(other));
  EXPECT_EQ(hipStreamCaptureStatusActive, status_of(stream));
  HIP_REFUSES(hipErrorStreamCaptureUnsupported, hipDeviceSynchronize());
  HIP_OK(hipThreadExchangeStreamCaptureMode(&mode));
  expect_end(hipErrorStreamCaptureInvalidated, stream);
}

/// The mode of a capture determines which threads it forbids to call hipMalloc.
TEST(HipCapture, ModesSayWhoMayAllocate) {
  const auto allocate = [] {
    void* pointer = nullptr;
    const hipError_t error = hipMalloc(&pointer, 64);
    if (error == hipSuccess) EXPECT_EQ(hipSuccess, hipFree(pointer));
    (void)hipGetLastError();
    return error;
  };
  struct Case {
    hipStreamCaptureMode mode;
    hipError_t here, elsewhere;
  };
  const Case cases[] = {
      {kGlobal, hipErrorStreamCaptureUnsupported, hipErrorStreamCaptureUnsupported},
      {kThreadLocal, hipErrorStreamCaptureUnsupported, hipSuccess},
      {kRelaxed, hipSuccess, hipSuccess}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.mode);
    for (const bool here : {false, true}) {
      const hipError_t wanted = here ? c.here : c.elsewhere;
      const Stream stream;
      HIP_OK(hipStreamBeginCapture(stream, c.mode));
      if (here) {
        EXPECT_EQ(wanted, allocate());
      } else {
        std::thread([&] { EXPECT_EQ(wanted, allocate()); }).join();
      }
      if (wanted == hipSuccess) {
        const Graph graph(end(stream));
      } else {
        expect_end(hipErrorStreamCaptureInvalidated, stream);
      }
    }
  }
}

/// A thread can choose a weaker mode than that of the captures. Then only its own captures count,
/// or none.
TEST(HipCapture, ThreadsExchangeTheirMode) {
  struct Case {
    hipStreamCaptureMode mode;
    hipError_t own, others;
  };
  for (const Case& c : {Case{kThreadLocal, hipErrorStreamCaptureUnsupported, hipSuccess},
                        Case{kRelaxed, hipSuccess, hipSuccess}}) {
    SCOPED_TRACE(c.mode);
    const Stream stream;
    HIP_OK(hipStreamBeginCapture(stream, kGlobal));
    std::thread([&] {
      hipStreamCaptureMode mode = c.mode;
      EXPECT_EQ(hipSuccess, hipThreadExchangeStreamCaptureMode(&mode));
      EXPECT_EQ(kGlobal, mode) << "what it was before";
      void* pointer = nullptr;
      EXPECT_EQ(c.others, hipMalloc(&pointer, 64));
      EXPECT_EQ(hipSuccess, hipFree(pointer));
    }).join();
    EXPECT_EQ(hipStreamCaptureStatusActive, status_of(stream));
    hipStreamCaptureMode mode = c.mode;
    HIP_OK(hipThreadExchangeStreamCaptureMode(&mode));
    void* pointer = nullptr;
    HIP_REFUSES(c.own, hipMalloc(&pointer, 64));
    HIP_OK(hipThreadExchangeStreamCaptureMode(&mode));
    EXPECT_EQ(c.mode, mode);
    hipGraph_t graph = nullptr;
    (void)hipStreamEndCapture(stream, &graph);
    if (graph != nullptr) HIP_OK(hipGraphDestroy(graph));
    HIP_OK(hipFree(pointer));
  }
  (void)hipGetLastError();
  auto unknown = static_cast<hipStreamCaptureMode>(3);
  HIP_REFUSES(hipErrorInvalidValue, hipThreadExchangeStreamCaptureMode(&unknown));
  HIP_REFUSES(hipErrorInvalidValue, hipThreadExchangeStreamCaptureMode(nullptr));
}

TEST(HipCapture, EndsInTheThreadThatBeganIt) {
  const Stream stream;
  int number = 0;
  for (const hipStreamCaptureMode mode : {kGlobal, kThreadLocal}) {
    HIP_OK(hipStreamBeginCapture(stream, mode));
    std::thread([&] {
      // Any thread may add to the capture.
      EXPECT_EQ(hipSuccess, hipLaunchHostFunc(stream, &add_ten, &number));
      expect_end(hipErrorStreamCaptureWrongThread, stream);
    }).join();
    const Graph graph(end(stream));
    EXPECT_EQ(1u, graph.nodes().size());
  }
  HIP_OK(hipStreamBeginCapture(stream, kRelaxed));
  std::thread([&] { const Graph graph(end(stream)); }).join();
  EXPECT_EQ(hipStreamCaptureStatusNone, status_of(stream));
}

// --- forks and joins

TEST(HipCapture, EventsForkAndJoin) {
  int number = 0;
  const Stream stream, side;
  const Event fork, join;
  HIP_OK(hipStreamBeginCapture(stream, kGlobal));
  HIP_OK(hipLaunchHostFunc(stream, &add_ten, &number));
  HIP_OK(hipEventRecord(fork, stream));
  HIP_OK(hipStreamWaitEvent(side, fork, 0));
  EXPECT_EQ(hipStreamCaptureStatusActive, status_of(side));
  EXPECT_EQ(Info(stream).id, Info(side).id);
  // It is already being captured.
  HIP_REFUSES(hipErrorIllegalState, hipStreamBeginCapture(side, kGlobal));
  HIP_OK(hipLaunchHostFunc(stream, &add_ten, &number));
  HIP_OK(hipLaunchHostFunc(side, &add_ten, &number));
  HIP_OK(hipEventRecord(join, side));
  HIP_OK(hipStreamWaitEvent(stream, join, 0));
  EXPECT_EQ(2u, Info(stream).next_after.size());
  HIP_OK(hipLaunchHostFunc(stream, &add_ten, &number));
  const Graph graph(end(stream));
  EXPECT_EQ(hipStreamCaptureStatusNone, status_of(side));
  const Nodes nodes = graph.nodes();
  ASSERT_EQ(4u, nodes.size());
  EXPECT_EQ((Nodes{nodes[1], nodes[2]}), Graph::after(nodes[0]));
  EXPECT_EQ((Nodes{nodes[1], nodes[2]}), Graph::before(nodes[3]));
}

/// Events that were recorded in a capture refer to nothing after the capture has ended.
TEST(HipCapture, EventsAreFreeAfterwards) {
  int number = 0;
  const Stream stream, other;
  const Event event;
  HIP_OK(hipStreamBeginCapture(stream, kGlobal));
  HIP_OK(hipLaunchHostFunc(stream, &add_ten, &number));
  HIP_OK(hipEventRecord(event, stream));
  { const Graph graph(end(stream)); }
  HIP_OK(hipStreamWaitEvent(other, event, 0));
  EXPECT_EQ(hipStreamCaptureStatusNone, status_of(other));
  HIP_OK(hipLaunchHostFunc(other, &add_ten, &number));
  HIP_OK(hipStreamSynchronize(other));
  EXPECT_EQ(10, number);
  HIP_OK(hipEventQuery(event));
  HIP_OK(hipEventRecord(event, stream));
  HIP_OK(hipEventSynchronize(event));
}

TEST(HipCapture, CapturesDontMixWithEachOtherNorWithWhatRuns) {
  const Stream first, second, free;
  const Event event, real;
  HIP_OK(hipEventRecord(real, free));
  HIP_OK(hipStreamBeginCapture(first, kRelaxed));
  HIP_REFUSES(hipErrorStreamCaptureIsolation, hipStreamWaitEvent(first, real, 0));
  expect_end(hipErrorStreamCaptureInvalidated, first);
  HIP_OK(hipStreamBeginCapture(first, kRelaxed));
  HIP_OK(hipStreamBeginCapture(second, kRelaxed));
  HIP_OK(hipEventRecord(event, first));
  HIP_REFUSES(hipErrorStreamCaptureMerge, hipStreamWaitEvent(second, event, 0));
  expect_end(hipErrorStreamCaptureInvalidated, first);
  expect_end(hipErrorStreamCaptureInvalidated, second);
}

/// External events become nodes of the graph, whatever they refer to otherwise.
TEST(HipCapture, ExternalEventsAreNodes) {
  const Stream stream, other;
  const Event waited, recorded;
  Gate gate;
  HIP_OK(hipLaunchHostFunc(other, &Gate::wait, &gate));
  HIP_OK(hipStreamBeginCapture(stream, kRelaxed));  // the other modes forbid the query below
  HIP_OK(hipStreamWaitEvent(stream, waited, hipEventWaitExternal));
  HIP_OK(hipEventRecordWithFlags(recorded, stream, hipEventRecordExternal));
  HIP_OK(hipEventQuery(recorded)) << "isn't a mark in the capture";
  const Graph graph(end(stream));
  const Nodes nodes = graph.nodes();
  ASSERT_EQ(2u, nodes.size());
  EXPECT_EQ(hipGraphNodeTypeWaitEvent, type_of(nodes[0]));
  EXPECT_EQ(hipGraphNodeTypeEventRecord, type_of(nodes[1]));
  HIP_OK(hipEventRecord(waited, other));
  const Exec exec(graph);
  HIP_OK(hipGraphLaunch(exec, stream));
  HIP_REFUSES(hipErrorNotReady, hipEventQuery(recorded));
  gate.open = true;
  HIP_OK(hipEventSynchronize(recorded));
}

// --- dependencies of the next operation, set explicitly

TEST(HipCapture, DependenciesAreAddedAndSet) {
  int number = 0;
  const Stream stream;
  HIP_OK(hipStreamBeginCapture(stream, kGlobal));
  HIP_OK(hipLaunchHostFunc(stream, &add_ten, &number));
  const hipGraph_t graph_now = Info(stream).graph;
  hipGraphNode_t first = Info(stream).next_after.at(0), by_hand = nullptr;
  HIP_OK(hipGraphAddEmptyNode(&by_hand, graph_now, &first, 1));
  HIP_OK(hipStreamUpdateCaptureDependencies(stream, &by_hand, 1, hipStreamAddCaptureDependencies));
  EXPECT_EQ((Nodes{first, by_hand}), Info(stream).next_after);
  HIP_OK(hipStreamUpdateCaptureDependencies(stream, &by_hand, 1, hipStreamAddCaptureDependencies));
  EXPECT_EQ(2u, Info(stream).next_after.size()) << "each counts once";
  HIP_OK(hipStreamUpdateCaptureDependencies(stream, &by_hand, 1, hipStreamSetCaptureDependencies));
  EXPECT_EQ(Nodes{by_hand}, Info(stream).next_after);
  const Graph foreign;
  hipGraphNode_t bad[] = {first, foreign.empty()};
  const auto set = [&](hipStream_t s, hipGraphNode_t* nodes, size_t count, unsigned flags) {
    return hipStreamUpdateCaptureDependencies(s, nodes, count, flags);
  };
  HIP_REFUSES(hipErrorInvalidValue, set(stream, bad, 2, hipStreamSetCaptureDependencies));
  HIP_REFUSES(hipErrorInvalidValue, set(stream, nullptr, 1, hipStreamSetCaptureDependencies));
  HIP_REFUSES(hipErrorInvalidValue, set(stream, &first, 1, 2));
  const Stream other;
  HIP_REFUSES(hipErrorIllegalState, set(other, nullptr, 0, hipStreamSetCaptureDependencies));
  EXPECT_EQ(Nodes{by_hand}, Info(stream).next_after) << "what is refused changes nothing";
  HIP_OK(hipLaunchHostFunc(stream, &add_ten, &number));
  const Graph graph(end(stream));
  EXPECT_EQ(Nodes{by_hand}, Graph::before(graph.nodes().back()));
}

/// Work whose last node was removed from the next operation's dependencies needn't be joined.
TEST(HipCapture, WhatIsLetGoNeedntBeJoined) {
  int number = 0;
  const Stream stream;
  HIP_OK(hipStreamBeginCapture(stream, kGlobal));
  HIP_OK(hipLaunchHostFunc(stream, &add_ten, &number));
  HIP_OK(hipStreamUpdateCaptureDependencies(stream, nullptr, 0, hipStreamSetCaptureDependencies));
  HIP_OK(hipLaunchHostFunc(stream, &add_ten, &number));
  const Graph graph(end(stream));
  EXPECT_EQ(2u, graph.roots().size());
}

TEST(HipCapture, WhatIsSpoiledTakesNoDependencies) {
  const Stream stream;
  HIP_OK(hipStreamBeginCapture(stream, kGlobal));
  HIP_REFUSES(hipErrorStreamCaptureUnsupported, hipStreamSynchronize(stream));
  HIP_REFUSES(
      hipErrorStreamCaptureInvalidated,
      hipStreamUpdateCaptureDependencies(stream, nullptr, 0, hipStreamSetCaptureDependencies));
  expect_end(hipErrorStreamCaptureInvalidated, stream);
}

}  // namespace
