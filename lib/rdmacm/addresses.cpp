// Conversion between socket addresses and GIDs, and allocation of ports.
#include <arpa/inet.h>
#include <endian.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <span>
#include <vector>

#include "base/rng.hpp"
#include "rdmacm/addresses.hpp"

namespace roci::rdmacm {
namespace {

constexpr uint16_t kFirstPort = 32768, kLastPort = 60999;  // range for requests without a port number
constexpr uint64_t kPortMask = 0xffff;                     // of a service ID
constexpr uint64_t kWholeServiceId = ~uint64_t{0};         // mask of service IDs that are not a prefix

// Ports in use. They are local to the process, since each process has its own addresses.
struct Ports {
  struct User {
    const Id* id;
    std::optional<IpAddress> address;  // null: wildcard
    bool ipv6, one_family, shared;
  };
  std::mutex mutex;
  std::map<std::pair<int, uint16_t>, std::vector<User>> users;
};
Ports& ports() {
  static auto* const kPorts = new Ports;
  return *kPorts;
}

bool conflict(const Ports::User& a, const Ports::User& b) {
  if (a.shared && b.shared) return false;
  if (a.one_family && b.one_family && a.ipv6 != b.ipv6) return false;
  return !a.address || !b.address || *a.address == *b.address;
}

}  // namespace

size_t size_of(const sockaddr* address) {
  if (address == nullptr) return 0;
  switch (address->sa_family) {
    case AF_INET:
      return sizeof(sockaddr_in);
    case AF_INET6:
      return sizeof(sockaddr_in6);
    case AF_IB:
      return sizeof(sockaddr_ib);
    default:
      return 0;
  }
}

uint16_t port_of(const sockaddr& address) {
  switch (address.sa_family) {
    case AF_INET:
      return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
    case AF_INET6:
      return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
    case AF_IB: {
      const auto& ib = reinterpret_cast<const sockaddr_ib&>(address);
      return static_cast<uint16_t>(be64toh(ib.sib_sid & ib.sib_sid_mask));
    }
    default:
      return 0;
  }
}

void set_service(sockaddr& address, uint64_t service_id) {
  const uint16_t port = htons(static_cast<uint16_t>(service_id));
  if (address.sa_family == AF_INET) reinterpret_cast<sockaddr_in&>(address).sin_port = port;
  if (address.sa_family == AF_INET6) reinterpret_cast<sockaddr_in6&>(address).sin6_port = port;
  if (address.sa_family == AF_IB) {
    auto& ib = reinterpret_cast<sockaddr_ib&>(address);
    ib.sib_sid = htobe64(service_id);
    ib.sib_sid_mask = kWholeServiceId;
  }
}

std::optional<IpAddress> ip_of(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    const uint32_t v4 = ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr);
    if (v4 == INADDR_ANY || v4 >> 24 == IN_LOOPBACKNET) return std::nullopt;
    return IpAddress::from_v4(v4);
  }
  IpAddress out;
  if (address.sa_family == AF_INET6) {
    std::memcpy(out.bytes.data(), &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr,
                out.bytes.size());
  } else if (address.sa_family == AF_IB) {
    std::memcpy(out.bytes.data(), &reinterpret_cast<const sockaddr_ib&>(address).sib_addr, out.bytes.size());
  } else {
    return std::nullopt;
  }
  if (out.is_zero() || std::memcmp(out.bytes.data(), &in6addr_loopback, out.bytes.size()) == 0)
    return std::nullopt;
  return out;
}

void write_address(const IpAddress& ip, uint16_t port, bool v6, sockaddr_storage& out) {
  out = {};
  if (!v6) {
    auto& address = reinterpret_cast<sockaddr_in&>(out);
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(ip.is_zero() ? INADDR_ANY : ip.v4());
    return;
  }
  auto& address = reinterpret_cast<sockaddr_in6&>(out);
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(port);
  std::memcpy(&address.sin6_addr, ip.bytes.data(), ip.bytes.size());
}

