#pragma once

// The headers of the device language that programs of hiprtc find. The build makes a source file of
// emu/hip/device/*.h and of the device_*.h beside this file.

#include <string>
#include <vector>

namespace emu::hip {

struct RtcHeader {
  std::string name, text;
};

const std::vector<RtcHeader>& rtc_headers();

}  // namespace emu::hip
