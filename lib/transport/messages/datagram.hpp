// UD packets: writing and parsing without a queue pair. Used by the datagram queue pair and by the host's management
// queue pair (queue pair 1).
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "transport/messages/scatter.hpp"
#include "transport/packet_sink.hpp"
#include "wire/roce/roce_writer.hpp"

namespace roci {

inline constexpr Qpn kMulticastQp{0xffffff};  // IBTA 3.5.3
inline constexpr uint32_t kGrhBytes = 40;  // in front of each datagram in its receive buffer (IBTA 11.4.1.2)

// Header fields of a datagram.
struct DatagramFields {
  Qpn destination_qp;
  Qpn source_qp;
  QKey qkey;
  Psn psn;
  PKey pkey = kDefaultPKey;
  bool solicited = false;
  bool ack_request = false;             // set in the Linux kernel's management datagrams; without effect
  std::optional<uint32_t> immediate{};  // in host order
  uint16_t udp_source_port = 0;         // 0: that of the writer's path

  [[nodiscard]] Opcode opcode() const { return immediate ? Opcode::kUdSendOnlyImm : Opcode::kUdSendOnly; }
};

// UDP source port of a queue pair's datagrams: a multiplicative hash, the same as the Linux kernel's.
constexpr uint16_t datagram_udp_source_port(Qpn source) {
  return static_cast<uint16_t>(0xc000 | (source.value() * 0x61c88647U) >> 18);
}

// Writes a datagram with `length` bytes of payload at `start`, a buffer of writer.frame_bytes(). fill(open) writes the
// payload, or returns false to discard the packet.
template <class Fill>
bool write_datagram(uint8_t* start, RoceWriter& writer, const DatagramFields& fields, uint32_t length,
                    Fill&& fill) {
  const BthFields bth{.opcode = fields.opcode(),
                      .destination_qp = fields.destination_qp,
                      .psn = fields.psn,
                      .pkey = fields.pkey,
                      .solicited = fields.solicited,
                      .ack_request = fields.ack_request};
  RoceWriter::Open open = writer.begin(start, bth, length, fields.udp_source_port);
  auto& deth = open.header<Deth>(Header::kDeth);
  deth.qkey.set(fields.qkey.value());
  deth.reserved = 0;
  deth.source_qp.set(fields.source_qp.value());
  if (fields.immediate) open.header<ImmDt>(Header::kImmDt).data.set(*fields.immediate);
  if (!fill(open)) return false;
  RoceWriter::finish(open);
  return true;
}

// Returns a fill function for a contiguous payload.
inline auto fill_with(std::span<const uint8_t> payload) {
  return [payload](RoceWriter::Open& open) {
    if (!payload.empty())
      RoceWriter::copy_payload(open, open.payload, payload.data(), static_cast<uint32_t>(payload.size()));
    return true;
  };
}

// Writes one datagram with `length` bytes of payload and passes it to the sink. before(frame) is called on the finished
// frame.
template <class Fill, class Before>
SendOutcome send_datagram(PacketSink& sink, RoceWriter& writer, const DatagramFields& fields, uint32_t length,
                          Fill&& fill, Before&& before) {
  rte_mbuf* frame = sink.allocate();
  if (frame == nullptr) return SendOutcome::kBackpressure;
  const uint32_t bytes = writer.frame_bytes(opcode_info(fields.opcode()), length);
  auto* start = reinterpret_cast<uint8_t*>(rte_pktmbuf_append(frame, static_cast<uint16_t>(bytes)));
  // Null: the frame is longer than the port's MTU.
  if (start == nullptr || !write_datagram(start, writer, fields, length, fill)) {
    rte_pktmbuf_free(frame);
    return SendOutcome::kAborted;
  }
  before(*frame);
  sink.send(frame);
  return SendOutcome::kSent;
}

inline SendOutcome send_datagram(PacketSink& sink, RoceWriter& writer, const DatagramFields& fields,
                                 std::span<const uint8_t> payload) {
  return send_datagram(sink, writer, fields, static_cast<uint32_t>(payload.size()), fill_with(payload),
                       [](const rte_mbuf&) {});
}

// Validates transport class, partition key and Q_Key of a packet. A mismatch is counted.
inline bool accept_datagram(Counters& counters, const FrameView& view, PKey pkey, QKey qkey) {
  if (view.opcode->transport != TransportClass::kUd) {
    counters.add(Counter::kRxWrongTransport);
    return false;
  }
  if (((view.bth().pkey.get() ^ pkey.value()) & 0x7fff) != 0) {
    counters.add(Counter::kRxWrongPkey);
    return false;
  }
  if (view.deth().qkey.get() != qkey.value()) {  // IBTA 10.2.5
    counters.add(Counter::kRxWrongQkey);
    return false;
  }
  return true;
}

// Copies the payload of a datagram, of at most out.size() bytes. Returns its length; 0 when it does not fit.
inline uint32_t copy_datagram(const FrameView& view, const rte_mbuf* frame, std::span<uint8_t> out) {
  uint32_t done = 0;
  if (view.payload_length > out.size()) return 0;
  for_each_piece(frame, view.payload_offset, view.payload_length, [&](const uint8_t* from, uint32_t piece) {
    std::memcpy(out.data() + done, from, piece);
    done += piece;
  });
  return done;
}

// Content of the 40 bytes in front of the payload: the IPv6 header, or 20 zero bytes and the IPv4 header without
// options (RoCEv2 annex A17.4.5.2). The Linux kernel and ConnectX use the same layout.
inline std::array<uint8_t, kGrhBytes> network_header(const FrameView& view) {
  std::array<uint8_t, kGrhBytes> bytes{};
  const uint8_t* from = view.frame + view.l3_offset;
  if (view.ipv6) {
    std::memcpy(bytes.data(), from, sizeof(Ipv6Header));
  } else {
    std::memcpy(bytes.data() + kGrhBytes - sizeof(Ipv4Header), from, sizeof(Ipv4Header));
  }
  return bytes;
}

}  // namespace roci