void write_ib_address(const IpAddress& gid, uint64_t service_id, sockaddr_storage& out) {
  out = {};
  auto& address = reinterpret_cast<sockaddr_ib&>(out);
  address.sib_family = AF_IB;
  address.sib_pkey = htons(kDefaultPKey.value());
  std::memcpy(&address.sib_addr, gid.bytes.data(), gid.bytes.size());
  address.sib_sid = htobe64(service_id);
  address.sib_sid_mask = kWholeServiceId;
}

std::optional<uint64_t> service_id_of(const sockaddr& address) {
  if (address.sa_family != AF_IB) return std::nullopt;
  return be64toh(reinterpret_cast<const sockaddr_ib&>(address).sib_sid);
}

std::optional<rdma_port_space> space_of(const sockaddr_ib& address, rdma_port_space space) {
  const uint64_t mask = be64toh(address.sib_sid_mask) & ~kPortMask;
  const uint64_t prefix = be64toh(address.sib_sid) & mask;
  for (const auto candidate : {RDMA_PS_IB, RDMA_PS_TCP, RDMA_PS_UDP}) {
    const bool permitted = space == candidate || (space == RDMA_PS_IB && candidate != RDMA_PS_IB);
    if (permitted && prefix == (cm_service_id(static_cast<CmPortSpace>(candidate), 0) & mask))
      return candidate;
  }
  return std::nullopt;
}

ibv_gid gid_of(const IpAddress& address) {
  ibv_gid out{};
  std::memcpy(out.raw, address.bytes.data(), sizeof out.raw);
  return out;
}

IpAddress ip_of(const ibv_gid& gid) {
  IpAddress out;
  std::memcpy(out.bytes.data(), gid.raw, sizeof gid.raw);
  return out;
}

std::optional<Source> source_for(ibv_context* context, const IpAddress& to) {
  std::optional<Source> other;
  for (int index = 0;; ++index) {
    ibv_gid gid{};
    if (ibv_query_gid(context, 1, index, &gid) != 0) return other;
    const IpAddress own = ip_of(gid);
    if (own.is_zero() || own.is_v4() != to.is_v4() || own.is_link_local() != to.is_link_local()) continue;
    const Source found{own, static_cast<uint8_t>(index)};
    if (own == to) return found;
    if (!other) other = found;
  }
}

std::optional<Source> own_source(ibv_context* context, const IpAddress& address) {
  const auto found = source_for(context, address);
  return found && found->address == address ? found : std::nullopt;
}

bool reserve_port(Id& id, uint16_t wanted) {
  Ports& all = ports();
  const sockaddr& address = id.verbs.route.addr.src_addr;
  const Ports::User user{.id = &id,
                         .address = ip_of(address),
                         .ipv6 = address.sa_family == AF_INET6,
                         .one_family = id.one_family,
                         .shared = id.reuse_address};
  const std::scoped_lock guard(all.mutex);
  const auto take = [&](uint16_t port) {
    all.users[{id.service_space, port}].push_back(user);
    id.port = port;
    return true;
  };
  const auto others_at = [&](uint16_t port) -> std::span<const Ports::User> {
    const auto found = all.users.find({id.service_space, port});
    if (found == all.users.end()) return {};
    return found->second;
  };
  if (wanted != 0) {
    const auto others = others_at(wanted);
    return std::none_of(others.begin(), others.end(),
                        [&](const Ports::User& other) { return conflict(other, user); }) &&
           take(wanted);
  }
  constexpr unsigned kMax = kLastPort - kFirstPort + 1;
  const auto begin = static_cast<unsigned>(os_random() % kMax);
  for (unsigned i = 0; i < kMax; ++i) {
    const auto candidate = static_cast<uint16_t>(kFirstPort + (begin + i) % kMax);
    if (others_at(candidate).empty()) return take(candidate);
  }
  return false;
}

void release_port(Id& id) {
  Ports& all = ports();
  const std::scoped_lock guard(all.mutex);
  const auto found = all.users.find({id.service_space, id.port});
  if (found == all.users.end()) return;
  std::erase_if(found->second, [&](const Ports::User& user) { return user.id == &id; });
  if (found->second.empty()) all.users.erase(found);
}

}  // namespace roci::rdmacm
