#include "wire/mad/cm_messages.hpp"

#include <algorithm>
#include <type_traits>

namespace roci {
namespace {

constexpr uint8_t kCmClassVersion = 2;

template <class Value>
uint64_t number_of(const Value& value) {
  if constexpr (requires { value.value(); }) {
    return value.value();
  } else {
    return static_cast<uint64_t>(value);
  }
}

template <class Value>
void set_number(Value& value, uint64_t number) {
  if constexpr (requires { value.value(); }) {
    value = Value{static_cast<decltype(value.value())>(number)};
  } else {
    value = static_cast<Value>(number);
  }
}

constexpr uint64_t low_bits(unsigned width) {
  return width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
}
constexpr size_t bytes_of(unsigned bits) { return (bits + 7) / 8; }

// FieldReader and FieldWriter have the same interface, so fields() describes the layout of a message once for parsing
// and building. As in the tables of the specification, a position is a byte of the body and a bit in it; bit 0 is the
// highest bit.
class FieldReader {
 public:
  explicit FieldReader(const uint8_t* body) : body_(body) {}
  template <class Value>
  void bits(size_t at, unsigned first, unsigned width, Value& value) {
    const size_t count = bytes_of(first + width);
    uint64_t word = 0;
    for (size_t i = 0; i < count; ++i) word = word << 8 | body_[at + i];
    set_number(value, word >> (8 * count - first - width) & low_bits(width));
  }
  template <class Value>
  void bytes(size_t at, size_t count, Value& value) {
    bits(at, 0, static_cast<unsigned>(8 * count), value);
  }
  template <size_t kSize>
  void raw(size_t at, std::array<uint8_t, kSize>& value) {
    std::copy_n(body_ + at, kSize, value.begin());
  }

 private:
  const uint8_t* body_;
};

class FieldWriter {
 public:
  explicit FieldWriter(uint8_t* body_of_zeros) : body_(body_of_zeros) {}
  template <class Value>
  void bits(size_t at, unsigned first, unsigned width, const Value& value) {
    const size_t count = bytes_of(first + width);
    const uint64_t word = (number_of(value) & low_bits(width)) << (8 * count - first - width);
    for (size_t i = 0; i < count; ++i)
      body_[at + i] = static_cast<uint8_t>(body_[at + i] | word >> (8 * (count - 1 - i)));
  }
  template <class Value>
  void bytes(size_t at, size_t count, const Value& value) {
    bits(at, 0, static_cast<unsigned>(8 * count), value);
  }
  template <size_t kSize>
  void raw(size_t at, const std::array<uint8_t, kSize>& value) {
    std::copy(value.begin(), value.end(), body_ + at);
  }

