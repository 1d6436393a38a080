#include <chrono>
#include <cstdio>
#include <cstring>
#include <llvm/Object/ELFObjectFile.h>
#include "emu/exec/launch.h"
using namespace emu;
int main(int argc, char** argv) {
  auto o = llvm::object::ObjectFile::createObjectFile(argv[1]);
  if (!o) return 1;
  auto* obj = llvm::cast<llvm::object::ELFObjectFileBase>(o->getBinary());
  std::vector<Symbol> fs; std::vector<uint8_t> text; uint64_t addr = 0; uint64_t kd = 0; std::string want = argv[2];
  llvm::StringRef kdbytes;
  for (auto& s : obj->sections()) if (*s.getName() == ".text") { auto d = *s.getContents(); text.assign(d.bytes_begin(), d.bytes_end()); addr = s.getAddress(); }
  for (auto s : obj->symbols()) { auto n = s.getName()->str(); if (*s.getType() == llvm::object::SymbolRef::ST_Function) fs.push_back({n, *s.getAddress(), llvm::object::ELFSymbolRef(s).getSize()});
    if (n == want + ".kd") { kd = *s.getAddress(); auto sec = **s.getSection(); kdbytes = sec.getContents()->substr(kd - sec.getAddress(), 64); } }
  std::sort(fs.begin(), fs.end(), [](auto& a, auto& b) { return a.address < b.address; });
  const uint8_t* k = kdbytes.bytes_begin(); auto r32 = [&](int i) { uint32_t v; memcpy(&v, k + i, 4); return v; };
  Descriptor d; d.lds_bytes = r32(0); d.scratch_bytes = r32(4); d.kernarg_bytes = r32(8); memcpy(&d.entry_offset, k + 16, 8); d.rsrc3 = r32(44); d.rsrc1 = r32(48); d.rsrc2 = r32(52); d.properties = r32(56) & 0xffff;
  Traits t; t.wave64 = !d.wave32();
  auto rows = select_rows(getenv("CHECK"));
  Code code("gfx1100", t, rows, text, addr, fs);
  Launch l; l.code = &code; l.descriptor = d; l.kernel = want; l.entry = kd + d.entry_offset; l.lds_bytes = d.lds_bytes; l.vgprs = d.vgprs(11);
  auto t0 = std::chrono::steady_clock::now(); code.at(l.entry); 
  printf("lowered %zu ops in %.3f ms, vgprs %d\n", code.at(l.entry).ops.size(), std::chrono::duration<double>(std::chrono::steady_clock::now() - t0).count() * 1e3, l.vgprs);
  Worker w; Shadow sh; std::vector<uint8_t> plane;
  l.checked = getenv("CHECK");
  bool add = want.find("add") != want.npos;
  int n = add ? 1 << 20 : 256;
  size_t cnt = add ? n : n * n;
  std::vector<float> a(cnt), b(cnt), c(cnt);
  for (size_t i = 0; i < cnt; ++i) a[i] = float(i % 1000) * 0.37f, b[i] = float(i % 777) * 0.11f;
  struct { void *c, *a, *b; int n; char rest[512]; } args{c.data(), a.data(), b.data(), n, {}};
  // hidden arguments of code object 5: block counts, group sizes
  auto* hid = reinterpret_cast<char*>(&args) + 32; 
  uint32_t gc[3] = {add ? n / 256u : 16u, add ? 1u : 16u, 1}; uint16_t gs[3] = {uint16_t(add ? 256 : 16), uint16_t(add ? 1 : 16), 1};
  memcpy(hid, gc, 12); memcpy(hid + 12, gs, 6);
  l.kernarg = (uint64_t)&args; l.groups = {gc[0], gc[1], 1}; l.block = {gs[0], gs[1], 1};
  double best = 1e9;
  { uintptr_t lo = std::min({(uintptr_t)a.data(), (uintptr_t)b.data(), (uintptr_t)c.data()}) & ~63ull, hi = std::max({(uintptr_t)a.data(), (uintptr_t)b.data(), (uintptr_t)c.data()}) + cnt * 4;
    uintptr_t st = (uintptr_t)&args; sh.base = 0; (void)st; (void)lo; (void)hi;
    static char arena[64 << 20]; char* q = arena; auto move = [&](std::vector<float>& v) { char* r = q; memcpy(q, v.data(), v.size() * 4); q += v.size() * 4 + 4096; return r; };
    args.a = move(a); args.b = move(b); args.c = q; q += cnt * 4 + 4096; char* ka = q; memcpy(q, &args, sizeof args); l.kernarg = (uint64_t)ka;
    sh.base = (uintptr_t)arena; sh.bytes = sizeof arena; static uint8_t ad[(64 << 20) / 8 + 8], in[(64 << 20) / 8 + 8]; memset(ad, 255, sizeof ad); memset(in, 255, sizeof in); sh.addressable = ad; sh.initialised = in; l.shadow = &sh; }
  for (int rep = 0; rep < 5; ++rep) { auto t1 = std::chrono::steady_clock::now(); for (uint64_t g = 0; g < l.group_count(); ++g) if (!w.run(l, g)) { printf("%s\n", l.error.c_str()); return 1; }
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - t1).count()); }
  bool ok = true; memcpy(c.data(), args.c, cnt * 4); for (auto& f : l.findings) printf("%s\n", f.c_str());
  if (add) for (size_t i = 0; i < cnt; ++i) ok &= c[i] == a[i] + b[i];
  else for (int i = 0; i < n; ++i) for (int j = 0; j < n; ++j) { float s = 0; for (int q = 0; q < n; ++q) s = fmaf(a[i * n + q], b[q * n + j], s); ok &= s == c[i * n + j]; }
  printf("ok %d  %.3f ms\n", ok, best * 1e3);
}
