#include "fuzz/live_host.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/log.hpp"
#include "device/api/create_device.hpp"
#include "port/dpdk/eal.hpp"
#include "wire/icrc/icrc.hpp"

namespace roci::test {
namespace {

constexpr uint8_t kGuardByte = 0xa5;
constexpr unsigned kRoundLimit = 3000;
constexpr uint32_t kFirstPsn = 0xfffff0;  // wraps soon
constexpr const char* kGroup = "239.1.2.3";
constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                        IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;
constexpr int kQpAccess =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

struct SlotKind {
  ibv_qp_type type;
  size_t peer;
  bool shared;
};
using SlotKinds = std::array<SlotKind, LiveHost::kSlots>;
constexpr SlotKinds kServiceSlots{{{IBV_QPT_RC, 0, false},
                                   {IBV_QPT_RC, 1, false},
                                   {IBV_QPT_UC, 0, false},
                                   {IBV_QPT_UD, 0, false},
                                   {IBV_QPT_RC, 1, true},
                                   {IBV_QPT_UD, 1, true},
                                   {IBV_QPT_RC, 0, false},
                                   {IBV_QPT_RC, 2, false}}};
constexpr SlotKinds kXrcSlots{{{IBV_QPT_XRC_SEND, 0, false},
                               {IBV_QPT_XRC_SEND, 1, false},
                               {IBV_QPT_XRC_RECV, 0, false},
                               {IBV_QPT_XRC_RECV, 1, false},
                               {IBV_QPT_RC, 1, true},
                               {IBV_QPT_XRC_SEND, 2, false},
                               {IBV_QPT_XRC_RECV, 0, false},
                               {IBV_QPT_XRC_RECV, 2, false}}};

// Removes the oldest request. With `may_skip` also removes requests before it, which had no completion.
bool take_id(std::deque<uint64_t>& posted, uint64_t id, bool may_skip) {
  const auto found = std::ranges::find(posted, id);
  if (found == posted.end() || (found != posted.begin() && !may_skip)) return false;
  posted.erase(posted.begin(), found + 1);
  return true;
}

}  // namespace

LiveHost::LiveHost(const Setup& setup, LiveKind kind) : setup_(setup), kind_(kind) {
  make_device();
  side_.memory.assign(kMemory, kGuardByte);
  register_main();
  read_only_ =
      must(side_.pd->register_memory(side_.memory.data() + kReadOnlyAt, kReadOnly, IBV_ACCESS_REMOTE_READ));
  foreign_pd_ = must(side_.device->allocate_pd());
  foreign_ = must(foreign_pd_->register_memory(side_.memory.data() + kForeignAt, kForeign, kAccess));
  golden_ = side_.memory;
  srq_ = make_srq(side_, 16);
  if (kind_ == LiveKind::kXrc) {
    for (size_t i = 0; i < kXrcDomains; ++i) open_domain(i);
  }
  for (size_t i = 0; i < kSlots; ++i) make_slot(i);
  if (kind_ == LiveKind::kXrc) make_xrc_queues();
  const char* const kAddresses[] = {"10.0.0.2", "10.0.0.3", "10.0.0.9", kGroup};
  for (size_t i = 0; i < handles_.size(); ++i)
    handles_[i] = must(side_.pd->create_address_handle(address_of(gid_of(kAddresses[i]))));
  bind_windows();
  work();
  if ((setup_.peers & Setup::kNegotiate) != 0) answer(1, setup_.offer);
  if ((setup_.peers & Setup::kPeerAnswers) != 0) answer(0, setup_.offer);
  if ((setup_.peers & Setup::kRefuse) != 0) refuse(0);
  Step post;
  for (unsigned i = 0; i < setup_.receives % 16U; ++i) {
    for (uint8_t slot = 0; slot < 6; ++slot) {
      if (slots_[slot].type == IBV_QPT_XRC_RECV) continue;  // see make_xrc_queue()
      post.slot = slot;
      Step::set(post.length, 2048);
      receive(post);
    }
  }
  work();
  check_states();
}

LiveHost::~LiveHost() = default;

void LiveHost::make_device() {
  must(start_eal());
  log().set_level(spdlog::level::off);
  static const std::shared_ptr<MbufPool> kPool = must(MbufPool::create("script", 2048, 4400));
  pool_ = kPool;
  auto port = std::make_unique<ScriptPort>(pool_);
  port_ = port.get();
  peers_[0] = {MacAddress::local(2), must(IpAddress::parse("10.0.0.2")), {}, false};
  peers_[1] = {MacAddress::local(3), must(IpAddress::parse("10.0.0.3")), {}, false};
  peers_[2] = {MacAddress::local(4), must(IpAddress::parse("fd00::2")), {}, false};
  DeviceConfig config;
  config.name = "live";
  config.addresses = {"10.0.0.1/24", "fd00::1/64"};
  for (const Peer& peer : peers_) config.neighbors[peer.address.to_string()] = peer.mac.to_string();
  config.progress = Progress::kExternal;
  config.seed = 1;
  config.workers = (setup_.habits & Setup::kTwoWorkers) != 0 ? 2 : 1;
  config.tx_buffers = (setup_.habits & Setup::kFewBuffers) != 0 ? 80 : 512;
  config.window_bytes = setup_.window == 0 ? 16 * 1024 : setup_.window * 1024U;
  config.packets_per_ack = setup_.packets_per_ack == 0 ? 64 : setup_.packets_per_ack;
  const auto has = [&](uint8_t bit) { return (setup_.extensions & bit) != 0; };
  config.extensions.mode = has(Setup::kOff)  ? ExtensionMode::kOff
                           : has(Setup::kOn) ? ExtensionMode::kOn
                                             : ExtensionMode::kAuto;
  config.extensions.selective_repeat = has(Setup::kSelective);
  config.extensions.authenticate = has(Setup::kAuthenticate);
  config.extensions.timestamps = has(Setup::kTimestamps);
  config.extensions.source_qpn = has(Setup::kSourceQpn);
  config.extensions.data_lsn = has(Setup::kDataLsn);
  const auto notified = [&](uint8_t bit) { return (setup_.congestion & bit) != 0; };
  config.vlan = notified(Setup::kVlan) ? 5 : 0;
  config.congestion.tag = notified(Setup::kTag);
  config.congestion.cnm_port = notified(Setup::kCnmPort) ? kCnmPort : 0;
  if (notified(Setup::kCnmKey) && config.congestion.cnm_port != 0) config.congestion.cnm_key = kCnmKey;
  config.congestion.short_samples = notified(Setup::kShortSamples);
  if (notified(Setup::kPoint)) config.congestion.receive_point = {.qeq = 1, .weight = 2, .sample = 1000};
  if (kind_ == LiveKind::kControlled) configure_control(config);
  side_.device = must(create_device(std::move(port), config));
  side_.pd = must(side_.device->allocate_pd());
  side_.cq = make_cq();
}

std::unique_ptr<CompletionQueue> LiveHost::make_cq() const {
  return must(side_.device->create_cq((setup_.habits & Setup::kSmallCq) != 0 ? 16 : 1024));
}

void LiveHost::register_main() {
  side_.region = must(side_.pd->register_memory(side_.memory.data() + kMainAt, kMain, kAccess));
}

void LiveHost::make_slot(size_t index) {
  Slot& slot = slots_[index];
  const SlotKind& kind = (kind_ == LiveKind::kXrc ? kXrcSlots : kServiceSlots)[index];
  slot.type = kind.type;
  slot.peer = kind.peer;
  slot.shared = kind.shared;
  slot.remote_qp = 0x220000 + static_cast<uint32_t>(index);
  ibv_qp_init_attr init{};
  init.qp_type = kind.type;
  init.cap = {
      .max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 2, .max_recv_sge = 2, .max_inline_data = 64};
  init.sq_sig_all = (setup_.habits & Setup::kUnsignalled) != 0 ? 0 : 1;
  if (slot.type == IBV_QPT_XRC_RECV) {
    make_target(slot, init);
  } else {
    ProtectionDomain& pd = index == kForeignSlot ? *foreign_pd_ : *side_.pd;
    slot.qp = must(pd.create_qp(&init, *side_.cq, *side_.cq, slot.shared ? srq_.get() : nullptr));
  }
  slot.state = IBV_QPS_RESET;
  slot.in_group = slot.type == IBV_QPT_UD;
  if (slot.in_group) must(slot.qp->attach_multicast(gid_of(kGroup)));
  connect(slot);
}

// Moves a queue pair from RESET to RTS.
void LiveHost::connect(Slot& slot) {
  if (slot.type == IBV_QPT_UD) {
    open_datagrams(*slot.qp, kQkey, kFirstPsn + 8);
  } else {
    if (kind_ == LiveKind::kControlled) choose_control(static_cast<size_t>(&slot - slots_.data()));
    ConnectOptions options;
    options.rq_psn = kFirstPsn;
    options.sq_psn = kFirstPsn + 8;
    options.path_mtu = static_cast<ibv_mtu>(IBV_MTU_256 + setup_.path_mtu % 5);
    options.access = &slot == &slots_[kForeignSlot] ? IBV_ACCESS_REMOTE_READ : kQpAccess;
    options.sgid_index = peers_[slot.peer].address.is_v4() ? 1 : 2;
    const ibv_gid gid = gid_of(peers_[slot.peer].address.to_string());
    connect_to(*slot.qp, slot.type, gid, slot.remote_qp, options);
  }
  slot.state = slot.qp->state();
}

QueuePairCore& LiveHost::core(const Slot& slot) const {
  const Qpn number{slot.qp->qp_num()};
  return side_.device->host().worker_of(number).find(number)->core;
}

const Requester* LiveHost::requester(const Slot& slot) const {
  const QueuePairCore& of = core(slot);
  if (const auto* reliable = dynamic_cast<const ReliableQueuePair*>(&of)) return &reliable->requester;
  const auto* initiator = dynamic_cast<const XrcInitiator*>(&of);
  return initiator == nullptr ? nullptr : &initiator->requester;
}

// Binds one window of each type to the main memory: type 1 by slot 0, type 2 by slot 1.
void LiveHost::bind_windows() {
  window_one_ = must(side_.pd->allocate_window(IBV_MW_TYPE_1));
  window_two_ = must(side_.pd->allocate_window(IBV_MW_TYPE_2));
  window_two_key_ = ibv_inc_rkey(window_two_->rkey());
  Step bind;
  bind.act = static_cast<uint8_t>(Act::kPost);
  Step::set(bind.length, 512);
  bind.opcode = 7;
  post(bind);
  bind.slot = 1;
  bind.opcode = 8;
  post(bind);
}

void LiveHost::step(const Step& step) {
  switch (step.kind()) {
    case Act::kPacket:
      put_packet(step);
      break;
    case Act::kPost:
      post(step);
      break;
    case Act::kReceive:
      receive(step);
      break;
    case Act::kTime:
      wait(Nanos{int64_t{64 + step.extra} << (step.value % 24)});  // up to 2.7 s
      break;
    case Act::kMad:
      put_mad(step);
      break;
    case Act::kRaw:
      put_raw(step);
      break;
    case Act::kControl:
      control(step);
      break;
    case Act::kNeighbor:
      if (kind_ == LiveKind::kXrc) {
        call_xrc(step);
      } else if (setup_.congestion != 0 && step.opcode % 4 == kTellsOfCongestion) {
        put_cnm(step);
      } else {
        put_neighbor(step);
      }
      break;
  }
  if (held_back_) return;
  work();
  if ((setup_.habits & Setup::kLazyPoll) == 0) poll();
  while (side_.device->get_async_event()) {
  }
  check_states();
  check_memory();
}

void LiveHost::finish() {
  held_back_ = false;
  port_->blocked = false;
  wait(100ms);
  for (Slot& slot : slots_) {
    if (slot.state != IBV_QPS_RESET) set_state(slot, IBV_QPS_ERR);
  }
  wait(2s);
  poll();
  check_states();
  check_memory();
  for (const Slot& slot : slots_) {
    if (slot.state == IBV_QPS_RESET || overflowed_) continue;
    const bool unsignalled = (setup_.habits & Setup::kUnsignalled) != 0;
    // A successful unsignaled request has no completion of its own.
    require(unsignalled || slot.sends.empty(), "every send request completes");
    require(slot.receives.empty(), "every receive request completes");
  }
  if (kind_ == LiveKind::kXrc) check_xrc_queues();
  require(pool_->in_use() == 0, "received buffers are given back");
  require(side_.device->host().tx_buffers_in_use() == 0, "transmit buffers are given back");
}

void LiveHost::work() {
  Poller& poller = side_.device->poller();
  unsigned rounds = 0;
  while (poller.poll(now_)) require(++rounds < kRoundLimit, "the work of one instant ends");
  if (!port_->blocked) require(poller.next_deadline() > now_, "a poll does all that is due");
  check_sent();
}

// Polls at each deadline like a runner, but a bounded number of times. A late poll is permitted.
void LiveHost::wait(Nanos span) {
  const Nanos end = now_ + span;
  for (int polls = 0; polls < 200; ++polls) {
    work();
    const Nanos next = side_.device->poller().next_deadline();
    if (next >= end) break;
    now_ = std::max(next, now_ + 1us);  // a deadline in the past belongs to a blocked port
    if (now_ >= end) break;
  }
  now_ = std::max(end, now_);
  work();
}

void LiveHost::poll() {
  poll(*side_.cq);
  if (xrc_cq_ != nullptr) poll(*xrc_cq_);
  ibv_wc wc{};
  require(side_.device->host().xrc_queues().unowned.poll(1, &wc) == 0,
          "no completion goes to the queue of targets without a receive queue");
}

void LiveHost::poll(CompletionQueue& cq) {
  ibv_wc wc{};
  int got = 0;
  while ((got = cq.poll(1, &wc)) == 1) take_completion(wc, cq);
  if (got < 0) overflowed_ = true;
}

void LiveHost::take_completion(const ibv_wc& wc, const CompletionQueue& cq) {
  for (Slot& slot : slots_) {
    if (slot.qp == nullptr || slot.qp->qp_num() != wc.qp_num) continue;
    if (kind_ == LiveKind::kXrc && take_xrc_completion(slot, wc, cq)) return;
    if (shared_receives_.contains(wc.wr_id)) {
      require(slot.shared, "only who shares the queue completes its requests");
      shared_receives_.erase(wc.wr_id);
      return;
    }
    const bool small = (setup_.habits & Setup::kSmallCq) != 0;  // completions may be lost
    const bool unsignalled = (setup_.habits & Setup::kUnsignalled) != 0;
    const bool known =
        take_id(slot.receives, wc.wr_id, small) || take_id(slot.sends, wc.wr_id, small || unsignalled);
    require(known, "completions come once and in order");
    return;
  }
  require(false, "completions belong to a queue pair that is there");
}

// A queue pair may change its state by itself only to an error state.
void LiveHost::check_states() {
  for (Slot& slot : slots_) {
    const ibv_qp_state now = slot.qp->state();
    if (now == slot.state) continue;
    const bool receives = slot.state == IBV_QPS_RTR || slot.state == IBV_QPS_RTS ||
                          slot.state == IBV_QPS_SQD || slot.state == IBV_QPS_SQE;
    const bool to_sqe = now == IBV_QPS_SQE && (slot.type == IBV_QPT_UC || slot.type == IBV_QPT_UD) &&
                        (slot.state == IBV_QPS_RTS || slot.state == IBV_QPS_SQD);
    const bool to_error = now == IBV_QPS_ERR && (receives || may_have_lost());
    require(to_sqe || to_error, "a queue pair changes its state only into an error");
    slot.state = now;
  }
}

void LiveHost::check_memory() const {
  const auto same = [&](size_t from, size_t to) {
    return std::memcmp(&side_.memory[from], &golden_[from], to - from) == 0;
  };
  require(same(0, kMainAt) && same(kMainAt + kMain, kMemory),
          "nothing is written outside what may be written to");
  if (!has_main())
    require(same(kMainAt, kMainAt + kMain), "nothing is written to memory that is not registered");
  uint32_t most = 0;
  for (const Slot& slot : slots_) {
    const auto& session = core(slot).session;
    if (session != nullptr && session->reorder_buffer) most += session->reorder_buffer->window();
  }
  require(pool_->in_use() <= most, "no more frames are kept than was agreed on");
  if (kind_ == LiveKind::kControlled) check_control();
}

// Sent frames are well-formed, and standard for peers that did not negotiate extensions.
void LiveHost::check_sent() {
  for (const ByteVector& frame : port_->sent) {
    const auto length = static_cast<uint32_t>(frame.size());
    const FrameView view = parse_frame(frame.data(), length, length, OpcodeRange::kWithPrivate);
    const bool tells =
        (setup_.congestion & Setup::kPoint) != 0 &&
        (parse_cnm_frame(frame).outcome == CnmOutcome::kAccepted || parse_l3_cnm(frame, kCnmPort).accepted());
    require(view.kind == FrameKind::kRoce || view.kind == FrameKind::kArp || view.kind == FrameKind::kIpv4 ||
                view.kind == FrameKind::kIpv6 || tells,
            "a host sends well-formed frames");
    if (view.kind != FrameKind::kRoce) continue;
    require(!view.cn_tag || ((setup_.congestion & Setup::kTag) != 0 && view.opcode->is_data()),
            "a host tags what it is told to");
    if (view.opcode->is_data()) data_ = frame;
    require(compute_icrc(view) == stored_icrc(view), "a host sends right ICRCs");
    if (kind_ == LiveKind::kXrc) check_sent_xrc(view);
    const auto peer = std::ranges::find(peers_, view.destination_ip(), &Peer::address);
    if (peer == peers_.end()) continue;
    if (view.destination_qp() == kManagementQp && view.opcode->transport == TransportClass::kUd) {
      const ParsedMad parsed = parse_capability_mad({view.frame + view.payload_offset, view.payload_length});
      if (parsed.outcome == MadOutcome::kAccepted && !parsed.message.response) peer->asked = parsed.message;
      continue;
    }
    if (peer->has_answered) continue;
    require(!view.opcode->is_private() && !view.bth().has_extensions(),
            "a peer that has not negotiated sees the standard alone");
  }
  port_->sent.clear();
}

void run_host_program(std::span<const uint8_t> input, LiveKind kind) {
  const HostProgram program = HostProgram::read(input);
  LiveHost host(program.setup, kind);
  for (const Step& step : program.steps) host.step(step);
  host.finish();
}

}  // namespace roci::test
