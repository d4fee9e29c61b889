// External program: opens a device, creates the objects that every application needs, and prints the error of a bad
// configuration.
#include <roci/version.h>
#include <roci/open.hpp>

#include <array>
#include <cstdio>
#include <string>

#ifdef WITH_VERBS
#include <infiniband/verbs.h>
#endif

namespace {

int use(roci::Device& device) {
  static std::array<char, 4096> memory;
  auto pd = device.allocate_pd();
  if (!pd) return 2;
  auto region = (*pd)->register_memory(memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE);
  if (!region || (*region)->length() != memory.size()) return 3;
  auto queue = device.create_cq(16);
  if (!queue) return 4;
  ibv_qp_init_attr init{};
  init.qp_type = IBV_QPT_RC;
  init.cap = {16, 16, 1, 1, 0};
  auto pair = (*pd)->create_qp(&init, **queue, **queue);
  if (!pair || (*pair)->state() != IBV_QPS_RESET) return 5;
  std::array<ibv_wc, 4> completions{};
  if ((*queue)->poll(4, completions.data()) != 0) return 6;
  std::printf("%s: %d GIDs, queue pair of Rocinante %s\n", device.name().c_str(), device.gid_count(),
              ROCI_VERSION);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const auto wrong = roci::open_device_from_text("device: {port: {device: net_null0, mtv: 1500}}");
  if (wrong) return 1;
  std::printf("%s\n", wrong.error().message.c_str());
#ifdef WITH_VERBS
  std::printf("%s\n", ibv_wc_status_str(IBV_WC_SUCCESS));
#endif
  const std::string text = "device: {port: {device: net_null0}, addresses: [10.0.0.1/24]}";
  auto device = argc > 1 ? roci::open_device(argv[1]) : roci::open_device_from_text(text);
  if (!device) {
    std::printf("%s\n", device.error().message.c_str());
    return 1;
  }
  return use(**device);
}
