// As own_eal.c, with the C++ API of the archive's librocinante.so: a device opens, and ports of the program are refused.
#include <rte_eal.h>
#include <rte_mbuf.h>

#include <cerrno>
#include <cstdio>
#include <iterator>
#include <roci/device.hpp>
#include <roci/open.hpp>
#include <roci/port.hpp>

int main() {
  char program[] = "own-eal-api", huge[] = "--no-huge", conf[] = "--no-shconf", pci[] = "--no-pci",
       telemetry[] = "--no-telemetry", memory[] = "-m", mib[] = "64";
  char* arguments[] = {program, huge, conf, pci, telemetry, memory, mib};
  if (rte_eal_init(static_cast<int>(std::size(arguments)), arguments) < 0) return 2;
  if (rte_pktmbuf_pool_create("own", 255, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY) == nullptr)
    return 3;

  const auto device =
      roci::open_device_from_text("device: {port: {device: net_null0}, addresses: [10.0.0.1/24]}");
  if (!device) {
    std::fprintf(stderr, "%s\n", device.error().message.c_str());
    return 4;
  }
  int pools = 0;
  rte_mempool_walk([](rte_mempool*, void* count) { ++*static_cast<int*>(count); }, &pools);

  const roci::Status ports = roci::register_port(
      "own", [](const roci::PortRequest&) { return roci::Result<std::unique_ptr<roci::ExternalPort>>{}; });
  if (ports || ports.error().code != EOPNOTSUPP) return 5;
  std::printf("%s opened, %d pool in the EAL of the program\n%s\n", (*device)->name().c_str(), pools,
              ports.error().message.c_str());
  return 0;
}
