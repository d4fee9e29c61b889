#include "port/dpdk/device_args.hpp"

#include "port/dpdk/eal.hpp"

#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>
#include <sstream>
#include <string>

#include "base/os/private_folder.hpp"
#include "wire/headers/headers.hpp"

namespace roci {
namespace {

// Ethernet header and up to two VLAN tags before the IP packet.
constexpr uint32_t kFrameOverhead = sizeof(EthernetHeader) + 2 * sizeof(VlanHeader);

constexpr uint32_t round_up(uint32_t value, uint32_t unit) { return (value + unit - 1) / unit * unit; }

// Whether the interface that the arguments name exists, is up, carries the MTU, and may be opened.
Status check_interface(const DeviceArgs& args, uint16_t mtu) {
  const auto named = args.find("iface");
  if (!named) return fail(args.name + ": iface=NAME, the network interface, is required");
  const std::string& interface = *named;
  const std::string subject = args.name + ": network interface \"" + interface + "\"";
  if (interface.empty() || interface.size() >= IFNAMSIZ || if_nametoindex(interface.c_str()) == 0)
    return fail(subject + " does not exist; ip link lists the interfaces", ENODEV);
  const int packet = socket(AF_PACKET, SOCK_RAW, 0);
  if (packet < 0) {
    const int code = errno;
    return fail(subject + ": raw sockets: " + std::strerror(code) + "; root or CAP_NET_RAW is required",
                code);
  }
  ifreq request{};
  std::memcpy(request.ifr_name, interface.data(), interface.size());
  int result = ioctl(packet, SIOCGIFFLAGS, &request);
  const bool is_up = (request.ifr_flags & IFF_UP) != 0;
  if (result == 0) result = ioctl(packet, SIOCGIFMTU, &request);
  const int code = errno;
  close(packet);
  if (result != 0) return fail(subject + ": " + std::strerror(code), code);
  if (!is_up) return fail(subject + " is down; ip link set " + interface + " up", ENETDOWN);
  if (mtu > request.ifr_mtu) {
    return fail(subject + " has MTU " + std::to_string(request.ifr_mtu) + ", and the port " +
                std::to_string(mtu) + "; configure a smaller MTU, or ip link set " + interface + " mtu " +
                std::to_string(mtu));
  }
  return {};
}

Result<DeviceArgs> complete_af_xdp(DeviceArgs args, uint16_t mtu) {
  if (const Status good = check_interface(args, mtu); !good) return fail(good.error());
  return args;
}

Result<DeviceArgs> complete_af_packet(DeviceArgs args, uint16_t mtu) {
  if (const Status good = check_interface(args, mtu); !good) return fail(good.error());
  if (args.find("framesz") || args.find("blocksz") || args.find("framecnt")) return args;
  // The driver expects the frames to be contiguous across all blocks, and the kernel requires blocks of whole pages.
  // Hence a block is the least common multiple of both.
  const uint32_t frame = af_packet_frame_size(mtu);
  const uint32_t block = std::lcm(frame, static_cast<uint32_t>(sysconf(_SC_PAGESIZE)));
  const uint32_t per_block = block / frame;
  args.add("framesz", std::to_string(frame));
  args.add("blocksz", std::to_string(block));
  args.add("framecnt", std::to_string(round_up(512, per_block)));
  return args;
}

// Whether this process has the socket file open. Several sockets can have its name: the listening socket, and the
// connections that it has accepted, which other processes may hold.
bool is_own_socket(const std::string& path) {
  std::ifstream table{"/proc/self/net/unix"};
  std::string line;
  std::set<std::string> sockets;
  while (std::getline(table, line)) {
    // Num: RefCount Protocol Flags Type St Inode Path
    std::istringstream fields{line};
    std::string skipped, found, name;
    fields >> skipped >> skipped >> skipped >> skipped >> skipped >> skipped >> found >> std::ws;
    std::getline(fields, name);
    if (name == path) sockets.insert("socket:[" + found + "]");
  }
  std::error_code ignored;
  for (const auto& fd : std::filesystem::directory_iterator{"/proc/self/fd", ignored}) {
    if (sockets.contains(std::filesystem::read_symlink(fd.path(), ignored).string())) return true;
  }
  return false;
}

// Removes the socket file that an exited server has left, because the driver cannot bind to an existing file. Keeps it
// if a server listens: several devices of this process may share one socket. The probe connects with the wrong socket
// type, which the kernel rejects with EPROTOTYPE if there is a listener. A client that connects and disconnects at once
// would make the interrupt thread of the server's driver (DPDK 22.11) end that process.
Status prepare_server_socket(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  const int probe = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (probe < 0) return {};
  const int result = connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const int code = errno;
  close(probe);
  if (result != 0 && code == ECONNREFUSED) unlink(path.c_str());
  if (result != 0 && code == EPROTOTYPE && !is_own_socket(path)) {
    return fail("socket \"" + path + "\" is in use by another process; use another one", EADDRINUSE);
  }
  return {};
}

// Checks that only root and this user can create or replace the socket. A memif client trusts the descriptors and the
// frames of its server, also of a server that replaces the first one.
Status check_client_socket(const std::filesystem::path& socket) {
  if (const Status folder = check_protected_folder(socket.parent_path()); !folder) {
    return fail("socket \"" + socket.string() + "\": " + folder.error().message +
                    "; use a folder in which only this user or root can create files",
                folder.error().code);
  }
  struct stat found {};
  if (lstat(socket.c_str(), &found) != 0) return {};  // the server may start later
  if (!S_ISSOCK(found.st_mode)) return fail("\"" + socket.string() + "\" is not a socket", ENOTSOCK);
  if (found.st_uid == 0 || found.st_uid == geteuid()) return {};
  return fail(
      "socket \"" + socket.string() + "\" belongs to another user (" + std::to_string(found.st_uid) + ")",
      EPERM);
}

// The socket is a file. The driver's default is an abstract name, to which any user of the machine can connect, and
// which any user can bind first; it must be requested explicitly.
Status complete_memif_socket(DeviceArgs& args) {
  if (args.find("socket-abstract") == "yes") return {};
  const std::string path = args.find("socket").value_or("");
  if (!path.starts_with('/')) {
    return fail(
        args.name + ": socket \"" + path +
        "\" is not an absolute path; use socket=/FOLDER/NAME (or socket-abstract=yes: a name to which "
        "every user of this machine can connect)");
  }
  if (!args.find("socket-abstract")) args.add("socket-abstract", "no");
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored)) {
    return fail(args.name + ": folder \"" + folder.string() + "\" of the socket does not exist; create it",
                ENOENT);
  }
  const Status ready =
      args.find("role") == "server" ? prepare_server_socket(path) : check_client_socket(path);
  if (!ready) return fail(ready.error().within(args.name));
  return {};
}