 private:
  uint8_t* body_;
};

template <class Type, class Wanted>
concept Either = std::is_same_v<std::remove_const_t<Type>, Wanted>;  // const for FieldWriter

template <class Io, Either<CmPath> Path>
void path_fields(Io& io, size_t at, Path& path) {
  io.bytes(at, 2, path.local_lid);
  io.bytes(at + 2, 2, path.remote_lid);
  io.raw(at + 4, path.local_gid.bytes);
  io.raw(at + 20, path.remote_gid.bytes);
  io.bits(at + 36, 0, 20, path.flow_label);
  io.bits(at + 39, 2, 6, path.packet_rate);
  io.bytes(at + 40, 1, path.traffic_class);
  io.bytes(at + 41, 1, path.hop_limit);
  io.bits(at + 42, 0, 4, path.service_level);
  io.bits(at + 42, 4, 1, path.subnet_local);
  io.bits(at + 43, 0, 5, path.ack_timeout);
}

template <class Io, Either<CmRequest> Request>
void fields(Io& io, Request& m) {
  io.bytes(0, 4, m.local_id);
  io.bytes(5, 3, m.vendor_id);
  io.bytes(8, 8, m.service_id);
  io.bytes(16, 8, m.ca_guid);
  io.bytes(28, 4, m.qkey);
  io.bytes(32, 3, m.queue_pair);
  io.bytes(35, 1, m.responder_resources);
  io.bytes(36, 3, m.local_eecn);
  io.bytes(39, 1, m.initiator_depth);
  io.bytes(40, 3, m.remote_eecn);
  io.bits(43, 0, 5, m.remote_response_timeout);
  io.bits(43, 5, 2, m.transport);
  io.bits(43, 7, 1, m.end_to_end_flow_control);
  io.bytes(44, 3, m.starting_psn);
  io.bits(47, 0, 5, m.local_response_timeout);
  io.bits(47, 5, 3, m.retry_count);
  io.bytes(48, 2, m.pkey);
  io.bits(50, 0, 4, m.path_mtu);
  io.bits(50, 4, 1, m.rdc_exists);
  io.bits(50, 5, 3, m.rnr_retry_count);
  io.bits(51, 0, 4, m.max_cm_retries);
  io.bits(51, 4, 1, m.srq);
  io.bits(51, 5, 3, m.extended_transport);
  path_fields(io, 52, m.primary);
  path_fields(io, 96, m.alternate);
  io.raw(140, m.private_data);
}

template <class Io, Either<CmAcknowledged> Acknowledged>
void fields(Io& io, Acknowledged& m) {
  io.bytes(0, 4, m.local_id);
  io.bytes(4, 4, m.remote_id);
  io.bits(8, 0, 2, m.answered);
  io.bits(9, 0, 5, m.service_timeout);
  io.raw(10, m.private_data);
}

template <class Io, Either<CmRejected> Rejected>
void fields(Io& io, Rejected& m) {
  io.bytes(0, 4, m.local_id);
  io.bytes(4, 4, m.remote_id);
  io.bits(8, 0, 2, m.answered);
  io.bits(9, 0, 7, m.info_length);
  io.bytes(10, 2, m.reason);
  io.raw(12, m.info);
  io.raw(84, m.private_data);
}

template <class Io, Either<CmReply> Reply>
void fields(Io& io, Reply& m) {
  io.bytes(0, 4, m.local_id);
  io.bytes(4, 4, m.remote_id);
  io.bytes(8, 4, m.qkey);
  io.bytes(12, 3, m.queue_pair);
  io.bytes(16, 3, m.local_eecn);
  io.bytes(20, 3, m.starting_psn);
  io.bytes(24, 1, m.responder_resources);
  io.bytes(25, 1, m.initiator_depth);
  io.bits(26, 0, 5, m.target_ack_delay);
  io.bits(26, 5, 2, m.failover_accepted);
  io.bits(26, 7, 1, m.end_to_end_flow_control);
  io.bits(27, 0, 3, m.rnr_retry_count);
  io.bits(27, 3, 1, m.srq);
  io.bytes(28, 8, m.ca_guid);
  io.raw(36, m.private_data);
  // The vendor ID is split over three bytes of the message.
  uint32_t high = m.vendor_id >> 16, middle = m.vendor_id >> 8, low = m.vendor_id;
  io.bytes(15, 1, high);
  io.bytes(19, 1, middle);
  io.bytes(23, 1, low);
  if constexpr (!std::is_const_v<Reply>) m.vendor_id = high << 16 | middle << 8 | low;
}

template <class Io, class Ids>
requires(Either<Ids, CmReady> || Either<Ids, CmDisconnected>) void fields(Io& io, Ids& m) {
  io.bytes(0, 4, m.local_id);
  io.bytes(4, 4, m.remote_id);
  io.raw(8, m.private_data);
}

template <class Io, Either<CmDisconnect> Disconnect>
void fields(Io& io, Disconnect& m) {
  io.bytes(0, 4, m.local_id);
  io.bytes(4, 4, m.remote_id);
  io.bytes(8, 3, m.remote_queue_pair);
  io.raw(12, m.private_data);
}

template <class Io, Either<CmServiceRequest> Request>
void fields(Io& io, Request& m) {
  io.bytes(0, 4, m.request_id);
  io.bytes(4, 2, m.pkey);
  io.bytes(8, 8, m.service_id);
  io.raw(16, m.private_data);
}

template <class Io, Either<CmServiceReply> Reply>
void fields(Io& io, Reply& m) {
  io.bytes(0, 4, m.request_id);
  io.bytes(4, 1, m.status);
  io.bytes(5, 1, m.info_length);
  io.bytes(8, 3, m.queue_pair);
  io.bytes(12, 8, m.service_id);
  io.bytes(20, 4, m.qkey);
  io.raw(24, m.info);
  io.raw(96, m.private_data);
  // The vendor ID is split over two fields of the message.
  uint32_t high = m.vendor_id >> 8, low = m.vendor_id;
  io.bytes(6, 2, high);
  io.bytes(11, 1, low);
  if constexpr (!std::is_const_v<Reply>) m.vendor_id = high << 8 | low;
}

template <class Io, Either<CmLoadPath> LoadPath>
void fields(Io& io, LoadPath& m) {
  io.bytes(0, 4, m.local_id);
  io.bytes(4, 4, m.remote_id);
  io.bytes(12, 3, m.remote_queue_pair);
  io.bits(15, 0, 5, m.response_timeout);
  path_fields(io, 20, m.alternate);
  io.raw(64, m.private_data);
}

template <class Io, Either<CmPathAnswer> Answer>
void fields(Io& io, Answer& m) {
  io.bytes(0, 4, m.local_id);
  io.bytes(4, 4, m.remote_id);
  io.bytes(8, 1, m.info_length);
  io.bytes(9, 1, m.status);
  io.raw(12, m.info);
  io.raw(84, m.private_data);
}

// Emplaces the alternative of CmMessage that has this attribute. Returns false if no alternative has it.
template <size_t kIndex = 0>
bool choose(uint16_t attribute, CmMessage& message) {
  if constexpr (kIndex < std::variant_size_v<CmMessage>) {
    using Message = std::variant_alternative_t<kIndex, CmMessage>;
    if (attribute != Message::kAttribute) return choose<kIndex + 1>(attribute, message);
    message.template emplace<kIndex>();
    return true;
  } else {
    return false;
  }
}

CmOutcome check_header(const MadHeader& header) {
  using enum CmOutcome;
  if (header.base_version != MadHeader::kBaseVersion) return kBadBaseVersion;
  if (header.management_class != kCmClass) return kOtherClass;
  if (header.class_version != kCmClassVersion) return kBadClassVersion;
  if (header.method != MadHeader::kSend) return kOtherMethod;
  if (header.status.get() != 0) return kBadStatus;
  return kAccepted;
}

}  // namespace

std::string_view cm_outcome_name(CmOutcome outcome) {
  constexpr std::string_view kNames[kCmOutcomeCount] = {
      "accepted",          "bad size",     "bad base version", "other class",
      "bad class version", "other method", "bad status",       "unknown message"};
  return kNames[static_cast<unsigned>(outcome)];
}

ParsedCm parse_cm_mad(std::span<const uint8_t> payload) {
  ParsedCm out;
  if (payload.size() != kMadBytes) return out;
  const auto& header = *reinterpret_cast<const MadHeader*>(payload.data());
  out.outcome = check_header(header);
  if (out.outcome != CmOutcome::kAccepted) return out;
  if (!choose(header.attribute.get(), out.mad.message)) {
    out.outcome = CmOutcome::kUnknownMessage;
    return out;
  }
  out.mad.transaction = header.transaction.get();
  out.mad.modifier = header.modifier.get();
  FieldReader reader(payload.data() + sizeof(MadHeader));
  std::visit([&](auto& message) { fields(reader, message); }, out.mad.message);
  return out;
}

std::array<uint8_t, kMadBytes> build_cm_mad(const CmMad& mad) {
  std::array<uint8_t, kMadBytes> out{};
  auto& header = *reinterpret_cast<MadHeader*>(out.data());
  header.base_version = MadHeader::kBaseVersion;
  header.management_class = kCmClass;
  header.class_version = kCmClassVersion;
  header.method = MadHeader::kSend;
  header.transaction.set(mad.transaction);
  header.modifier.set(mad.modifier);
  FieldWriter writer(out.data() + sizeof(MadHeader));
  std::visit(
      [&]<class Message>(const Message& message) {
        header.attribute.set(Message::kAttribute);
        fields(writer, message);
      },
      mad.message);
  return out;
}

std::string_view cm_message_name(const CmMessage& message) {
  constexpr std::array<std::string_view, std::variant_size_v<CmMessage>> kNames = {
      "REQ", "MRA", "REJ", "REP", "RTU", "DREQ", "DREP", "SIDR_REQ", "SIDR_REP", "LAP", "APR"};
  return kNames[message.index()];
}

namespace {

constexpr size_t kIpVersionAt = 1, kSourcePortAt = 2, kSourceAt = 4, kDestinationAt = 20;
constexpr size_t kV4At = 12;  // offset in the 16 bytes of an address; the other bytes are 0

IpAddress read_address(const uint8_t* bytes, bool v6) {
  IpAddress out;
  if (v6) {
    std::copy_n(bytes, out.bytes.size(), out.bytes.begin());
    return out;
  }
  uint32_t v4 = 0;
  FieldReader(bytes).bytes(kV4At, 4, v4);
  return IpAddress::from_v4(v4);
}

void write_address(const IpAddress& address, bool v6, uint8_t* bytes) {
  if (v6) {
    std::copy(address.bytes.begin(), address.bytes.end(), bytes);
  } else {
    FieldWriter(bytes).bytes(kV4At, 4, address.v4());
  }
}

}  // namespace

std::optional<CmIpHeader> read_cm_ip_header(std::span<const uint8_t> private_data) {
  const uint8_t* bytes = private_data.data();
  const uint8_t version = bytes[kIpVersionAt] >> 4;
  if (bytes[0] != 0 || (version != 4 && version != 6)) return std::nullopt;
  CmIpHeader out;
  out.v6 = version == 6;
  FieldReader(bytes).bytes(kSourcePortAt, 2, out.source_port);
  out.source = read_address(bytes + kSourceAt, out.v6);
  out.destination = read_address(bytes + kDestinationAt, out.v6);
  return out;
}

void write_cm_ip_header(const CmIpHeader& header, std::span<uint8_t> private_data) {
  std::fill_n(private_data.begin(), CmIpHeader::kBytes, uint8_t{0});
  uint8_t* bytes = private_data.data();
  bytes[kIpVersionAt] = header.v6 ? 0x60 : 0x40;
  FieldWriter(bytes).bytes(kSourcePortAt, 2, header.source_port);
  write_address(header.source, header.v6, bytes + kSourceAt);
  write_address(header.destination, header.v6, bytes + kDestinationAt);
}

}  // namespace roci
