#include "wick/backend/gpu/linear/matrix_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cctype>
#include <cstdio>
#include <filesystem>
#include <limits>

#include "wick/backend/gpu/trace/counts.h"
#include "wick/backend/gpu/trace/trace.h"
#include "wick/base/environment.h"
#include "wick/base/error.h"

namespace wick::gpu {
namespace {

namespace fs = std::filesystem;

/// Never destroyed, like drivers.
struct Found {
  std::vector<std::unique_ptr<MatrixLibrary>> libraries;
  std::vector<MatrixLibrary::Missing> missing;
};

const Found* open_all(const std::vector<KnownLibrary>& all) {
  auto* found = new Found;
  for (const KnownLibrary& known : all) {
    std::string trace;
    if (std::unique_ptr<MatrixLibrary> library = known.open(trace)) {
      found->libraries.push_back(std::move(library));
    } else {
      found->missing.push_back({known.name, trace});
    }
  }
  return found;
}

const Found& found(DeviceKind kind) {
  static const Found none;
  if (kind == DeviceKind::cuda) {
    static const Found* const cuda = open_all(cuda_libraries());
    return *cuda;
  }
  if (kind == DeviceKind::hip) {
    static const Found* const hip = open_all(hip_libraries());
    return *hip;
  }
  return none;
}

/// Errors: rows overlap, or matrices of the result do.
void check_layout(const GemmCall& call) {
  const int64_t a_cols = call.a_transposed ? call.m : call.k;
  const int64_t b_cols = call.b_transposed ? call.k : call.n;
  const bool rows = call.lda >= a_cols && call.ldb >= b_cols && call.ldc >= call.n;
  const bool matrices = call.batch == 1 || call.stride_c >= (call.m - 1) * call.ldc + call.n;
  if (rows && matrices && call.stride_a >= 0 && call.stride_b >= 0) return;
  throw Error("gemm", "rows or matrices overlap",
              fmt::format("m {} n {} k {} batch {}", call.m, call.n, call.k, call.batch),
              fmt::format("rows {} {} {}, matrices {} {} {} apart", call.lda, call.ldb, call.ldc,
                          call.stride_a, call.stride_b, call.stride_c));
}

/// Whether all sizes fit 32 bits, which libraries require.
bool fits(const GemmCall& call) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  for (const int64_t size : {call.m, call.n, call.k, call.batch, call.lda, call.ldb, call.ldc}) {
    if (size > kMost) return false;
  }
  return true;
}

}  // namespace

ColumnMajorGemm::ColumnMajorGemm(const GemmCall& call)
    : first{call.b,
            call.b_transposed,
            call.b_transposed ? call.k : call.n,
            call.b_transposed ? call.n : call.k,
            call.ldb,
            call.stride_b},
      second{call.a,
             call.a_transposed,
             call.a_transposed ? call.m : call.k,
             call.a_transposed ? call.k : call.m,
             call.lda,
             call.stride_a},
      out(call.c),
      rows(call.n),
      cols(call.m),
      inner(call.k),
      ld(call.ldc),
      stride(call.stride_c),
      batch(call.batch) {}

LibraryUse library_use() {
  const std::string_view wanted = environment_choice("WICK_GPU_LIBRARIES");
  return wanted == "off"    ? LibraryUse::off
         : wanted == "only" ? LibraryUse::only
                            : LibraryUse::automatic;
}

const std::vector<std::unique_ptr<MatrixLibrary>>& MatrixLibrary::of(DeviceKind kind) {
  return found(kind).libraries;
}

const std::vector<MatrixLibrary::Missing>& MatrixLibrary::missing(DeviceKind kind) {
  return found(kind).missing;
}

