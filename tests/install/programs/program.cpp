// External program: opens a device, creates the objects that every application needs, and prints the error of a bad
// configuration.
#include <roci/version.h>
#include <roci/open.hpp>
#include <roci/port.hpp>

#include <array>
#include <cerrno>
#include <cstdio>
#include <string>

#ifdef WITH_VERBS
#include <infiniband/verbs.h>
#endif

namespace {

// A port of this program, which receives nothing and sends nothing.
class SilentPort final : public roci::ExternalPort {
 public:
  uint16_t receive(rte_mbuf** /*frames*/, uint16_t /*count*/) override { return 0; }
  uint16_t transmit(rte_mbuf** /*frames*/, uint16_t /*count*/) override { return 0; }
  [[nodiscard]] Capabilities capabilities() const override { return {.mtu = 1500}; }
  [[nodiscard]] std::array<uint8_t, 6> mac() const override { return {2, 0, 0, 0, 0, 1}; }
};

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
  ibv_send_wr flush{};
  roci::set_flush(flush, (*region)->iova(), 64, (*region)->rkey());
  if ((*pair)->post_send(&flush, nullptr) != EINVAL) return 8;  // the queue pair is not connected
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
  if (const int failed = use(**device)) return failed;
  const auto registered = roci::register_port(
      "silent", [](const roci::PortRequest& request) -> roci::Result<std::unique_ptr<roci::ExternalPort>> {
        if (request.device != "silent0") return roci::fail("only silent0 exists");
        return std::make_unique<SilentPort>();
      });
  if (!registered) return 7;
  for (const char* port : {"silent0", "silent1"}) {
    const auto own = roci::open_device_from_text(std::string("device: {name: own, port: {device: ") + port +
                                                 "}, addresses: [10.0.0.2/24]}");
    std::printf("%s\n", own ? (*own)->name().c_str() : own.error().message.c_str());
  }
  return 0;
}