Result<DeviceArgs> complete_memif(DeviceArgs args, uint16_t mtu) {
  if (const auto role = args.find("role"); role && *role != "client" && *role != "server") {
    return fail(args.name + ": role \"" + *role + "\" is unknown; allowed are server and client");
  }
  if (const auto path = args.find("socket")) {
    if (path->size() >= sizeof(sockaddr_un{}.sun_path)) {
      return fail(args.name + ": socket name \"" + *path + "\" is too long; at most " +
                  std::to_string(sizeof(sockaddr_un{}.sun_path) - 1) + " characters");
    }
  }
  ROCI_TRY(complete_memif_socket(args));
  if (!args.find("bsize"))
    args.add("bsize", std::to_string(std::min(round_up(mtu + kFrameOverhead, 64), 65472U)));
  return args;
}

}  // namespace

Result<DeviceArgs> DeviceArgs::parse(const std::string& text) {
  DeviceArgs args;
  size_t begin = std::min(text.find(','), text.size());
  args.name = text.substr(0, begin);
  if (args.name.empty()) return fail("the device has no name; examples: net_memif0, 0000:01:00.0");
  while (begin < text.size()) {
    const size_t end = std::min(text.find(',', begin + 1), text.size());
    const std::string option = text.substr(begin + 1, end - begin - 1);
    const size_t equals = option.find('=');
    if (equals == std::string::npos || equals == 0) {
      return fail("device " + args.name + ": \"" + option + "\" is not an option of the form key=value");
    }
    args.add(option.substr(0, equals), option.substr(equals + 1));
    begin = end;
  }
  return args;
}

std::string DeviceArgs::to_string() const {
  std::string text = name;
  for (const auto& [key, value] : options) text += "," + key + "=" + value;
  return text;
}

std::optional<std::string> DeviceArgs::find(std::string_view key) const {
  for (const auto& [known, value] : options) {
    if (known == key) return value;
  }
  return std::nullopt;
}

bool DeviceArgs::is_pci() const {
  return name.find(':') != std::string::npos && std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::isxdigit(c) || c == ':' || c == '.';
         });
}

uint32_t af_packet_frame_size(uint16_t mtu) {
  // The bytes that the kernel puts before the IP packet in a slot (tpacket_rcv() in net/packet/af_packet.c): the header
  // and at least 16 bytes for the link-layer header, aligned.
  const uint32_t before_ip = TPACKET_ALIGN(TPACKET2_HDRLEN + 16);
  return round_up(before_ip + kFrameOverhead + mtu, 256);
}

uint32_t af_packet_data_bytes(uint32_t frame_size) {
  return frame_size - static_cast<uint32_t>(TPACKET2_HDRLEN - sizeof(sockaddr_ll));
}

Result<DeviceArgs> complete(DeviceArgs args, uint16_t mtu) {
  const bool shares =
      (args.is_memif() && args.find("zero-copy") == "yes") || args.name.starts_with("net_virtio_user");
  if (shares && !uses_dpdk_memory()) {
    return fail(args.name +
                ": the packet buffers must be shared with another process, and are private without "
                "hugepages; set eal.share_buffers: true, or hugepages: require");
  }
  if (args.is_af_packet()) return complete_af_packet(std::move(args), mtu);
  if (args.name.starts_with("net_af_xdp")) return complete_af_xdp(std::move(args), mtu);
  if (args.is_memif()) return complete_memif(std::move(args), mtu);
  return args;
}

}  // namespace roci
