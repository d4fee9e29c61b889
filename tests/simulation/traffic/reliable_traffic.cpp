// Random requests of an RC connection.
#include <algorithm>

#include "simulation/traffic/reliable.hpp"

namespace roci::test {

uint32_t ReliableConnection::random_length() {
  const uint32_t mtu = scenario_.path_mtu();
  switch (rng_.below(10)) {
    case 0:
      return 0;
    case 1:
    case 2:
    case 3:
      return static_cast<uint32_t>(rng_.between(1, 64));
    case 4:
    case 5:
      return static_cast<uint32_t>(rng_.between(1, 3) * mtu);  // exact multiples of the path MTU
    case 6:
    case 7:
    case 8:
      return static_cast<uint32_t>(rng_.between(1, std::min<uint64_t>(6 * mtu, kSlotBytes)));
    default:
      return static_cast<uint32_t>(rng_.between(1, kSlotBytes));
  }
}

bool ReliableConnection::post(End& local, Posted& op, ibv_send_wr& wr) {
  op.wr_id = wr.wr_id = local.next_id++;
  wr.opcode = op.opcode;
  if (op.signaled && !local.signal_all) wr.send_flags |= IBV_SEND_SIGNALED;
  ibv_send_wr* bad = nullptr;
  if (const int code = local.qp->post_send(&wr, &bad); code != 0) {
    verifier_.fail("post_send gave " + std::to_string(code));
    return false;
  }
  local.posted.push_back(op);
  return true;
}

void ReliableConnection::post_random(End& local, End& peer) {
  if (local.to_post == 0 || local.posted.size() >= 48) return;
  if (scenario_.windows && rng_.chance(0.2) && post_window_change(local, peer)) return;
  constexpr ibv_wr_opcode kOpcodes[] = {
      IBV_WR_SEND,      IBV_WR_SEND_WITH_IMM,        IBV_WR_RDMA_WRITE,        IBV_WR_RDMA_WRITE_WITH_IMM,
      IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP};
  Posted op;
  op.opcode = kOpcodes[rng_.below(std::size(kOpcodes))];
  op.signaled = local.signal_all || rng_.chance(0.5) || local.to_post == 1;
  if (op.is_atomic()) {
    post_atomic(local, peer, op);
    return;
  }
  op.length = random_length();
  op.source = rng_.below(kSlots * kSlotBytes - op.length + 1);
  ibv_send_wr wr{};
  if (op.is_write() || op.is_read()) {
    Window& window = peer.windows[op.is_read() ? 1 : 0];
    if (window.state == Window::State::kOpen && window.length >= op.length && rng_.chance(0.7))
      op.through = &window;
    auto& busy = op.is_write() ? peer.landing_busy : local.inbox_busy;
    size_t slot = rng_.below(kSlots);
    if (op.through != nullptr && op.is_write())
      slot = (window.begin + rng_.below(window.length)) / kSlotBytes;
    if (busy[slot]) return;  // slot in use; no request this time
    busy[slot] = true;
    op.target = slot * kSlotBytes + rng_.below(kSlotBytes - op.length + 1);
    if (op.through != nullptr && op.is_read())
      op.source = window.begin + rng_.below(window.length - op.length + 1);
    const Arena& remote = op.is_read() ? peer.source : peer.landing;
    const size_t offset = op.is_read() ? op.source : op.target;
    wr.wr.rdma.remote_addr = remote.address(offset);
    wr.wr.rdma.rkey = remote.keys.remote;
    if (op.through != nullptr) {
      ++verifier_.tally.window_accesses;
      ++window.users;
      wr.wr.rdma.rkey = window.key;
      if (window.zero_based) wr.wr.rdma.remote_addr = offset - window.begin;
    }
  }
  ibv_sge list[4];
  wr.sg_list = list;
  wr.num_sge = op.is_read() ? local.inbox.pieces(rng_, op.target, op.length, 4, list)
                            : local.source.pieces(rng_, op.source, op.length, 4, list);
  if (rng_.chance(0.1)) wr.send_flags |= IBV_SEND_FENCE;
  if (rng_.chance(0.1)) wr.send_flags |= IBV_SEND_SOLICITED;
  if (!op.is_read() && op.length <= 128 && rng_.chance(0.5)) wr.send_flags |= IBV_SEND_INLINE;
  wr.imm_data = static_cast<uint32_t>(rng_.next());
  if (!post(local, op, wr)) return;
  --local.to_post;
  const bool imm = op.opcode == IBV_WR_SEND_WITH_IMM || op.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  if (op.opcode == IBV_WR_SEND || imm) {
    local.announced.push_back({.wr_id = op.wr_id,
                               .is_send = !op.is_write(),
                               .source = op.source,
                               .length = op.length,
                               .has_imm = imm,
                               .imm = wr.imm_data});
  }
}

void ReliableConnection::post_atomic(End& local, End& peer, Posted& op) {
  op.length = sizeof(uint64_t);
  op.source = rng_.below(kWords);
  op.target = local.next_original++ % kResultWords;
  // Half of the compare operands equal the current value, unless an outstanding request changes it.
  op.operands[0] = rng_.chance(0.5) ? peer.words_image[op.source] : rng_.next();
  op.operands[1] = rng_.next();
  ibv_sge list{local.originals.address(op.target * sizeof(uint64_t)), sizeof(uint64_t),
               local.originals.keys.local};
  ibv_send_wr wr{};
  wr.sg_list = &list;
  wr.num_sge = 1;
  wr.wr.atomic = {peer.words.address(op.source * sizeof(uint64_t)), op.operands[0], op.operands[1],
                  peer.words.keys.remote};
  if (post(local, op, wr)) --local.to_post;
}

// Binds or invalidates one of the local windows, or sends a SEND that invalidates a window of the peer. Returns false
// if no window can change.
bool ReliableConnection::post_window_change(End& local, End& peer) {
  Window& mine = local.windows[rng_.below(2)];
  if (mine.state == Window::State::kFree && mine.object != nullptr) {
    bind(local, mine, true);
    return true;
  }
  // An outstanding request of the peer would fail after the invalidation.
  if (mine.state == Window::State::kOpen && mine.users == 0 && rng_.chance(0.5)) {
    bind(local, mine, false);
    return true;
  }
  Window& theirs = peer.windows[rng_.below(2)];
  if (theirs.state != Window::State::kOpen || !theirs.type2()) return false;
  Posted op;
  op.opcode = IBV_WR_SEND_WITH_INV;
  op.signaled = local.signal_all || rng_.chance(0.5) || local.to_post == 1;
  op.length = random_length();
  op.source = rng_.below(kSlots * kSlotBytes - op.length + 1);
  ibv_sge list[4];
  ibv_send_wr wr{};
  wr.sg_list = list;
  wr.num_sge = local.source.pieces(rng_, op.source, op.length, 4, list);
  // Without a fence it could overtake the data of local READs through the window.
  wr.send_flags = IBV_SEND_FENCE;
  wr.invalidate_rkey = theirs.key;
  if (!post(local, op, wr)) return true;
  --local.to_post;
  theirs.state = Window::State::kClosing;
  local.announced.push_back(
      {.wr_id = op.wr_id, .is_send = true, .source = op.source, .length = op.length, .invalidates = &theirs});
  return true;
}

void ReliableConnection::bind(End& local, Window& window, bool open) {
  const bool to_write = &window == &local.windows[0];
  const Arena& arena = to_write ? local.landing : local.source;
  Posted op;
  op.signaled = true;
  op.subject = &window;
  op.opcode = open || !window.type2() ? IBV_WR_BIND_MW : IBV_WR_LOCAL_INV;
  unsigned access = to_write ? IBV_ACCESS_REMOTE_WRITE : IBV_ACCESS_REMOTE_READ;
  if (open) {
    const size_t unit = to_write ? kSlotBytes : 1024;  // WRITEs use whole slots
    const size_t units = arena.size() / unit;
    const size_t first = rng_.below(units);
    window.begin = first * unit;
    window.length = rng_.between(1, units - first) * unit;
    window.zero_based = window.type2() && rng_.chance(0.3);
  }
  if (window.zero_based) access |= IBV_ACCESS_ZERO_BASED;
  const ibv_mw_bind_info info{arena.region->verbs(), arena.address(window.begin), open ? window.length : 0,
                              access};
  const unsigned signaled = local.signal_all ? 0U : static_cast<unsigned>(IBV_SEND_SIGNALED);
  window.closing_key = window.key;
  if (!window.type2()) {
    op.wr_id = local.next_id++;
    const ibv_mw_bind request{op.wr_id, signaled, info};
    if (const int code = local.verbs().bind_window(*window.object, request); code != 0) {
      verifier_.fail("bind_window gave " + std::to_string(code));
      return;
    }
    window.key = window.object->rkey();
    local.posted.push_back(op);
  } else {
    ibv_send_wr wr{};
    if (open) {
      window.key = ibv_inc_rkey(window.key);
      wr.bind_mw = {window.object->verbs(), window.key, info};
    } else {
      wr.invalidate_rkey = window.key;
    }
    if (!post(local, op, wr)) return;
  }
  window.state = open ? Window::State::kBinding : Window::State::kClosing;
}

// Posts an access with a stale key. Returns false if there is no such key yet.
bool ReliableConnection::post_forbidden(End& local, End& peer) {
  const bool to_write = peer.windows[0].stale_key != 0;
  const Window& window = peer.windows[to_write ? 0 : 1];
  const size_t slot = rng_.below(kSlots);
  if (window.stale_key == 0 || (to_write ? peer.landing_busy : local.inbox_busy)[slot]) return false;
  (to_write ? peer.landing_busy : local.inbox_busy)[slot] = true;
  Posted op;
  op.opcode = to_write ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
  op.signaled = op.forbidden = true;
  op.length = static_cast<uint32_t>(rng_.between(1, 3 * scenario_.path_mtu()));
  op.target = slot * kSlotBytes;
  ibv_sge list[4];
  ibv_send_wr wr{};
  wr.sg_list = list;
  wr.num_sge = (to_write ? local.source : local.inbox).pieces(rng_, op.target, op.length, 4, list);
  wr.wr.rdma = {(to_write ? peer.landing : peer.source).address(op.target), window.stale_key};
  return post(local, op, wr);
}

}  // namespace roci::test
