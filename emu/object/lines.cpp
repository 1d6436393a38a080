#include "emu/object/lines.h"

#include <llvm/DebugInfo/DWARF/DWARFCompileUnit.h>
#include <llvm/DebugInfo/DWARF/DWARFContext.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/Path.h>

#include <algorithm>

#include "emu/object/debug_info.h"
#include "emu/object/limits.h"

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

  /// Sections that overlap, and those that are packed, could have far more bytes than the file.
  static void check_sections(const llvm::object::ObjectFile& object, uint64_t file_bytes) {
    uint64_t total = 0, unpacked = 0;
    for (const llvm::object::SectionRef& section : object.sections()) {
      if (llvm::object::ELFSectionRef(section).getType() == llvm::ELF::SHT_NOBITS) continue;
      total += std::min(section.getSize(), file_bytes + 1);
      if (!section.isCompressed()) continue;
      auto header = section.getContents();
      if (!header) {
        llvm::consumeError(header.takeError());
        bad_image("a packed section that can't be read");
      }
      constexpr uint64_t kSize = 8;  // its place in an Elf64_Chdr
      const auto size = read<uint64_t>(bytes_of(*header), kSize, "a packed section");
      unpacked += std::min(size, kMostFile + 1);
      if (unpacked > kMostFile || unpacked / kMostUnpacking > file_bytes) {
        bad_image("packed sections of more than " + std::to_string(kMostUnpacking) +
                  " times the file's size");
      }
    }
    if (total > file_bytes) bad_image("sections that overlap");
  }

  static Bytes bytes_of(llvm::StringRef text) { return {text.bytes_begin(), text.bytes_end()}; }

  static void check(const llvm::DWARFObject& sections) {
    DebugSections checked;
    int units = 0, types = 0;
    sections.forEachInfoSections([&](const llvm::DWARFSection& section) {
      checked.info = bytes_of(section.Data);
      ++units;
    });
    sections.forEachTypesSections([&](const llvm::DWARFSection& section) {
      checked.types = bytes_of(section.Data);
      ++types;
    });
    if (units > 1 || types > 1) bad_image("several sections of debug information");
    checked.abbreviations = bytes_of(sections.getAbbrevSection());
    checked.lines = bytes_of(sections.getLineSection().Data);
    checked.ranges = bytes_of(sections.getRangesSection().Data);
    checked.range_lists = bytes_of(sections.getRnglistsSection().Data);
    check_debug_info(checked);
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
    try {
      check_sections(*object_, file_.size());
      context_ =
          llvm::DWARFContext::create(*object_, llvm::DWARFContext::ProcessDebugRelocations::Ignore,
                                     nullptr, "", ignore, ignore);
      check(context_->getDWARFObj());
    } catch (const ObjectError&) {
      context_ = nullptr;
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
