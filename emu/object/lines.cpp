#include "emu/object/lines.h"

#include <llvm/DebugInfo/DWARF/DWARFCompileUnit.h>
#include <llvm/DebugInfo/DWARF/DWARFContext.h>
#include <llvm/DebugInfo/DWARF/DWARFDebugAbbrev.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/Path.h>

#include "emu/object/line_header.h"

namespace emu {
namespace {

class Dwarf : public Lines {
 public:
  explicit Dwarf(std::vector<uint8_t> file) : file_(std::move(file)) {}

  std::string at(uint64_t address) override {
    if (!opened_) open();
    if (context_ == nullptr) return "";
    llvm::DILineInfoSpecifier what;
    what.FLIKind = llvm::DILineInfoSpecifier::FileLineInfoKind::RawValue;
    const llvm::DIInliningInfo calls = context_->getInliningInfoForAddress(
        {address, llvm::object::SectionedAddress::UndefSection}, what);
    if (calls.getNumberOfFrames() == 0) return "";
    const llvm::DILineInfo& inner = calls.getFrame(0);
    const llvm::DILineInfo& own = own_frame(calls, main_file(address));
    const std::string line = text(own);
    if (line.empty() || file_of(own) == file_of(inner)) return text(inner);
    return text(inner).empty() ? line : line + ", in " + text(inner);
  }

 private:
  static std::string text(const llvm::DILineInfo& info) {
    if (info.Line == 0 || info.FileName == llvm::DILineInfo::BadString) return "";
    return info.FileName + ":" + std::to_string(info.Line);
  }

  /// Returns the name without folders, because line tables list a file under several paths.
  static llvm::StringRef file_of(const llvm::DILineInfo& info) {
    return llvm::sys::path::filename(info.FileName);
  }

  /// Returns the name of the source file that was compiled.
  llvm::StringRef main_file(uint64_t address) {
    llvm::DWARFCompileUnit* unit = context_->getCompileUnitForCodeAddress(address);
    const char* name = unit == nullptr ? nullptr : unit->getUnitDIE().getShortName();
    return name == nullptr ? "" : llvm::sys::path::filename(name);
  }

  /// Returns the innermost inlined call in the main file, since deeper calls are mostly in library
  /// headers. If the kernel itself is in a header, returns the outermost call.
  static const llvm::DILineInfo& own_frame(const llvm::DIInliningInfo& calls,
                                           llvm::StringRef file) {
    const uint32_t count = calls.getNumberOfFrames();
    for (uint32_t i = 0; i < count; ++i) {
      if (file_of(calls.getFrame(i)) == file) return calls.getFrame(i);
    }
    return calls.getFrame(count - 1);
  }

  /// Returns whether LLVM's reader handles this form of a value; it misbehaves for others.
  /// DW_FORM_indirect, whose values name their own forms, is rejected, too.
  static bool sound_form(llvm::dwarf::Form form) {
    constexpr unsigned kReserved = 0x02, kLast = 0x2c;
    return form >= 1 && form <= kLast && form != kReserved && form != llvm::dwarf::DW_FORM_indirect;
  }

  bool sound(llvm::DWARFUnit& unit) {
    const llvm::DWARFAbbreviationDeclarationSet* abbreviations = unit.getAbbreviations();
    if (abbreviations == nullptr) return false;
    for (const llvm::DWARFAbbreviationDeclaration& abbreviation : *abbreviations) {
      for (const auto& attribute : abbreviation.attributes()) {
        if (!sound_form(attribute.Form)) return false;
      }
    }
    const auto table =
        llvm::dwarf::toSectionOffset(unit.getUnitDIE().find(llvm::dwarf::DW_AT_stmt_list));
    if (!table) return true;
    const llvm::StringRef lines = context_->getDWARFObj().getLineSection().Data;
    return sound_line_header({lines.bytes_begin(), lines.bytes_end()}, *table);
  }

  void open() {
    opened_ = true;
    const llvm::StringRef bytes(reinterpret_cast<const char*>(file_.data()), file_.size());
    auto object =
        llvm::object::ObjectFile::createELFObjectFile(llvm::MemoryBufferRef(bytes, "code object"));
    if (!object) {
      llvm::consumeError(object.takeError());
      return;
    }
    object_ = std::move(*object);
    const auto ignore = [](llvm::Error error) { llvm::consumeError(std::move(error)); };
    context_ = llvm::DWARFContext::create(
        *object_, llvm::DWARFContext::ProcessDebugRelocations::Ignore, nullptr, "", ignore, ignore);
    for (const auto& unit : context_->info_section_units()) {
      if (sound(*unit)) continue;
      context_ = nullptr;
      return;
    }
  }

  const std::vector<uint8_t> file_;
  bool opened_ = false;
  std::unique_ptr<llvm::object::ObjectFile> object_;
  std::unique_ptr<llvm::DWARFContext> context_;
};

}  // namespace

std::unique_ptr<Lines> Lines::of(std::vector<uint8_t> file) {
  return std::make_unique<Dwarf>(std::move(file));
}

}  // namespace emu
