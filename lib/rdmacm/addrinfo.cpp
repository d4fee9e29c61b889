// Name and service resolution for rdma_create_ep() and rdma_resolve_addr().
#include <endian.h>
#include <netdb.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "rdmacm/addresses.hpp"
#include "rdmacm/id.hpp"

using namespace roci::rdmacm;  // NOLINT(google-build-using-namespace): this file defines the C API

namespace {

struct AddrinfoDeleter {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using AddrinfoList = std::unique_ptr<addrinfo, AddrinfoDeleter>;

sockaddr* copy_of(const sockaddr* address, socklen_t length) {
  auto* const out = static_cast<sockaddr*>(std::malloc(length));
  if (out != nullptr) std::memcpy(out, address, length);
  return out;
}

// The address of AF_IB with the GID and the port of an IP address, as in rdma-core. The mask specifies which parts of the
// service ID are given.
sockaddr* ib_copy_of(const sockaddr& address, int space) {
  sockaddr_storage out{};
  const uint16_t port = port_of(address);
  write_ib_address(ip_of(address).value_or(roci::IpAddress{}),
                   roci::cm_service_id(static_cast<roci::CmPortSpace>(space), port), out);
  reinterpret_cast<sockaddr_ib&>(out).sib_sid_mask = htobe64(~uint64_t{0} << (port != 0 ? 0 : 16));
  return copy_of(reinterpret_cast<const sockaddr*>(&out), sizeof(sockaddr_ib));
}

void choose_service(rdma_addrinfo& out, const rdma_addrinfo* hints) {
  const int type = hints != nullptr ? hints->ai_qp_type : 0;
  const int space = hints != nullptr ? hints->ai_port_space : 0;
  const bool datagrams = type == IBV_QPT_UD || space == RDMA_PS_UDP;
  out.ai_qp_type = type != 0 ? type : datagrams ? IBV_QPT_UD : IBV_QPT_RC;
  out.ai_port_space = space != 0 ? space : datagrams ? RDMA_PS_UDP : RDMA_PS_TCP;
}

// Converts an error of getaddrinfo() to an errno.
int code_of(int found) {
  switch (found) {
    case EAI_AGAIN:
      return EAGAIN;
    case EAI_MEMORY:
      return ENOMEM;
    case EAI_SYSTEM:
      return errno;
    case EAI_FAMILY:
    case EAI_NONAME:
    case EAI_SERVICE:
      return ENODEV;
    default:
      return EINVAL;
  }
}

}  // namespace

extern "C" {

int rdma_getaddrinfo(const char* node, const char* service, const rdma_addrinfo* hints, rdma_addrinfo** res) {
  if (node == nullptr && service == nullptr &&
      (hints == nullptr || (hints->ai_src_addr == nullptr && hints->ai_dst_addr == nullptr)))
    return failed(EINVAL);
  const int flags = hints != nullptr ? hints->ai_flags : 0;
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_family = hints != nullptr && hints->ai_family != AF_IB ? hints->ai_family : AF_UNSPEC;
  if ((flags & RAI_PASSIVE) != 0) wanted.ai_flags |= AI_PASSIVE;
  if ((flags & RAI_NUMERICHOST) != 0) wanted.ai_flags |= AI_NUMERICHOST;
  addrinfo* list = nullptr;
  if (node != nullptr || service != nullptr) {
    if (const int found = getaddrinfo(node, service, &wanted, &list); found != 0)
      return failed(code_of(found));
  }
  const AddrinfoList guard(list);

  auto* const out = static_cast<rdma_addrinfo*>(std::calloc(1, sizeof(rdma_addrinfo)));
  if (out == nullptr) return failed(ENOMEM);
  out->ai_flags = flags;
  choose_service(*out, hints);
  const auto put = [](sockaddr*& to, socklen_t& length, const sockaddr* from, socklen_t bytes) {
    to = copy_of(from, bytes);
    length = to != nullptr ? bytes : 0;
  };
  const bool passive = (flags & RAI_PASSIVE) != 0;
  // The name is a GID in the notation of an IPv6 address.
  constexpr int kGid = RAI_FAMILY | RAI_NUMERICHOST;
  const bool gid = (flags & kGid) == kGid && hints->ai_family == AF_IB;
  if (list != nullptr) {
    sockaddr*& to = passive ? out->ai_src_addr : out->ai_dst_addr;
    socklen_t& length = passive ? out->ai_src_len : out->ai_dst_len;
    out->ai_family = gid ? AF_IB : list->ai_family;
    if (gid) {
      to = ib_copy_of(*list->ai_addr, out->ai_port_space);
      length = to != nullptr ? sizeof(sockaddr_ib) : 0;
    } else {
      put(to, length, list->ai_addr, list->ai_addrlen);
    }
  } else if (hints != nullptr && hints->ai_dst_addr != nullptr) {
    out->ai_family = hints->ai_dst_addr->sa_family;
    put(out->ai_dst_addr, out->ai_dst_len, hints->ai_dst_addr, hints->ai_dst_len);
  }
  if (out->ai_src_addr == nullptr && hints != nullptr && hints->ai_src_addr != nullptr) {
    if (out->ai_family == 0) out->ai_family = hints->ai_src_addr->sa_family;
    put(out->ai_src_addr, out->ai_src_len, hints->ai_src_addr, hints->ai_src_len);
  }
  *res = out;
  return 0;
}

void rdma_freeaddrinfo(rdma_addrinfo* res) {
  while (res != nullptr) {
    rdma_addrinfo* const next = res->ai_next;
    std::free(res->ai_src_addr);
    std::free(res->ai_dst_addr);
    std::free(res->ai_src_canonname);
    std::free(res->ai_dst_canonname);
    std::free(res->ai_route);
    std::free(res->ai_connect);
    std::free(res);
    res = next;
  }
}

}  // extern "C"
