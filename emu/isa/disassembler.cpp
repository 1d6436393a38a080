#include "emu/isa/disassembler.h"

#include <llvm/MC/MCAsmInfo.h>
#include <llvm/MC/MCContext.h>
#include <llvm/MC/MCDisassembler/MCDisassembler.h>
#include <llvm/MC/MCInst.h>
#include <llvm/MC/MCInstPrinter.h>
#include <llvm/MC/MCInstrInfo.h>
#include <llvm/MC/MCRegisterInfo.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/MCTargetOptions.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/TargetParser/Triple.h>

#include <mutex>
#include <stdexcept>

extern "C" void LLVMInitializeAMDGPUTargetInfo();
extern "C" void LLVMInitializeAMDGPUTargetMC();
extern "C" void LLVMInitializeAMDGPUDisassembler();

namespace emu {

struct Disassembler::Llvm {
  std::unique_ptr<llvm::MCRegisterInfo> registers;
  std::unique_ptr<llvm::MCAsmInfo> assembler;
  std::unique_ptr<llvm::MCInstrInfo> instructions;
  std::unique_ptr<llvm::MCSubtargetInfo> subtarget;
  std::unique_ptr<llvm::MCContext> context;
  std::unique_ptr<llvm::MCDisassembler> disassembler;
  std::unique_ptr<llvm::MCInstPrinter> printer;
};

Disassembler::Disassembler(const std::string& architecture, bool wave64)
    : llvm_(std::make_unique<Llvm>()) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeAMDGPUTargetInfo();
    LLVMInitializeAMDGPUTargetMC();
    LLVMInitializeAMDGPUDisassembler();
  });
  const llvm::Triple triple("amdgcn-amd-amdhsa");
  std::string error;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple.str(), error);
  if (target == nullptr) throw std::runtime_error(error);
  Llvm& l = *llvm_;
  l.registers.reset(target->createMCRegInfo(triple.str()));
  l.assembler.reset(target->createMCAsmInfo(*l.registers, triple.str(), {}));
  l.instructions.reset(target->createMCInstrInfo());
  l.subtarget.reset(target->createMCSubtargetInfo(
      triple.str(), architecture, wave64 ? "+wavefrontsize64,-wavefrontsize32" : ""));
  if (l.subtarget == nullptr || !l.subtarget->isCPUStringValid(architecture)) {
    throw std::runtime_error("LLVM doesn't know the architecture " + architecture);
  }
  l.context = std::make_unique<llvm::MCContext>(triple, l.assembler.get(), l.registers.get(),
                                                l.subtarget.get());
  l.disassembler.reset(target->createMCDisassembler(*l.subtarget, *l.context));
  l.printer.reset(
      target->createMCInstPrinter(triple, 0, *l.assembler, *l.instructions, *l.registers));
}

Disassembler::~Disassembler() = default;

std::optional<Disassembly> Disassembler::read(std::span<const uint8_t> code,
                                              uint64_t address) const {
  auto found = read_any(code, address);
  // LLVM accepts some registers that an instruction can't have, and says so in its text.
  if (found && found->text.find("/*Invalid") != std::string::npos) return std::nullopt;
  return found;
}

std::optional<Disassembly> Disassembler::read_any(std::span<const uint8_t> code,
                                                  uint64_t address) const {
  llvm::MCInst machine;
  uint64_t size = 0;
  const llvm::ArrayRef<uint8_t> bytes(code.data(), code.size());
  const auto status =
      llvm_->disassembler->getInstruction(machine, size, bytes, address, llvm::nulls());
  if (status != llvm::MCDisassembler::Success || size == 0) return std::nullopt;
  Disassembly found;
  found.size = static_cast<uint8_t>(size);
  llvm::raw_string_ostream stream(found.text);
  llvm_->printer->printInst(&machine, address, "", *llvm_->subtarget, stream);
  for (const llvm::MCOperand& operand : machine) {
    if (operand.isImm()) found.immediates.push_back(operand.getImm());
  }
  return found;
}

}  // namespace emu
