// Every state transition of every service with every attribute mask, compared with an independent copy of the table.
#include "transport/queue_pair/qp_transitions.hpp"

#include <gtest/gtest.h>

#include <map>
#include <tuple>

namespace roci::test {
namespace {

constexpr ibv_qp_state kStates[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS,
                                    IBV_QPS_SQD,   IBV_QPS_SQE,  IBV_QPS_ERR};
constexpr ibv_qp_type kTypes[] = {IBV_QPT_RC,       IBV_QPT_UC,       IBV_QPT_UD,
                                  IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV, IBV_QPT_RAW_PACKET};
constexpr int kAttributeBits = 21;  // CUR_STATE to DEST_QPN, and RATE_LIMIT

// Returns the n-th attribute mask.
int mask_of(uint32_t n) {
  return static_cast<int>((n & 0xfffff) << 1) |
         ((n >> 20 & 1) != 0 ? static_cast<int>(IBV_QP_RATE_LIMIT) : 0);
}

// Transition table in the form "from to: required | optional", one per service. C current state, N SQD notification,
// a access flags, k P_Key index, p port, Q Q_Key, A address vector, m path MTU, t timeout, r retry count, R RNR retry
// count, s RQ PSN, S SQ PSN, d responder READs, q requester READs, n RNR timer, D destination QPN, M path migration
// state.
const std::map<std::string, std::string> kRc = {
    {"RESET INIT", "kpa|"}, {"INIT INIT", "|kpa"}, {"INIT RTR", "AmDsdn|ak"},   {"RTR RTS", "trRSq|CanM"},
    {"RTS RTS", "|CanM"},   {"RTS SQD", "|N"},     {"SQD SQD", "|pAtrRqdaknM"}, {"SQD RTS", "|CanM"}};
const std::map<std::string, std::string> kUc = {
    {"RESET INIT", "kpa|"}, {"INIT INIT", "|kpa"}, {"INIT RTR", "AmDs|ak"},
    {"RTR RTS", "S|CaM"},   {"RTS RTS", "|CaM"},   {"RTS SQD", "|N"},
    {"SQD SQD", "|AakM"},   {"SQD RTS", "|CaM"},   {"SQE RTS", "|Ca"}};
const std::map<std::string, std::string> kUd = {
    {"RESET INIT", "kpQ|"}, {"INIT INIT", "|kpQ"}, {"INIT RTR", "|kQ"},
    {"RTR RTS", "S|CQ"},    {"RTS RTS", "|CQ"},    {"RTS SQD", "|N"},
    {"SQD SQD", "|kQ"},     {"SQD RTS", "|CQ"},    {"SQE RTS", "|CQ"}};
const std::map<std::string, std::string> kXrcSend = {
    {"RESET INIT", "kpa|"}, {"INIT INIT", "|kpa"}, {"INIT RTR", "AmDs|ak"},   {"RTR RTS", "trRSq|CaM"},
    {"RTS RTS", "|CaM"},    {"RTS SQD", "|N"},     {"SQD SQD", "|pAtrRqakM"}, {"SQD RTS", "|CaM"}};
const std::map<std::string, std::string> kXrcRecv = {
    {"RESET INIT", "kpa|"}, {"INIT INIT", "|kpa"}, {"INIT RTR", "AmDsdn|ak"}, {"RTR RTS", "tS|CanM"},
    {"RTS RTS", "|CanM"},   {"RTS SQD", "|N"},     {"SQD SQD", "|pAtdaknM"},  {"SQD RTS", "|CanM"}};

// The table of Linux's ib_core, without the rate limit.
const std::map<std::string, std::string> kRaw = {{"RESET INIT", "p|"}, {"INIT INIT", "|"}, {"INIT RTR", "|"},
                                                 {"RTR RTS", "|"},     {"RTS RTS", "|"},   {"RTS SQD", "|"},
                                                 {"SQD SQD", "|"},     {"SQD RTS", "|"},   {"SQE RTS", "|"}};

const std::map<std::string, std::string>& rows_of(ibv_qp_type type) {
  switch (type) {
    case IBV_QPT_UC:
      return kUc;
    case IBV_QPT_UD:
      return kUd;
    case IBV_QPT_XRC_SEND:
      return kXrcSend;
    case IBV_QPT_XRC_RECV:
      return kXrcRecv;
    case IBV_QPT_RAW_PACKET:
      return kRaw;
    default:
      return kRc;
  }
}

int bits_of(const std::string& letters) {
  static const std::map<char, int> kBits = {{'C', IBV_QP_CUR_STATE},
                                            {'N', IBV_QP_EN_SQD_ASYNC_NOTIFY},
                                            {'a', IBV_QP_ACCESS_FLAGS},
                                            {'k', IBV_QP_PKEY_INDEX},
                                            {'p', IBV_QP_PORT},
                                            {'Q', IBV_QP_QKEY},
                                            {'A', IBV_QP_AV},
                                            {'m', IBV_QP_PATH_MTU},
                                            {'t', IBV_QP_TIMEOUT},
                                            {'r', IBV_QP_RETRY_CNT},
                                            {'R', IBV_QP_RNR_RETRY},
                                            {'s', IBV_QP_RQ_PSN},
                                            {'S', IBV_QP_SQ_PSN},
                                            {'d', IBV_QP_MAX_DEST_RD_ATOMIC},
                                            {'q', IBV_QP_MAX_QP_RD_ATOMIC},
                                            {'n', IBV_QP_MIN_RNR_TIMER},
                                            {'D', IBV_QP_DEST_QPN},
                                            {'M', IBV_QP_PATH_MIG_STATE}};
  int bits = 0;
  for (const char letter : letters) bits |= kBits.at(letter);
  return bits;
}

struct Expected {
  bool legal = false;
  int needed = 0;
  int allowed = 0;
};

Expected expected(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to) {
  if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) return {true, 0, 0};
  const auto& rows = rows_of(type);
  const auto row = rows.find(std::string(qp_state_name(from)) + " " + std::string(qp_state_name(to)));
  if (row == rows.end()) return {};
  const size_t bar = row->second.find('|');
  const int needed = bits_of(row->second.substr(0, bar));
  return {true, needed, needed | bits_of(row->second.substr(bar + 1))};
}

template <class F>
void for_each_transition(F&& visit) {
  for (const ibv_qp_type type : kTypes) {
    for (const ibv_qp_state from : kStates) {
      for (const ibv_qp_state to : kStates) {
        SCOPED_TRACE("type " + std::to_string(type) + ": " + std::string(qp_state_name(from)) + " to " +
                     std::string(qp_state_name(to)));
        visit(type, from, to, expected(type, from, to));
      }
    }
  }
}

TEST(QpTransitions, every_attribute_mask_matches_the_table) {
  for_each_transition([](ibv_qp_type type, ibv_qp_state from, ibv_qp_state to, const Expected& table) {
    const auto masks = find_transition(type, from, to);
    ASSERT_EQ(masks.has_value(), table.legal);
    if (!masks) return;
    uint32_t wrong = 0;
    for (uint32_t n = 0; n < 1U << kAttributeBits; ++n) {
      const int mask = mask_of(n);
      const bool taken = (masks->required & ~mask) == 0 && (mask & ~(masks->required | masks->optional)) == 0;
      const bool right = (mask & table.needed) == table.needed && (mask | table.allowed) == table.allowed;
      wrong += taken != right ? 1 : 0;
    }
    EXPECT_EQ(wrong, 0U);
  });
}

TEST(QpTransitions, error_distinguishes_missing_from_disallowed_attributes) {
  for_each_transition([](ibv_qp_type type, ibv_qp_state from, ibv_qp_state to, const Expected& table) {
    const Status bare = check_transition(type, from, to, IBV_QP_STATE | table.needed);
    ASSERT_EQ(bare.has_value(), table.legal);
    if (!table.legal) {
      EXPECT_NE(bare.error().message.find("is not a legal transition"), std::string::npos);
      return;
    }
    EXPECT_TRUE(check_transition(type, from, to, IBV_QP_STATE | table.allowed));
    for (uint32_t n = 0; n < kAttributeBits; ++n) {
      const int bit = mask_of(1U << n);
      const Status flipped = check_transition(type, from, to, IBV_QP_STATE | (table.needed ^ bit));
      if ((table.needed & bit) != 0) {
        ASSERT_FALSE(flipped);
        EXPECT_NE(flipped.error().message.find(" lacks "), std::string::npos);
      } else if ((table.allowed & bit) == 0) {
        ASSERT_FALSE(flipped);
        const bool migration = bit == IBV_QP_ALT_PATH;
        EXPECT_NE(
            flipped.error().message.find(migration ? "do not support path migration" : "does not allow "),
            std::string::npos)
            << flipped.error().message;
        EXPECT_EQ(flipped.error().code, migration ? EOPNOTSUPP : EINVAL);
      } else {
        EXPECT_TRUE(flipped);
      }
    }
    EXPECT_FALSE(check_transition(type, from, to, IBV_QP_STATE | table.needed | 1 << 23)) << "an unknown bit";
  });
  EXPECT_FALSE(find_transition(IBV_QPT_RC, static_cast<ibv_qp_state>(7), IBV_QPS_RESET));
  EXPECT_FALSE(find_transition(IBV_QPT_RC, IBV_QPS_RTS, static_cast<ibv_qp_state>(7)));
}

}  // namespace
}  // namespace roci::test
