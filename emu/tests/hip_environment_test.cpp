// Effects of environment variables, tested in separate processes, and behaviour in children of
// fork.

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <functional>

#include "emu/tests/hip_support.h"

namespace {

/// Runs a disabled test of this program in a separate process. Returns its output on stdout and
/// stderr.
std::string run_self(const std::string& variables, const std::string& test) {
  std::array<char, 4096> path = {};
  EXPECT_GT(readlink("/proc/self/exe", path.data(), path.size() - 1), 0);
  std::string command = "env";
  for (const char* name : {"DEVICES", "MEMORY", "CHECK", "SEED", "TIMEOUT", "THREADS", "ISA"}) {
    command += std::string(" -u WICK_EMU_") + name;
  }
  command += " " + variables + " timeout 60 '" + path.data() +
             "' --gtest_also_run_disabled_tests --gtest_filter=HipEnvironment.DISABLED_" + test +
             " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  EXPECT_NE(nullptr, pipe);
  std::string said;
  std::array<char, 4096> part;
  while (const size_t n = fread(part.data(), 1, part.size(), pipe)) said.append(part.data(), n);
  EXPECT_EQ(0, pclose(pipe)) << command << "\n" << said;
  return said;
}

#define EXPECT_SAYS(said, text) EXPECT_NE((said).find(text), std::string::npos) << (said)
#define EXPECT_SILENT(said) EXPECT_EQ((said).find("wick-emu: WICK"), std::string::npos) << (said)

/// Runs in a separate process: prints the devices, and runs a kernel on the first one.
TEST(HipEnvironment, DISABLED_Tells) {
  int count = 0;
  (void)hipGetDeviceCount(&count);
  printf("%d devices\n", count);
  for (int device = 0; device < count; ++device) {
    HIP_OK(hipSetDevice(device));
    size_t free = 0, total = 0;
    HIP_OK(hipMemGetInfo(&free, &total));
    printf("device %d: %zu of %zu\n", device, free, total);
    void* pointer = nullptr;
    EXPECT_EQ(hipSuccess, hipMalloc(&pointer, total)) << "all of it";
    EXPECT_EQ(hipSuccess, hipFree(pointer));
    EXPECT_EQ(hipErrorOutOfMemory, hipMalloc(&pointer, total + 1));
  }
  HIP_OK(hipSetDevice(0));
  const Kernels kernels;
  const Buffer<int> data(4096);
  HIP_OK(launch(kernels["set_to"], 64, 64, 0, nullptr, data.data, 5));
  EXPECT_EQ(data.get(), std::vector<int>(4096, 5));
}

TEST(HipEnvironment, DISABLED_TellsThatThereIsNone) {
  int count = -1;
  EXPECT_EQ(hipErrorNoDevice, hipGetDeviceCount(&count));
  EXPECT_EQ(0, count);
  void* pointer = nullptr;
  EXPECT_EQ(hipErrorNoDevice, hipMalloc(&pointer, 16));
  EXPECT_EQ(hipErrorNoDevice, hipSetDevice(0));
  EXPECT_EQ(hipErrorNoDevice, hipDeviceSynchronize());
  EXPECT_EQ(hipErrorNoDevice, hipGetLastError());
}

TEST(HipEnvironment, MemoryIsAsLargeAsItSays) {
  const struct {
    const char* text;
    size_t bytes;
  } sizes[] = {{"1M", size_t{1} << 20},
               {"64m", size_t{64} << 20},
               {"1.5G", size_t{3} << 29},
               {"500k", 500 * 1024},
               {"1000000", 1000000 / 4096 * 4096}};  // rounded down to whole pages
  for (const auto& size : sizes) {
    const std::string said = run_self(std::string("WICK_EMU_MEMORY=") + size.text, "Tells");
    const std::string bytes = std::to_string(size.bytes);
    EXPECT_SAYS(said, "device 0: " + bytes + " of " + bytes + "\n");
    EXPECT_SILENT(said);
  }
}

TEST(HipEnvironment, EachDeviceHasItsMemory) {
  std::string said =
      run_self("WICK_EMU_DEVICES=gfx1100,gfx90a,gfx1100 WICK_EMU_MEMORY=4M,8M", "Tells");
  EXPECT_SAYS(said, "3 devices\n");
  EXPECT_SAYS(said, "device 0: 4194304 of");
  EXPECT_SAYS(said, "device 1: 8388608 of");
  EXPECT_SAYS(said, "device 2: 8388608 of");  // the last given size applies
  EXPECT_SILENT(said);
}

TEST(HipEnvironment, MemoryOfNoSizeIsSaidToBe) {
  for (const char* text : {"lots", "-1G", "12", "1e30", "nan", "64Mx", "8GG", "1M1M", "0"}) {
    const std::string said = run_self(std::string("WICK_EMU_MEMORY=") + text, "Tells");
    EXPECT_SAYS(said, std::string("wick-emu: WICK_EMU_MEMORY: '") + text + "'");
    EXPECT_SAYS(said, "device 0: 8589934592 of");
  }
}

TEST(HipEnvironment, ThreadsAndIsa) {
  for (const char* good : {"WICK_EMU_THREADS=1", "WICK_EMU_THREADS=3", "WICK_EMU_THREADS=0",
                           "WICK_EMU_ISA=v3", "WICK_EMU_ISA=", "WICK_EMU_THREADS="}) {
    const std::string said = run_self(std::string("WICK_EMU_MEMORY=1M ") + good, "Tells");
    EXPECT_SILENT(said);
  }
}

/// An invalid value gives a line that names the variable; the variable is then ignored.
TEST(HipEnvironment, NonsenseIsSaidToBe) {
  for (const char* name : {"THREADS", "ISA", "CHECK", "SEED", "TIMEOUT"}) {
    const std::string variable = std::string("WICK_EMU_") + name;
    const std::string said = run_self("WICK_EMU_MEMORY=1M " + variable + "=bogus", "Tells");
    EXPECT_SAYS(said, "wick-emu: " + variable + ": 'bogus'");
  }
  for (const char* text : {"THREADS=-2", "THREADS=2x", "SEED=-1", "TIMEOUT=nan", "TIMEOUT=-0.5"}) {
    const std::string said = run_self(std::string("WICK_EMU_MEMORY=1M WICK_EMU_") + text, "Tells");
    EXPECT_SAYS(said, "wick-emu: WICK_EMU_");
  }
}

TEST(HipEnvironment, DevicesThatArentKnown) {
  std::string said =
      run_self("WICK_EMU_DEVICES=gfx1234 WICK_EMU_MEMORY=1M", "TellsThatThereIsNone");
  EXPECT_SAYS(said, "wick-emu: WICK_EMU_DEVICES: architecture 'gfx1234' isn't known");
  said = run_self("WICK_EMU_DEVICES=gfx1100,bogus,gfx90a WICK_EMU_MEMORY=1M,2M,3M", "Tells");
  EXPECT_SAYS(said, "'bogus' isn't known");
  EXPECT_SAYS(said, "2 devices\n");
  // Its own size, not that of the device that was left out.
  EXPECT_SAYS(said, "device 1: 3145728 of");
}

/// Runs `body` in a child of fork that exits normally. Returns its exit code, or -1 if it had to be
/// killed. `said` receives its output on stderr.
int in_child(const std::function<bool()>& body, std::string& said) {
  int ends[2];
  EXPECT_EQ(0, pipe(ends));
  fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
    close(ends[0]);
    exit(body() ? 0 : 1);
  }
  close(ends[1]);
  int status = 0, done = 0;
  for (int i = 0; i < 2000 && done == 0; ++i) {
    done = waitpid(child, &status, WNOHANG);
    if (done == 0) usleep(10000);
  }
  if (done == 0) {
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
  }
  std::array<char, 4096> part;
  ssize_t n = 0;
  while ((n = read(ends[0], part.data(), part.size())) > 0) said.append(part.data(), n);
  close(ends[0]);
  return done != 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// Devices belong to the parent. Every call of the child is rejected, one line reports it, and the
/// child's exit and the parent's work don't affect each other.
TEST(HipFork, ChildrenAreRefused) {
  const Kernels kernels;
  const Buffer<int> data(64);
  hipStream_t stream = nullptr;
  hipEvent_t event = nullptr;
  HIP_OK(hipStreamCreate(&stream));
  HIP_OK(hipEventCreate(&event));
  const hipFunction_t slow = kernels["slow_set"];
  HIP_OK(launch(slow, 1, 64, 0, stream, data.data, 3, 300000));
  HIP_OK(hipEventRecord(event, stream));
  const auto body = [&] {
    int i = 0, *pointer = nullptr;
    void** out = reinterpret_cast<void**>(&pointer);
    size_t n = 0;
    hipStream_t s = nullptr;
    hipEvent_t e = nullptr;
    hipCtx_t context = nullptr;
    hipGraph_t graph = nullptr;
    hipModule_t module = nullptr;
    hipDeviceProp_tR0600 properties;
    const hipError_t all[] = {hipInit(0),
                              hipGetDeviceCount(&i),
                              hipSetDevice(0),
                              hipGetDevice(&i),
                              hipGetDevicePropertiesR0600(&properties, 0),
                              hipDeviceSynchronize(),
                              hipDeviceReset(),
                              hipCtxGetCurrent(&context),
                              hipCtxSynchronize(),
                              hipMalloc(out, 16),
                              hipFree(data.data),
                              hipHostMalloc(out, 16, 0),
                              hipMallocManaged(out, 16, hipMemAttachGlobal),
                              hipMallocAsync(out, 16, stream),
                              hipFreeAsync(data.data, stream),
                              hipMemGetInfo(&n, &n),
                              hipMemcpy(&i, data.data, 4, hipMemcpyDeviceToHost),
                              hipMemset(data.data, 0, 4),
                              hipMemcpyAsync(&i, data.data, 4, hipMemcpyDeviceToHost, stream),
                              hipStreamCreate(&s),
                              hipStreamSynchronize(stream),
                              hipStreamQuery(stream),
                              hipStreamDestroy(stream),
                              hipEventCreate(&e),
                              hipEventRecord(event, stream),
                              hipEventSynchronize(event),
                              hipEventQuery(event),
                              hipGraphCreate(&graph, 0),
                              hipModuleLoad(&module, "/nowhere"),
                              hipModuleUnload(kernels.module),
                              launch(slow, 1, 64, 0, stream, data.data, 3, 1),
                              hipGetLastError()};
    bool refused = hipGetLastError() == hipSuccess;
    for (const hipError_t error : all) refused = refused && error == hipErrorNotInitialized;
    return refused;
  };
  std::string said;
  EXPECT_EQ(0, in_child(body, said));
  EXPECT_SAYS(said, "wick-emu:");
  EXPECT_SAYS(said, "fork");
  EXPECT_EQ(said.find('\n'), said.size() - 1) << "one line: " << said;
  HIP_OK(hipStreamSynchronize(stream));
  EXPECT_EQ(data.get(), std::vector<int>(64, 3));
  HIP_OK(hipEventDestroy(event));
  HIP_OK(hipStreamDestroy(stream));
}

bool device_works() {
  void* pointer = nullptr;
  int value = 0;
  return hipMalloc(&pointer, 4) == hipSuccess && hipMemset(pointer, 1, 4) == hipSuccess &&
         hipMemcpy(&value, pointer, 4, hipMemcpyDeviceToHost) == hipSuccess &&
         hipFree(pointer) == hipSuccess && value == 0x01010101;
}

/// Runs in a separate process that hasn't made any call before.
TEST(HipEnvironment, DISABLED_ForksFirst) {
  std::string said;
  EXPECT_EQ(0, in_child(device_works, said)) << said;
  EXPECT_EQ("", said);
  EXPECT_TRUE(device_works());
  EXPECT_EQ(1, in_child(device_works, said));
}

TEST(HipFork, BeforeTheFirstCallIsNoMatter) { run_self("WICK_EMU_MEMORY=1M", "ForksFirst"); }

TEST(HipFork, UnderAllChecksToo) {
  const std::string said = run_self("WICK_EMU_MEMORY=1M WICK_EMU_CHECK=all", "ForksFirst");
  EXPECT_EQ(said.find("never freed"), std::string::npos) << said;
}

}  // namespace