bool MatrixLibrary::gemm(Device device, const GemmCall& call, void* stream) {
  const bool dtype =
      call.dtype == DType::f32 || call.dtype == DType::f16 || call.dtype == DType::bf16;
  // With k = 0 the result is zeros, which not every library writes.
  if (device.kind != kind_ || !dtype || call.k == 0) return false;
  if (call.m == 0 || call.n == 0 || call.batch == 0) return true;
  check_layout(call);
  if (!fits(call)) return false;

  std::lock_guard lock(mutex_);
  const auto [at, added] = devices_.try_emplace(device.index);
  if (added) {
    std::string reason;
    at->second = prepare(device, reason);
    if (at->second == nullptr) {
      std::fputs(fmt::format("wick: {}: {} isn't used: {}\n", device.str(), name, reason).c_str(),
                 stderr);
    }
  }
  if (at->second == nullptr) return false;
  const auto run = [&] { return at->second->gemm(call, stream) ? 0 : 1; };
  const int code = tracing() ? trace_work(kind_, stream, "library", name,
                                          fmt::format(R"("shape":"{}x{}x{}","batch":{})", call.m,
                                                      call.n, call.k, call.batch),
                                          run)
                             : run();
  if (code == 0) count_library_call();
  return code == 0;
}

void MatrixLibrary::release(Device device) {
  std::lock_guard lock(mutex_);
  devices_.erase(device.index);
}

bool library_gemm(Device device, const GemmCall& call, void* stream) {
  if (library_use() == LibraryUse::off) return false;
  for (const std::unique_ptr<MatrixLibrary>& library : MatrixLibrary::of(device.kind)) {
    if (library->gemm(device, call, stream)) return true;
  }
  return false;
}

std::vector<std::string> kernel_folders(const std::string& library, std::string_view beside) {
  std::error_code failed;
  const fs::path file = fs::canonical(library, failed), home = file.parent_path();
  const fs::path folder(beside);
  std::vector<std::string> found = {(home / folder).string()};
  // The number behind ".so." tells which of several versions belongs to the library.
  const std::string name = file.filename().string();
  const size_t number = name.find(".so.");
  if (number == std::string::npos) return found;
  const std::string_view behind = std::string_view(name).substr(number + 4);
  const std::string major(behind.substr(0, behind.find('.')));
  const fs::path versions = home / folder.parent_path();
  for (fs::directory_iterator at(versions, failed), end; !failed && at != end;
       at.increment(failed)) {
    const std::string version = at->path().filename().string();
    if (version != major && !version.starts_with(major + ".")) continue;
    found.push_back((at->path() / folder.filename()).string());
  }
  return found;
}

namespace {

/// Returns whether a folder has kernels for an architecture. Sets `any` if it has kernels at all.
bool has_kernels(const std::string& folder, std::string_view architecture, bool& any) {
  bool for_all = false;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    const std::string file = at->path().filename().string();
    if (!file.starts_with("TensileLibrary") || !file.ends_with(".dat")) continue;
    any = true;
    for_all = for_all || file == "TensileLibrary.dat";
    // The architecture must match a whole word: gfx1100 isn't gfx110.
    const size_t word = file.find(architecture);
    if (word != std::string::npos &&
        !std::isalnum(static_cast<unsigned char>(file[word + architecture.size()])))
      return true;
  }
  return for_all;
}

}  // namespace

bool has_kernel_files(const void* function, const char* variable, std::string_view beside,
                      std::string_view architecture, std::string& reason) {
  std::vector<std::string> folders = {""};
  Dl_info where;
  if (const std::string_view chosen = environment(variable); !chosen.empty()) {
    folders = {std::string(chosen)};
  } else if (dladdr(function, &where) != 0 && where.dli_fname != nullptr) {
    folders = kernel_folders(where.dli_fname, beside);
  }
  reason = fmt::format("no kernels in {}", folders[0]);
  for (const std::string& folder : folders) {
    bool any = false;
    if (has_kernels(folder, architecture, any)) return true;
    if (any) reason = fmt::format("no kernels for {} in {}", architecture, folder);
  }
  return false;
}

}  // namespace wick::gpu
