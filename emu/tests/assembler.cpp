#include "emu/tests/assembler.h"

#include <llvm/MC/MCAsmInfo.h>
#include <llvm/MC/MCContext.h>
#include <llvm/MC/MCInstrInfo.h>
#include <llvm/MC/MCObjectFileInfo.h>
#include <llvm/MC/MCParser/MCAsmParser.h>
#include <llvm/MC/MCParser/MCTargetAsmParser.h>
#include <llvm/MC/MCRegisterInfo.h>
#include <llvm/MC/MCStreamer.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/MCTargetOptions.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/TargetParser/Triple.h>

#include <map>
#include <memory>
#include <stdexcept>

extern "C" void LLVMInitializeAMDGPUTargetInfo();
extern "C" void LLVMInitializeAMDGPUTargetMC();
extern "C" void LLVMInitializeAMDGPUAsmParser();

namespace emu::test {
namespace {

/// The parts of LLVM's assembler that one chip's instructions share.
class Assembler {
 public:
  explicit Assembler(const std::string& arch) {
    LLVMInitializeAMDGPUTargetInfo();
    LLVMInitializeAMDGPUTargetMC();
    LLVMInitializeAMDGPUAsmParser();
    std::string error;
    target_ = llvm::TargetRegistry::lookupTarget(triple_.str(), error);
    if (target_ == nullptr) throw std::runtime_error(error);
    registers_.reset(target_->createMCRegInfo(triple_.str()));
    info_.reset(target_->createMCAsmInfo(*registers_, triple_.str(), options_));
    instructions_.reset(target_->createMCInstrInfo());
    subtarget_.reset(target_->createMCSubtargetInfo(triple_.str(), arch, ""));
  }

  /// Returns what LLVM says about a line of assembly.
  std::string errors(const std::string& line) const {
    std::string said;
    llvm::SourceMgr sources;
    sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(line + "\n"), {});
    llvm::MCContext context(triple_, info_.get(), registers_.get(), subtarget_.get(), &sources);
    context.setDiagnosticHandler([&said](const llvm::SMDiagnostic& message, bool, const auto&,
                                         const auto&) { said += message.getMessage().str(); });
    sources.setDiagHandler(
        [](const llvm::SMDiagnostic& message, void* to) {
          *static_cast<std::string*>(to) += message.getMessage().str();
        },
        &said);
    const std::unique_ptr<llvm::MCObjectFileInfo> sections(
        target_->createMCObjectFileInfo(context, false));
    context.setObjectFileInfo(sections.get());
    const std::unique_ptr<llvm::MCStreamer> out(llvm::createNullStreamer(context));
    target_->createNullTargetStreamer(*out);
    const std::unique_ptr<llvm::MCAsmParser> parser(
        llvm::createMCAsmParser(sources, context, *out, *info_));
    const std::unique_ptr<llvm::MCTargetAsmParser> chip(
        target_->createMCAsmParser(*subtarget_, *parser, *instructions_, options_));
    parser->setTargetParser(*chip);
    parser->Run(false);
    return said;
  }

 private:
  const llvm::Triple triple_{"amdgcn-amd-amdhsa"};
  const llvm::MCTargetOptions options_;
  const llvm::Target* target_ = nullptr;
  std::unique_ptr<llvm::MCRegisterInfo> registers_;
  std::unique_ptr<llvm::MCAsmInfo> info_;
  std::unique_ptr<llvm::MCInstrInfo> instructions_;
  std::unique_ptr<llvm::MCSubtargetInfo> subtarget_;
};

constexpr char kDualMove[] = "v_dual_mov_b32";

/// Without operands, LLVM refuses most instructions, but for another reason if the chip has them.
bool ask(const std::string& arch, const std::string& mnemonic) {
  static std::map<std::string, Assembler> assemblers;
  const std::string said = assemblers.try_emplace(arch, arch).first->second.errors(mnemonic);
  return said.find("instruction not supported") == said.npos &&
         said.find("invalid instruction") == said.npos;
}

}  // namespace

std::string assembled_as(const std::string& arch) { return arch == "gfx950" ? "gfx942" : arch; }

bool has_instruction(const std::string& arch, const std::string& mnemonic) {
  // gfx950 lacks some of the matrix instructions of gfx942.
  if (arch == "gfx950" && mnemonic.ends_with("_xf32")) return false;
  // LLVM has this name on gfx942, too, and refuses all of its operands.
  if (assembled_as(arch) == "gfx942" && mnemonic == "v_mfma_f32_32x32x4bf16") return false;
  // Only the first half of a dual instruction has a mnemonic of its own.
  if (mnemonic.starts_with("v_dual_") && mnemonic != kDualMove) {
    return has_instruction(arch, kDualMove) && has_instruction(arch, "v_" + mnemonic.substr(7));
  }
  static std::map<std::string, bool> known;
  const auto [at, is_new] = known.try_emplace(arch + " " + mnemonic);
  if (is_new) at->second = ask(assembled_as(arch), mnemonic);
  return at->second;
}

}  // namespace emu::test
