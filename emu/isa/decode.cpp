#include "emu/isa/decode.h"

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

#include <cstdio>
#include <mutex>
#include <stdexcept>

extern "C" void LLVMInitializeAMDGPUTargetInfo();
extern "C" void LLVMInitializeAMDGPUTargetMC();
extern "C" void LLVMInitializeAMDGPUDisassembler();

namespace emu {

struct Decoder::Llvm {
  std::unique_ptr<llvm::MCRegisterInfo> registers;
  std::unique_ptr<llvm::MCAsmInfo> assembler;
  std::unique_ptr<llvm::MCInstrInfo> instructions;
  std::unique_ptr<llvm::MCSubtargetInfo> subtarget;
  std::unique_ptr<llvm::MCContext> context;
  std::unique_ptr<llvm::MCDisassembler> disassembler;
  std::unique_ptr<llvm::MCInstPrinter> printer;
};

Decoder::Decoder(const std::string& architecture, bool wave64) : llvm_(std::make_unique<Llvm>()) {
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

Decoder::~Decoder() = default;

std::vector<Inst> Decoder::decode(std::span<const uint8_t> code, uint64_t address) {
  llvm::MCInst machine;
  uint64_t size = 0;
  const llvm::ArrayRef<uint8_t> bytes(code.data(), code.size());
  const auto status =
      llvm_->disassembler->getInstruction(machine, size, bytes, address, llvm::nulls());
  if (status != llvm::MCDisassembler::Success || size == 0) {
    char text[64];
    uint32_t word = 0;
    for (size_t i = 0; i < 4 && i < code.size(); ++i) word |= uint32_t{code[i]} << (8 * i);
    std::snprintf(text, sizeof text, "no instruction: 0x%08x at 0x%llx", word,
                  static_cast<unsigned long long>(address));
    throw std::runtime_error(text);
  }
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm_->printer->printInst(&machine, address, "", *llvm_->subtarget, stream);
  std::vector<Inst> found = parse_instruction(text);
  for (Inst& inst : found) {
    inst.address = address;
    inst.size = static_cast<uint8_t>(size);
    bool first = true;
    for (const llvm::MCOperand& operand : machine) {
      if (!operand.isImm()) continue;
      inst.immediate = operand.getImm();
      if (first) inst.first_immediate = operand.getImm();
      first = false;
    }
  }
  return found;
}

}  // namespace emu
