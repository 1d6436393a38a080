#include "emu/object/lines.h"

#include <llvm/DebugInfo/DWARF/DWARFContext.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Support/MemoryBuffer.h>

#include <mutex>

namespace emu {
namespace {

class Dwarf : public Lines {
 public:
  explicit Dwarf(std::vector<uint8_t> file) : file_(std::move(file)) {}

  std::string at(uint64_t address) override {
    std::lock_guard lock(mutex_);
    if (!opened_) open();
    if (context_ == nullptr) return "";
    llvm::DILineInfoSpecifier what;
    what.FLIKind = llvm::DILineInfoSpecifier::FileLineInfoKind::RawValue;
    const llvm::DILineInfo info = context_->getLineInfoForAddress(
        {address, llvm::object::SectionedAddress::UndefSection}, what);
    if (info.Line == 0 || info.FileName == llvm::DILineInfo::BadString) return "";
    return info.FileName + ":" + std::to_string(info.Line);
  }

 private:
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
  }

  const std::vector<uint8_t> file_;
  std::mutex mutex_;
  bool opened_ = false;
  std::unique_ptr<llvm::object::ObjectFile> object_;
  std::unique_ptr<llvm::DWARFContext> context_;
};

}  // namespace

std::unique_ptr<Lines> Lines::of(std::vector<uint8_t> file) {
  return std::make_unique<Dwarf>(std::move(file));
}

}  // namespace emu
