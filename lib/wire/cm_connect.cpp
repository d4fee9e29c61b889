#include "wire/cm_connect.hpp"

#include "wire/capability_mad.hpp"

namespace roci {
namespace {

constexpr uint8_t kCmClass = 0x07;
constexpr uint8_t kCmClassVersion = 2;
constexpr uint8_t kSend = 0x03;
constexpr uint16_t kConnectRequest = 0x0010;
constexpr uint16_t kConnectReply = 0x0013;

// The starts of both, behind the header of the MAD.
struct RequestStart {
  Be32 local_id;
  Be32 reserved0;
  Be64 service;
  Be64 local_ca;
  Be32 reserved1;
  Be32 local_qkey;
  Be24 local_qp;
};
static_assert(sizeof(RequestStart) == 35);
struct ReplyStart {
  Be32 local_id;
  Be32 remote_id;
  Be32 local_qkey;
  Be24 local_qp;
};
static_assert(sizeof(ReplyStart) == 15);

}  // namespace

std::optional<CmConnect> read_cm_connect(std::span<const uint8_t> mad) {
  if (mad.size() < kMadBytes) return std::nullopt;
  const auto& header = *reinterpret_cast<const MadHeader*>(mad.data());
  if (header.base_version != MadHeader::kBaseVersion || header.management_class != kCmClass ||
      header.class_version != kCmClassVersion || header.method != kSend)
    return std::nullopt;
  const uint8_t* body = mad.data() + sizeof(MadHeader);
  if (header.attribute.get() == kConnectRequest) {
    const auto& request = *reinterpret_cast<const RequestStart*>(body);
    return CmConnect{CmConnect::Message::kRequest, request.local_id.get(), 0, Qpn{request.local_qp.get()}};
  }
  if (header.attribute.get() == kConnectReply) {
    const auto& reply = *reinterpret_cast<const ReplyStart*>(body);
    return CmConnect{CmConnect::Message::kReply, reply.local_id.get(), reply.remote_id.get(),
                     Qpn{reply.local_qp.get()}};
  }
  return std::nullopt;
}

}  // namespace roci
