#include "simulation/traffic/datagrams.hpp"

#include <algorithm>
#include <cstring>

#include "wire/headers/address.hpp"

namespace roci::test {
namespace {

ibv_gid to_gid(const char* address) {
  const Gid gid = must(IpAddress::parse(address));
  ibv_gid out;
  std::memcpy(out.raw, gid.bytes.data(), sizeof out.raw);
  return out;
}

}  // namespace

Datagrams::Datagrams(Network& network, const Scenario& scenario, Rng rng, Verifier& verifier)
    : network_(network), scenario_(scenario), rng_(rng), verifier_(verifier), members_(network.hosts()) {
  group_ = to_gid(scenario.ipv6 ? "ff0e::17" : "239.1.2.3");
  for (size_t host = 0; host < members_.size(); ++host) {
    Member& member = members_[host];
    member.pd = must(network.device(host).allocate_pd());
    member.cq = must(network.device(host).create_cq(256));
    member.source.make(*member.pd, 16 * 1024, rng_, 0);
    member.receives.make(*member.pd, 16, kGrh + 4096, rng_);
    member.to_post = static_cast<uint32_t>(rng_.between(5, 30));
    ibv_qp_init_attr init{};
    init.qp_type = IBV_QPT_UD;
    init.sq_sig_all = 1;
    init.cap = {
        .max_send_wr = 64, .max_recv_wr = 16, .max_send_sge = 4, .max_recv_sge = 4, .max_inline_data = 128};
    member.qp = must(member.pd->create_qp(&init, *member.cq, *member.cq));
    open_datagrams(*member.qp, kQkey, static_cast<uint32_t>(0xffffff - rng_.below(20)));
    for (size_t to = 0; to < members_.size(); ++to)
      member.to.push_back(must(member.pd->create_address_handle(address_of(network.gid(to), 2))));
    if (!scenario.multicast) continue;
    member.to_group = must(member.pd->create_address_handle(address_of(group_, 2)));
    member.in_group = rng_.chance(0.7);
    if (member.in_group) must(member.qp->attach_multicast(group_));
  }
}

void Datagrams::act(Nanos) {
  for (size_t host = 0; host < members_.size(); ++host) {
    Member& member = members_[host];
    member.receives.refill(member.qp.get(), rng_, scenario_.late_receives, verifier_);
    for (uint64_t burst = rng_.below(4); burst > 0; --burst) post_random(host);
  }
}

void Datagrams::post_random(size_t host) {
  Member& member = members_[host];
  if (member.to_post == 0) return;
  Message message;
  message.from = host;
  message.to = (host + 1 + rng_.below(members_.size() - 1)) % members_.size();
  if (scenario_.multicast && rng_.chance(0.3)) message.to = kToGroup;
  message.length = static_cast<uint32_t>(rng_.chance(0.2) ? 0 : rng_.between(1, scenario_.path_mtu()));
  message.source = rng_.below(member.source.size() - message.length + 1);
  message.wrong_key = rng_.chance(0.05);
  message.arrived.resize(members_.size());
  ibv_sge list[4];
  ibv_send_wr wr{};
  wr.wr_id = messages_.size();
  wr.sg_list = list;
  wr.num_sge = member.source.pieces(rng_, message.source, message.length, 4, list);
  wr.opcode = IBV_WR_SEND_WITH_IMM;
  wr.imm_data = static_cast<uint32_t>(messages_.size());
  if (message.length <= 128 && rng_.chance(0.5)) wr.send_flags |= IBV_SEND_INLINE;
  const bool to_group = message.to == kToGroup;
  const AddressHandle& address = to_group ? *member.to_group : *member.to[message.to];
  wr.wr.ud = {address.handle(), to_group ? 0xffffff : members_[message.to].qp->qp_num(),
              message.wrong_key ? kQkey + 1 : kQkey};
  ibv_send_wr* bad = nullptr;
  if (const int code = member.qp->post_send(&wr, &bad); code != 0) {
    if (code != ENOMEM) verifier_.fail("post_send of UD gave " + std::to_string(code));
    return;
  }
  member.posted.push_back(messages_.size());
  messages_.push_back(std::move(message));
  --member.to_post;
}

void Datagrams::reap() {
  for (size_t host = 0; host < members_.size(); ++host) {
    Member& member = members_[host];
    ibv_wc wc{};
    while (verifier_.content() && member.cq->poll(1, &wc) == 1) {
      if (wc.status != IBV_WC_SUCCESS) {
        verifier_.fail("a UD request ended with status " + std::to_string(wc.status));
      } else if (wc.wr_id >= kFirstReceiveId) {
        on_receive_done(host, wc);
      } else if (member.posted.empty() || member.posted.front() != wc.wr_id) {
        verifier_.fail("UD request " + std::to_string(wc.wr_id) + " completed out of order or twice");
      } else {
        member.posted.pop_front();
        ++verifier_.tally.completed;
      }
    }
  }
}

void Datagrams::on_receive_done(size_t host, const ibv_wc& wc) {
  Member& member = members_[host];
  const auto slot = member.receives.complete(wc.wr_id, verifier_);
  if (!slot) return;
  member.receives.give_back(*slot);
  const bool known = (wc.wc_flags & IBV_WC_WITH_IMM) != 0 && wc.imm_data < messages_.size();
  if (!known || (wc.wc_flags & IBV_WC_GRH) == 0) {
    verifier_.fail("a datagram arrived that nobody sent");
    return;
  }
  Message& message = messages_[wc.imm_data];
  const bool due = message.to == kToGroup ? member.in_group : message.to == host;
  const uint8_t* bytes = member.receives.at(*slot);
  if (!due || message.wrong_key) verifier_.fail("a datagram arrived where it was not sent to");
  if (wc.byte_len != kGrh + message.length || wc.src_qp != members_[message.from].qp->qp_num() ||
      !header_is_right(bytes, message, host) ||
      std::memcmp(bytes + kGrh, members_[message.from].source.data() + message.source, message.length) != 0)
    verifier_.fail("a datagram arrived with the wrong bytes, sender or header");
  if (++message.arrived[host] > 1 && scenario_.faults.duplication == 0)
    verifier_.fail("a datagram arrived twice");
}

// Compares the addresses in the header. Other fields may have changed on the path.
bool Datagrams::header_is_right(const uint8_t* header, const Message& message, size_t host) const {
  const ibv_gid from = network_.gid(message.from);
  const ibv_gid to = message.to == kToGroup ? group_ : network_.gid(host);
  if (scenario_.ipv6)
    return std::memcmp(header + 8, from.raw, 16) == 0 && std::memcmp(header + 24, to.raw, 16) == 0;
  return std::memcmp(header + 32, from.raw + 12, 4) == 0 && std::memcmp(header + 36, to.raw + 12, 4) == 0;
}

bool Datagrams::finished() const {
  return std::all_of(members_.begin(), members_.end(),
                     [](const Member& member) { return member.to_post == 0 && member.posted.empty(); });
}

std::string Datagrams::state() const {
  std::string text = "UD";
  for (const Member& member : members_)
    text += "; left to post " + std::to_string(member.to_post) + ", posted " +
            std::to_string(member.posted.size());
  return text;
}

void Datagrams::check() {
  reap();
  for (const Member& member : members_) {
    if (!member.source.guards_hold() || !member.receives.memory.guards_hold())
      verifier_.fail("bytes outside a region of UD were written");
  }
  for (const Message& message : messages_) {
    if (message.to == kToGroup || message.wrong_key) continue;
    const bool lost = message.arrived[message.to] == 0;
    ++(lost ? verifier_.tally.messages_lost : verifier_.tally.messages_arrived);
  }
}

}  // namespace roci::test
