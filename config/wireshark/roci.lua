-- Dissector for Wireshark and tshark. It decodes the formats that Rocinante uses in addition to RoCEv2: INT over UDP,
-- CN-TAG and CNM (802.1Q clause 33), the self-defined CNM of L3QCN, extension blocks, private opcodes, and the
-- capability exchange.
-- docs/wireshark.md describes its installation; docs/switch-wire.md and docs/wire-extensions.md specify the formats.
--
-- Messages are validated in the order of the parsers in lib/wire/. A message that they reject gets the expert info
-- roci.malformed with their reason. tests/wireshark/ compares both decoders.

-- The script may be installed and also be specified with -X lua_script: it is loaded once. Globals are per script.
if package.loaded["wireshark.roci"] then return end
package.loaded["wireshark.roci"] = true

local roci = Proto("roci", "Rocinante RoCEv2 Extensions")
local int = Proto("roci.int", "In-band Network Telemetry")
local cn_tag = Proto("roci.cn_tag", "Congestion Notification Tag")
local cnm = Proto("roci.cnm", "Congestion Notification Message")
local l3cnm = Proto("roci.l3cnm", "Self-defined Congestion Notification Message")

roci.prefs.int_port = Pref.uint("INT: UDP port", 5201, "UDP port of telemetry, as `udp_port` of the switches; 0: none")
roci.prefs.int_domain = Pref.uint("INT: domain", 0,
  "Telemetry domain whose domain-specific hops are decoded; 0: all domains")
roci.prefs.cnm_port = Pref.uint("CNM: UDP port", 4999,
  "UDP port of self-defined CNMs, as `cnm_port` of the switches; 0: none")
roci.prefs.extensions = Pref.bool("Extension blocks and private opcodes", true,
  "Decode the extensions of Rocinante. Disable it if other stacks use the reserved bits for other purposes")

local malformed = ProtoExpert.new("roci.malformed", "Malformed", expert.group.MALFORMED, expert.severity.ERROR)
local cut = ProtoExpert.new("roci.cut", "Cut by the capture", expert.group.UNDECODED, expert.severity.NOTE)
local missing = ProtoExpert.new("roci.int.missing", "Hops are missing", expert.group.SEQUENCE, expert.severity.WARN)
roci.experts = { malformed, cut, missing }

-- Fields -------------------------------------------------------------------------------------------------------------

local every_field = {}
local UNSIGNED = { "uint8", "uint16", "uint24", "uint32", [8] = "uint64" }

-- Creates fields from a table. A row has: filter name after `prefix`, label, offset, size in bytes, form, and any of
--   mask, values  as in ProtoField
--   unit          suffix of the number
--   value         function from the range to the displayed value; `as`: size of its result in bytes
local function fields(prefix, table_of_rows)
  for _, row in ipairs(table_of_rows) do
    local name, label, size, form = "roci." .. prefix .. row[1], row[2], row[4], row[5]
    if form == "flag" then
      row.field = ProtoField.bool(name, label, 8 * size, nil, row.mask)
    elseif UNSIGNED[row.as or size] and (form == "dec" or form == "hex" or form == "signed") then
      local kind = UNSIGNED[row.as or size]:sub(form == "signed" and 2 or 1)
      local display = row.unit and base.UNIT_STRING or form == "hex" and base.HEX or base.DEC
      row.field = ProtoField[kind](name, label, display, row.unit and { row.unit } or row.values, row.mask)
    else
      row.field = ProtoField[form](name, label)
    end
    table.insert(every_field, row.field)
  end
  return table_of_rows
end
local function field(name, label, form, ...) -- "none": a heading
  table.insert(every_field, ProtoField[form]("roci." .. name, label, ...))
  return every_field[#every_field]
end

local function add_row(tree, range, row)
  local part = range(row[3], row[4])
  if row.value then return tree:add(row.field, part, row.value(part)) end
  return tree:add(row.field, part)
end
local function add(tree, range, rows)
  for _, row in ipairs(rows) do add_row(tree, range, row) end
end

local function wide(range) return UInt64(range:uint()) end
local function times(factor) return function(range) return UInt64(range:uint()) * factor end end
local function signed_times(factor) return function(range) return Int64(range:int()) * factor end end
local function small_times(factor) return function(range) return range:int() * factor end end
-- 4 bits of exponent, 12 bits of mantissa (int_hop.hpp).
local function scaled(range) return math.floor(range:bitfield(4, 12) * 2 ^ range:bitfield(0, 4)) end

-- Bit operations without a library: each version of Lua has a different one.
local function has_bit(number, bit) return math.floor(number / 2 ^ bit) % 2 == 1 end

local function grouped(number)
  local text, count = string.format("%d", number), 1
  while count > 0 do text, count = text:gsub("^(%d+)(%d%d%d)", "%1,%2") end
  return text
end

-- A hop of 16 bytes, in INT, INT-ECHO, CC_INT_RESP and the CNM. Each message has its own fields and heading.
local function switch_of(range) return range:bitfield(0, 20) end
local function port_of(range) return range:bitfield(20, 12) end
local function hop_fields(prefix)
  local rows = fields(prefix, {
    { "switch", "Switch", 0, 4, "hex", value = switch_of },
    { "port", "Egress Port", 0, 4, "dec", as = 2, value = port_of },
    { "time", "Time", 4, 4, "dec", unit = " ns", as = 8, value = wide },
    { "tx_bytes", "Bytes Sent", 8, 4, "dec", unit = " bytes", as = 8, value = times(8) },
    { "rate", "Link Rate", 12, 2, "dec", unit = " Mb/s", as = 4, value = scaled },
    { "queue", "Queue", 14, 2, "dec", unit = " bytes", as = 4, value = scaled },
  })
  return rows, field(prefix:sub(1, -2), "Hop", "none")
end
local function hop_text(switch, port, queue, mbps)
  local rate = mbps == 0 and "of unknown rate" or mbps % 1000 == 0 and grouped(math.floor(mbps / 1000)) .. " Gb/s"
    or grouped(mbps) .. " Mb/s"
  return string.format("switch 0x%05x port %d, queue %s bytes, link %s", switch, port, grouped(queue), rate)
end
local function add_hop(tree, hop, rows)
  tree:append_text(": " .. hop_text(switch_of(hop(0, 4)), port_of(hop(0, 4)), scaled(hop(14, 2)), scaled(hop(12, 2))))
  add(tree, hop, rows)
end

-- Validation ---------------------------------------------------------------------------------------------------------

local function refuse(tree, what, why)
  tree:add_proto_expert_info(malformed, "Malformed " .. what .. ": " .. why)
  tree:append_text(" [Malformed: " .. why .. "]")
end
local function is_cut(tree, what) tree:add_proto_expert_info(cut, what .. ": cut by the capture") end

-- Number of bytes of `tvb` in the capture: see hand_on().
local limit
local function have(tvb)
  return limit and math.max(0, math.min(tvb:len(), limit - tvb:offset())) or tvb:len()
end

-- Adds an item for the first bytes, as far as they were captured.
local function add_start(tree, proto, tvb, bytes)
  if have(tvb) == 0 then return tree:add(proto) end
  return tree:add(proto, tvb(0, math.min(bytes, have(tvb))))
end

-- True if the first bytes of `tvb` can be read; otherwise adds the reason. `space`: number of bytes on the wire.
local function has(tree, tvb, bytes, what, why, space)
  if (space or tvb:reported_len()) < bytes then
    refuse(tree, what, why)
    return false
  end
  if have(tvb) < bytes then is_cut(tree, what) end
  return have(tvb) >= bytes
end

-- Passes the bytes after `at` to a dissector, or to the dissector for `key` in a table. It may call these dissectors
-- again (tags in tags); Lua's stack limits the depth.
--
-- Bytes that the capture has truncated are zeros, from `limit` on. The reported length of a buffer created in Lua is
-- its own length, and dissectors stop at packets that are shorter than the IP length. An exception of a dissector that
-- reads beyond the captured bytes would not be caught in Lua.
local depth, DEEPEST = 0, 8
local function hand_on(dissector, key, tvb, at, pinfo, tree)
  if depth == DEEPEST then return refuse(tree, "packet", "nested too deep") end
  local rest, outer = tvb, limit
  if tvb:len() < tvb:reported_len() then
    local bytes = tvb(at):bytes()
    limit = bytes:len()
    bytes:set_size(tvb:reported_len() - at)
    rest = bytes:tvb("Cut by the Capture, Zeros Added")
  elseif at > 0 then
    rest = tvb(at):tvb()
  end
  depth = depth + 1
  -- Dissectors display other exceptions as a malformed packet. Bytes without a dissector are displayed as data.
  if key then
    pcall(dissector.try, dissector, key, rest, pinfo, tree)
  else
    pcall(dissector.call, dissector, rest, pinfo, tree)
  end
  depth, limit = depth - 1, outer
end

-- Called first by each dissector: resets the state if an exception has passed hand_on() in an earlier frame.
local frame
local function enter(pinfo)
  if frame ~= pinfo.number then frame, depth, limit = pinfo.number, 0, nil end
end

local function is_all(range, digit) return not tostring(range:bytes()):find("[^" .. digit .. "]") end

-- Extension blocks (extensions.hpp) ----------------------------------------------------------------------------------

local block_header = fields("block.", {
  { "version", "Version", 0, 1, "dec", mask = 0xf0 },
  { "flags", "Flags", 0, 1, "hex", mask = 0x0f },
  { "words", "Length", 1, 1, "dec", unit = " words" },
  { "types", "Types", 2, 2, "hex" },
})
local block_heading = field("block", "Extension Block", "none")
local payload_length = field("payload_length", "Payload Length", "uint32", base.UNIT_STRING, { " bytes" })

local function rate_value(range) -- 28 bits of 100 kb/s, two's complement in a delta
  local rate, delta = range:bitfield(4, 28), range:bitfield(0, 1) == 1
  return Int64(delta and rate >= 0x8000000 and rate - 0x10000000 or rate) * 100
end

-- By bit number: name, words, reserved bits (first, count), prefix of the fields, fields.
local TYPES = {
  [0] = { "SOURCE-QPN", 1, { 0, 8 }, "source_qp", {
    { "qp", "Queue Pair of the Sender", 1, 3, "hex" },
  } },
  [1] = { "CE-ECHO", 2, nil, "ce_echo", {
    { "packets", "Packets Received", 0, 4, "dec" },
    { "marked", "Packets Marked CE", 4, 4, "dec" },
  } },
  [2] = { "LSN", 2, nil, "lsn", {
    { "lsn", "Byte Sequence Number", 0, 8, "dec" },
  } },
  [3] = { "TS", 2, nil, "ts", {
    { "time", "Time Sent", 0, 8, "dec" },
  } },
  [4] = { "TS-ECHO", 4, nil, "ts_echo", {
    { "time", "Time Sent, Echoed", 0, 8, "dec" },
    { "hold", "From Arrival to Departure", 8, 4, "dec" },
    { "host_delay", "Part of It in Receive Queues", 12, 4, "dec" },
  } },
  [5] = { "RXWIN", 2, { 32, 8 }, "rx_window", {
    { "bytes", "Window", 0, 4, "dec", unit = " bytes" },
    { "psn", "From PSN", 5, 3, "dec" },
  } },
  [6] = { "NFLOWS", 1, { 0, 7 }, "flows", {
    { "last_hop", "Last Hop Is the Bottleneck", 0, 1, "flag", mask = 0x01 },
    { "count", "Flows", 1, 3, "dec" },
  } },
  [7] = { "RATE", 1, { 1, 3 }, "rate", {
    { "delta", "Delta", 0, 4, "flag", mask = 0x80000000 },
    { "rate", "Rate", 0, 4, "signed", unit = " kb/s", as = 8, value = rate_value },
  } },
  [8] = { "INT-ECHO", 1, { 8, 4 }, "int_echo", {
    { "hops", "Hops", 0, 1, "dec" },
    { "delayed", "Stands for Several Packets", 1, 1, "flag", mask = 0x01 },
    { "probe", "From a Probe", 1, 1, "flag", mask = 0x02 },
    { "from_switch", "Sent by a Switch", 1, 1, "flag", mask = 0x04 },
    { "incomplete", "Incomplete", 1, 1, "flag", mask = 0x08 },
    { "age", "Age", 2, 2, "dec", unit = " µs" },
  } },
  [9] = { "SACK", 3, { 0, 8 }, "sack", {
    { "psn", "PSN of the Lowest Bit", 1, 3, "dec" },
    { "kept", "Packets Kept", 4, 8, "hex" },
  } },
  [15] = { "AUTH", 3, nil, "auth", {
    { "sequence", "Sequence, Low Half", 0, 4, "dec" },
    { "mac", "MAC (SipHash-2-4)", 4, 8, "hex" },
  } },
}
for _, info in pairs(TYPES) do
  info[5], info[6] = fields(info[4] .. ".", info[5]), field(info[4], info[1], "none")
end
local INT_ECHO, MOST_HOPS, HOP = 8, 16, 16
local echo_hop, echo_hop_heading = hop_fields("int_echo.hop.")

-- Adds the values of a completely captured block. Returns the reason if they are rejected.
local function add_values(tree, tvb, types, words, names)
  local at = 1
  for bit = 0, 15 do
    if has_bit(types, bit) then
      local name, length, reserved, _, rows, heading = table.unpack(TYPES[bit], 1, 6)
      if at + length > words then return "bad length" end
      local value = tvb(4 * at, 4 * length)
      local item = tree:add(heading, value)
      add(item, value, rows)
      table.insert(names, name)
      if reserved and value:bitfield(reserved[1], reserved[2]) ~= 0 then return "reserved bits" end
      at = at + length
      if bit == INT_ECHO then
        local hops = value(0, 1):uint()
        if hops > MOST_HOPS then return "too many hops" end
        item:append_text(string.format(": %d hops, newest first", hops))
        for i = 1, math.min(hops, math.floor((words - at) / 4)) do
          local hop = tvb(4 * at + HOP * (i - 1), HOP)
          add_hop(item:add(echo_hop_heading, hop):append_text(" " .. i), hop, echo_hop)
        end
        at = at + 4 * hops
      end
    end
  end
  return at ~= words and "bad length" or nil
end

-- Adds the block at the start of `tvb`; `space`: bytes of block and payload on the wire. Adds its types to `names`.
local function add_block(tree, tvb, space, may_have_payload, names)
  local block = tree:add(block_heading, tvb(0, math.min(4, have(tvb))))
  if not has(block, tvb, 4, "extension block", "too short", space) then return end
  add(block, tvb, block_header)
  local words, types = tvb(1, 1):uint(), tvb(2, 2):uint()
  local unknown, why = false, nil
  for bit = 0, 15 do unknown = unknown or (has_bit(types, bit) and not TYPES[bit]) end
  if tvb(0, 1):bitfield(0, 4) ~= 1 then
    why = "bad version"
  elseif tvb(0, 1):bitfield(4, 4) ~= 0 then
    why = "reserved flags"
  elseif unknown then
    why = "unknown type"
  elseif types == 0 then
    why = "empty"
  elseif not has(block, tvb, 4 * words, "extension block", "beyond the packet", space) then
    return
  else
    block:set_len(math.max(4, 4 * words))
    why = add_values(block, tvb, types, words, names)
    if not why and not may_have_payload and 4 * words ~= space then why = "trailing bytes" end
  end
  if why then return refuse(block, "extension block", why) end
  block:append_text(": " .. table.concat(names, ", "))
  tree:add(payload_length, space - 4 * words):set_generated()
end

-- The capability exchange (capability_mad.hpp) -----------------------------------------------------------------------

local MAD = 256
local mad_fields = fields("capability.", {
  { "response", "Response", 3, 1, "flag", mask = 0x80 },
  { "status", "Status", 4, 2, "hex" },
  { "transaction", "Transaction", 8, 8, "hex" },
})
local offer_fields = fields("capability.", {
  { "version", "Highest Version", 44, 1, "dec" },
  { "lowest", "Lowest Version", 45, 1, "dec" },
  { "mtu_extra", "Accepted beyond the Path MTU", 52, 2, "dec", unit = " bytes" },
  { "int_hops", "Longest INT-ECHO", 54, 1, "dec", unit = " hops" },
  { "window", "Kept beyond a Gap", 56, 4, "dec", unit = " packets" },
  { "time_unit", "Unit of Times", 60, 4, "dec", unit = " ps" },
  { "incarnation", "Incarnation", 64, 8, "hex" },
  { "peer_incarnation", "Incarnation of the Peer", 72, 8, "hex" },
  { "auth", "Key Material", 80, 16, "bytes" },
})
local network_fields = fields("capability.", {
  { "network_auth", "Key Material with the Network Key", 96, 16, "bytes" },
  { "mac", "MAC under the Network Key", 112, 8, "hex" },
})
local capabilities = fields("capability.", { { "capabilities", "Capabilities", 48, 4, "hex" } })
local capability_bits = {
  { "data_blocks", "Blocks in Requests and READ Responses", 48, 4, "flag", mask = 0x010000 },
  { "probes", "CC_PROBE and CC_PROBE_RESP", 48, 4, "flag", mask = 0x020000 },
  { "read_acks", "CC_RRACK", 48, 4, "flag", mask = 0x040000 },
  { "int_responses", "CC_INT_RESP", 48, 4, "flag", mask = 0x080000 },
  { "window_messages", "CC_RXW", 48, 4, "flag", mask = 0x100000 },
  { "selective_repeat", "Selective Repeat", 48, 4, "flag", mask = 0x200000 },
  { "network_key", "AUTH with the Network Key", 48, 4, "flag", mask = 0x400000 },
}
for bit = 15, 0, -1 do
  local name = TYPES[bit] and TYPES[bit][1]
  if name then
    local below = name:lower():gsub("-", "_")
    table.insert(capability_bits, 1, { "takes." .. below, name, 48, 4, "flag", mask = math.floor(2 ^ bit) })
  end
end
fields("capability.", capability_bits)

-- Whether a datagram is signed with the network key. Version 1 has no such bit.
local function has_network_key(mad) return mad(44, 1):uint() >= 2 and has_bit(mad(48, 4):uint(), 22) end

local function capability_verdict(mad)
  local function u8(at) return mad(at, 1):uint() end
  local response, status, version, lowest = u8(3) == 0x81, mad(4, 2):uint(), u8(44), u8(45)
  if u8(2) ~= 1 then return "bad class version" end
  if not is_all(mad(24, 12), "0") then return "RMPP" end
  if not response and u8(3) ~= 0x01 then return "other method" end
  if mad(16, 2):uint() ~= 0x0101 or mad(20, 4):uint() ~= 0 then return "other attribute" end
  if status ~= 0 then return response and "refused by the peer" or "bad status" end
  if mad(6, 2):uint() ~= 0 or mad(18, 2):uint() ~= 0 or u8(36) ~= 0 then return "bad status" end
  if mad(40, 4):uint() ~= 0x43435831 then return "bad magic" end -- "CCX1"
  if lowest == 0 or lowest > version or lowest > 1 then return "bad version" end
  local network = has_network_key(mad)
  local reserved = mad(46, 2):uint() ~= 0 or u8(55) ~= 0 or not is_all(mad(120), "0")
    or (not network and not is_all(mad(96, 24), "0"))
  if version <= 2 and reserved then return "reserved bits" end -- newer versions may use them
  if network and is_all(mad(96, 16), "0") then return "bad value" end
  local has_auth, has_key = has_bit(mad(48, 4):uint(), 15), not is_all(mad(80, 16), "0")
  local answers = not is_all(mad(72, 8), "0")
  if mad(60, 4):uint() == 0 or is_all(mad(64, 8), "0") or has_auth ~= has_key or response ~= answers then
    return "bad value"
  end
end

-- `tvb`: payload of a packet to queue pair 1. The InfiniBand dissector decodes other classes and vendors.
local function add_capabilities(tvb, space, pinfo, tree)
  if have(tvb) < 40 or tvb(0, 2):uint() ~= 0x013a or tvb(37, 3):uint() ~= 0x526f63 then return end
  local item = tree:add(roci, tvb(), "Rocinante Capability Exchange")
  add(item, tvb, mad_fields)
  if space > MAD then return refuse(item, "capability exchange", "bad size") end
  if not has(item, tvb, MAD, "capability exchange", "bad size", space) then return end
  local why = capability_verdict(tvb(0, MAD))
  if why == "refused by the peer" then -- the body may be that of the request
    item:append_text(": " .. why)
    pinfo.cols.info:append(" capabilities: refused")
    return
  end
  add(item, tvb, offer_fields)
  if not why and has_network_key(tvb) then add(item, tvb, network_fields) end
  add(add_row(item, tvb, capabilities[1]), tvb, capability_bits)
  local what = has_bit(tvb(3, 1):uint(), 7) and "response" or "request"
  item:append_text(": " .. what)
  pinfo.cols.info:append(" capabilities: " .. what)
  if why then refuse(item, "capability exchange", why) end
end

-- RoCEv2 packets (opcodes.hpp) ---------------------------------------------------------------------------------------

local BTH, ICRC = 12, 4
local OPCODES, OPCODE_NAMES = {}, {}
-- Consecutive opcodes from `first` on: content after the headers, bytes of headers after the BTH, name.
local function opcodes(first, rows)
  for i, row in ipairs(rows) do
    OPCODES[first + i - 1] = { row[2], row[1] == "payload" }
    OPCODE_NAMES[first + i - 1] = row[3]
  end
end
for class, first in pairs({ RC = 0x00, UC = 0x20, XRC = 0xa0 }) do
  local x = class == "XRC" and 4 or 0 -- XRCETH, in requests
  opcodes(first, {
    { "payload", x, class .. "_SEND_FIRST" }, { "payload", x, class .. "_SEND_MIDDLE" },
    { "payload", x, class .. "_SEND_LAST" }, { "payload", x + 4, class .. "_SEND_LAST_IMM" },
    { "payload", x, class .. "_SEND_ONLY" }, { "payload", x + 4, class .. "_SEND_ONLY_IMM" },
    { "payload", x + 16, class .. "_WRITE_FIRST" }, { "payload", x, class .. "_WRITE_MIDDLE" },
    { "payload", x, class .. "_WRITE_LAST" }, { "payload", x + 4, class .. "_WRITE_LAST_IMM" },
    { "payload", x + 16, class .. "_WRITE_ONLY" }, { "payload", x + 20, class .. "_WRITE_ONLY_IMM" },
  })
  if class ~= "UC" then
    opcodes(first + 0x0c, {
      { "nothing", x + 16, class .. "_READ_REQUEST" }, { "payload", 4, class .. "_READ_RESP_FIRST" },
      { "payload", 0, class .. "_READ_RESP_MIDDLE" }, { "payload", 4, class .. "_READ_RESP_LAST" },
      { "payload", 4, class .. "_READ_RESP_ONLY" }, { "nothing", 4, class .. "_ACK" },
      { "nothing", 12, class .. "_ATOMIC_ACK" }, { "nothing", x + 28, class .. "_CMP_SWAP" },
      { "nothing", x + 28, class .. "_FETCH_ADD" },
    })
    opcodes(first + 0x16, { { "payload", x + 4, class .. "_SEND_LAST_INV" }, { "payload", x + 4, class .. "_SEND_ONLY_INV" } })
  end
end
opcodes(0x1c, { { "nothing", 20, "RC_FLUSH" }, { "payload", 16, "RC_ATOMIC_WRITE" } })
opcodes(0x64, { { "payload", 8, "UD_SEND_ONLY" }, { "payload", 12, "UD_SEND_ONLY_IMM" } })
opcodes(0x81, { { "nothing", 16, "CNP" } })
opcodes(0xe0, {
  { "nothing", 24, "CC_PROBE" }, { "nothing", 52, "CC_PROBE_RESP" }, { "nothing", 4, "CC_RRACK" },
  { "nothing", 40, "CC_INT_RESP" }, { "nothing", 0, "CC_RXW" },
})
local UD_SEND_ONLY, FIRST_PRIVATE = 0x64, 0xe0

local private_opcode = fields("", { { "opcode", "Opcode", 0, 1, "hex", values = OPCODE_NAMES } })
local icrc = field("icrc", "Invariant CRC", "uint32", base.HEX)
local probe_fields = fields("probe.", {
  { "id", "Id", 0, 4, "hex" },
  { "flags", "Flags", 4, 2, "hex" },
  { "rtt", "Requests Times", 4, 2, "flag", mask = 0x0001 },
  { "int", "Requests Telemetry", 4, 2, "flag", mask = 0x0002 },
  { "reserved", "Reserved", 6, 2, "hex" },
  { "sent", "t1: Probe Sent", 8, 8, "dec" },
  { "lsn", "Byte Sequence Number", 16, 8, "dec" },
})
local times_fields = fields("probe_times.", {
  { "received", "t2: Probe Received", 24, 8, "dec" },
  { "answered", "t3: Response Sent", 32, 8, "dec" },
  { "raw", "From the Algorithm", 40, 12, "bytes" },
})
local rrack_fields = fields("rrack.", {
  { "syndrome", "Syndrome", 0, 1, "hex" },
  { "completed", "READs and Atomics Completed", 1, 3, "dec" },
})
local report_fields = fields("int_report.", {
  { "flags", "Flags", 0, 2, "hex" },
  { "lsn_known", "LSN Known", 0, 2, "flag", mask = 0x0001 },
  { "to_receiver", "Sent to the Receiver", 0, 2, "flag", mask = 0x0002 },
  { "reserved", "Reserved", 2, 2, "hex" },
  { "lsn", "Byte Sequence Number", 4, 8, "dec" },
})
local report_hop, report_hop_heading = hop_fields("int_report.hop.")
local report_sample = fields("int_report.", { { "sampled_bth", "Sampled BTH", 28, BTH, "bytes" } })
local function bth_fields(prefix) -- of the packet that a notification contains
  return fields(prefix, {
    { "opcode", "Opcode", 0, 1, "hex", values = OPCODE_NAMES },
    { "destination_qp", "Destination Queue Pair", 5, 3, "hex" },
    { "psn", "Packet Sequence Number", 9, 3, "dec" },
  })
end
local report_bth = bth_fields("int_report.sampled.")

-- Adds the body of a private opcode, which is completely captured.
local function add_body(tree, tvb, code)
  if code == 0xe0 or code == 0xe1 then add(tree, tvb(BTH), probe_fields) end
  if code == 0xe1 then add(tree, tvb(BTH), times_fields) end
  if code == 0xe2 then add(tree, tvb(BTH), rrack_fields) end
  if code == 0xe3 then
    add(tree, tvb(BTH), report_fields)
    add_hop(tree:add(report_hop_heading, tvb(BTH + 12, HOP)), tvb(BTH + 12, HOP), report_hop)
    add(add_row(tree, tvb(BTH), report_sample[1]), tvb(BTH + 28), report_bth)
  end
end

local udp_ports, ether_types = DissectorTable.get("udp.port"), DissectorTable.get("ethertype")
local ROCE_PORT = 4791
local infiniband = udp_ports:get_dissector(ROCE_PORT)

-- tshark would decode a block as payload. It gets the packet without a block of valid length.
local function without_block(tvb, at, space)
  if have(tvb) < tvb:reported_len() or space < 4 or tvb(at, 1):bitfield(0, 4) ~= 1 then return tvb end
  local bytes = 4 * tvb(at + 1, 1):uint()
  if bytes < 4 or bytes > space then return tvb end
  local rest = tvb(0, at):bytes()
  rest:append(tvb(at + bytes):bytes())
  return rest:tvb("Without Extension Block")
end

-- Adds a packet with a private opcode or a block. Headers end at `headers`; block and payload have `space` bytes.
local function add_extensions(tvb, pinfo, tree, headers, space, private, has_block)
  local code = tvb(0, 1):uint()
  local item = tree:add(roci, tvb(BTH), "Rocinante")
  if private then
    item:append_text(" " .. OPCODE_NAMES[code])
    add(item, tvb, private_opcode)
    pinfo.cols.info:set(string.format("%s QP=0x%06x", OPCODE_NAMES[code], tvb(5, 3):uint()))
  end
  if not has(item, tvb, headers, "packet", "bad length") then return end
  if space < 0 then return refuse(item, "packet", "bad length") end
  if private then add_body(item, tvb, code) end
  if has_block then
    local names, captured = {}, math.min(space, have(tvb) - headers)
    if captured > 0 then
      add_block(item, tvb(headers, captured):tvb(), space, OPCODES[code][2], names)
      if #names > 0 then pinfo.cols.info:append(" [" .. table.concat(names, ", ") .. "]") end
    else
      has(item, tvb, headers + 4, "extension block", "too short", headers + space)
    end
  end
  if private and have(tvb) == tvb:reported_len() then item:add(icrc, tvb(tvb:len() - ICRC)) end
end

-- Called instead of the InfiniBand dissector, which it calls.
function roci.dissector(tvb, pinfo, tree)
  enter(pinfo)
  local code = have(tvb) >= BTH and tvb(0, 1):uint()
  local opcode = OPCODES[code]
  if not opcode or tvb(1, 1):bitfield(4, 4) ~= 0 then -- the version of the BTH
    hand_on(infiniband, nil, tvb, 0, pinfo, tree)
    return tvb:len()
  end
  local private = roci.prefs.extensions and code >= FIRST_PRIVATE
  local has_block = roci.prefs.extensions and has_bit(tvb(8, 1):uint(), 6)
  local headers = BTH + opcode[1]
  local space = tvb:reported_len() - headers - ICRC - tvb(1, 1):bitfield(2, 2) -- without the pad
  hand_on(infiniband, nil, has_block and without_block(tvb, headers, space) or tvb, 0, pinfo, tree)
  if private or has_block then add_extensions(tvb, pinfo, tree, headers, space, private, has_block) end
  local captured = math.min(space, have(tvb) - headers)
  if code == UD_SEND_ONLY and tvb(5, 3):uint() == 1 and captured > 0 and not has_block then
    add_capabilities(tvb(headers, captured):tvb(), space, pinfo, tree)
  end
  return tvb:len()
end

-- INT-MD (telemetry_header.hpp) --------------------------------------------------------------------------------------

local INT_HEADER = 16
local COMPACT, FULL = 0x8000, 0x4000 -- forms of Rocinante's domain-specific hops; a source selects one
local FORMS = { [COMPACT] = "hops of 16 bytes", [FULL] = "hops of 32 bytes" }
local int_fields = fields("int.", {
  { "type", "Type", 0, 1, "dec", mask = 0xf0, values = { "INT-MD" } },
  { "npt", "Next Protocol Type", 0, 1, "dec", mask = 0x0c, values = { "original UDP port" } },
  { "words", "Length", 1, 1, "dec", unit = " words" },
  { "next_port", "Original UDP Port", 2, 2, "dec" },
  { "version", "Version", 4, 4, "dec", mask = 0xf0000000 },
  { "discard", "D: a Copy for the Sink Only", 4, 4, "flag", mask = 0x08000000 },
  { "hops_exceeded", "E: No Hop Left", 4, 4, "flag", mask = 0x04000000 },
  { "mtu_exceeded", "M: No Space in the MTU", 4, 4, "flag", mask = 0x02000000 },
  { "hop_words", "Words per Hop", 4, 4, "dec", mask = 0x00001f00 },
  { "hops_left", "Hops Left", 4, 4, "dec", mask = 0x000000ff },
  { "instructions", "Instructions", 8, 2, "hex" },
  { "domain", "Domain", 10, 2, "dec" },
  { "domain_instructions", "Domain-specific Instructions", 12, 2, "hex", values = FORMS },
  { "domain_flags", "Domain-specific Flags", 14, 2, "hex" },
  { "wants_response", "Switches May Answer", 14, 2, "flag", mask = 0x8000 },
})
local int_hops = field("int.hops", "Hops", "uint8", base.DEC)
local hop_data = field("int.hop.data", "Other Metadata", "bytes")
-- By bit number of the standard's instructions; instructions without a row have 4 bytes.
local METADATA = {
  [15] = { { "node_id", "Node", 0, 4, "hex" } },
  [14] = {
    { "level1_ingress", "Level 1 Ingress Port", 0, 2, "dec" },
    { "level1_egress", "Level 1 Egress Port", 2, 2, "dec" },
  },
  [13] = { { "latency", "Hop Latency", 0, 4, "dec", unit = " ns" } },
  [12] = { { "queue_id", "Queue Number", 0, 1, "dec" }, { "queue_occupancy", "Queue Occupancy", 1, 3, "dec" } },
  [11] = { { "ingress_time", "Ingress Time", 0, 8, "dec", unit = " ns" } },
  [10] = { { "egress_time", "Egress Time", 0, 8, "dec", unit = " ns" } },
  [9] = {
    { "level2_ingress", "Level 2 Ingress Port", 0, 4, "dec" },
    { "level2_egress", "Level 2 Egress Port", 4, 4, "dec" },
  },
  [8] = { { "tx_utilisation", "Egress Utilisation", 0, 4, "hex" } },
  [7] = { { "buffer_id", "Buffer Number", 0, 1, "dec" }, { "buffer_occupancy", "Buffer Occupancy", 1, 3, "dec" } },
}
for _, rows in pairs(METADATA) do fields("int.hop.", rows) end
local reserved_metadata = fields("int.hop.", { { "reserved", "Reserved Instruction", 0, 4, "hex" } })
local complement = fields("int.hop.", { { "checksum_complement", "Checksum Complement", 0, 4, "hex" } })
local compact_fields, hop_heading = hop_fields("int.hop.")
local full_fields = fields("int.hop.", {
  { "switch", "Switch", 0, 4, "hex" },
  { "ingress_port", "Ingress Port", 4, 2, "dec" },
  { "port", "Egress Port", 6, 2, "dec" },
  { "time", "Time", 8, 8, "dec", unit = " ns" },
  { "tx_bytes", "Bytes Sent", 16, 8, "dec", unit = " bytes" },
  { "queue", "Queue", 24, 4, "dec", unit = " bytes" },
  { "rate", "Link Rate", 28, 4, "dec", unit = " Mb/s" },
})

local function metadata_bytes(bit) return (bit == 11 or bit == 10 or bit == 9) and 8 or 4 end
local function baseline_bytes(instructions)
  local bytes = 0
  for bit = 15, 1, -1 do bytes = bytes + (has_bit(instructions, bit) and metadata_bytes(bit) or 0) end
  return bytes
end
local function add_baseline(tree, hop, instructions)
  local at = 0
  for bit = 15, 1, -1 do
    if has_bit(instructions, bit) then
      local part = hop(at, metadata_bytes(bit))
      for _, row in ipairs(METADATA[bit] or reserved_metadata) do
        local item = add_row(tree, part, row)
        if is_all(part(row[3], row[4]), "F") then item:append_text(" (not known)") end
      end
      at = at + part:len()
    end
  end
end

-- Adds domain-specific metadata of Rocinante. Returns the bytes in the queue, if known.
local OWN_BYTES = { [COMPACT] = HOP, [FULL] = 32 }
local function add_own(tree, part, domain, instructions)
  local ours = roci.prefs.int_domain == 0 or roci.prefs.int_domain == domain
  if not ours or part:len() ~= OWN_BYTES[instructions] then
    tree:add(hop_data, part)
  elseif is_all(part, "F") then
    tree:append_text(": not known")
  elseif instructions == COMPACT then
    add_hop(tree, part, compact_fields)
    return scaled(part(14, 2))
  else
    local queue = part(24, 4):uint()
    tree:append_text(": " .. hop_text(part(0, 4):uint(), part(6, 2):uint(), queue, part(28, 4):uint()))
    add(tree, part, full_fields)
    return queue
  end
end

local function add_int_hop(tree, hop, header)
  local instructions = header(8, 2):uint()
  local before, after = baseline_bytes(instructions), has_bit(instructions, 0) and 4 or 0
  local own = hop:len() - before - after
  if own < 0 then -- shorter than its instructions require
    tree:add(hop_data, hop)
    return
  end
  local queue = own > 0 and add_own(tree, hop(before, own), header(10, 2):uint(), header(12, 2):uint()) or nil
  add_baseline(tree, hop, instructions)
  if after > 0 then add(tree, hop(before + own), complement) end
  return queue
end

-- Returns the length of INT in bytes and a text, if a packet follows.
local function add_int(item, tvb)
  if not has(item, tvb, INT_HEADER, "INT", "beyond packet") then return end
  add(item, tvb, int_fields)
  local header = tvb(0, INT_HEADER)
  local flags = header(4, 4)
  if header(0, 1):bitfield(4, 2) ~= 1 then return refuse(item, "INT", "unknown next protocol") end
  if flags:bitfield(0, 4) ~= 2 then return refuse(item, "INT", "bad version") end
  local bytes, hop_bytes = 4 + 4 * header(1, 1):uint(), 4 * flags:bitfield(19, 5)
  if bytes < INT_HEADER then return refuse(item, "INT", "too short") end
  if not has(item, tvb, bytes, "INT", "beyond packet") then return end
  local stack, hops = bytes - INT_HEADER, 0
  if stack > 0 then
    if hop_bytes == 0 or stack % hop_bytes ~= 0 then return refuse(item, "INT", "uneven stack") end
    hops = math.floor(stack / hop_bytes)
  end
  item:set_len(bytes)
  item:append_text(string.format(", %d hop%s", hops, hops == 1 and "" or "s, newest first"))
  item:add(int_hops, hops):set_generated()
  local longest
  for i = 1, hops do
    local hop = tvb(INT_HEADER + (i - 1) * hop_bytes, hop_bytes)
    local queue = add_int_hop(item:add(hop_heading, hop):append_text(" " .. i), hop, header)
    if queue then longest = math.max(longest or 0, queue) end
  end
  if flags:bitfield(5, 1) == 1 then item:add_proto_expert_info(missing, "E: the source permitted no more hops") end
  if flags:bitfield(6, 1) == 1 then item:add_proto_expert_info(missing, "M: the MTU had no space for a hop") end
  local queues = longest and ", longest queue " .. grouped(longest) .. " bytes" or ""
  return bytes, string.format(" [INT: %d hop%s%s]", hops, hops == 1 and "" or "s", queues)
end

function int.dissector(tvb, pinfo, tree)
  enter(pinfo)
  if have(tvb) == 0 or tvb(0, 1):bitfield(0, 4) ~= 1 then return 0 end -- not INT-MD: of another protocol
  pinfo.cols.protocol:set("INT")
  local item = tree:add(int, tvb())
  local bytes, text = add_int(item, tvb)
  if not bytes then return tvb:len() end
  if have(tvb) < tvb:reported_len() then is_cut(item, "the following packet") end
  if have(tvb) > bytes then hand_on(udp_ports, tvb(2, 2):uint(), tvb, bytes, pinfo, tree) end
  pinfo.cols.info:append(text)
  return tvb:len()
end

-- CN-TAG and CNM (link_tags.hpp, congestion_notification.hpp) --------------------------------------------------------

local IPV4, IPV6, CN_TAG_TYPE, CNM_TYPE = 0x0800, 0x86dd, 0x22e9, 0x22e7
local TYPE_NAMES = { [IPV4] = "IPv4", [IPV6] = "IPv6", [CN_TAG_TYPE] = "CN-TAG", [CNM_TYPE] = "CNM" }
local TCP, UDP = 6, 17
local PROTOCOL_NAMES = { [TCP] = "TCP", [UDP] = "UDP" }
local tag_fields = fields("cn_tag.", {
  { "flow", "Flow", 0, 2, "hex" },
  { "ethertype", "Type", 2, 2, "hex", values = TYPE_NAMES },
})

function cn_tag.dissector(tvb, pinfo, tree)
  enter(pinfo)
  local item = add_start(tree, cn_tag, tvb, 4)
  if not has(item, tvb, 4, "CN-TAG", "truncated") then return tvb:len() end
  add(item, tvb, tag_fields)
  local flow, kind = tvb(0, 2):uint(), tvb(2, 2):uint()
  item:append_text(string.format(", flow 0x%04x", flow))
  if have(tvb) > 4 then hand_on(ether_types, kind, tvb, 4, pinfo, tree) end
  pinfo.cols.info:append(string.format(" [flow 0x%04x]", flow))
  return tvb:len()
end

local PDU, MOST_MSDU = 24, 64
local pdu_fields = fields("cnm.", {
  { "version", "Version", 0, 2, "dec", mask = 0xf000 },
  { "reserved", "Reserved", 0, 2, "hex", mask = 0x0fc0 },
  { "feedback", "Quantized Feedback", 0, 2, "dec", mask = 0x003f },
  { "bridge", "Congestion Point: Bridge", 2, 6, "ether" },
  { "queue", "Congestion Point: Queue", 8, 2, "dec" },
  { "queue_offset", "Queue beyond Its Set Point", 10, 2, "signed", unit = " bytes", as = 4, value = small_times(64) },
  { "queue_delta", "Queue since the Last Sample", 12, 2, "signed", unit = " bytes", as = 4, value = small_times(64) },
  { "priority", "Priority of the Sampled Frame", 14, 2, "dec", mask = 0xe000 },
  { "destination", "Destination of the Sampled Frame", 16, 6, "ether" },
  { "msdu_length", "Sampled Length", 22, 2, "dec", unit = " bytes" },
})
local msdu = field("cnm.msdu", "Sampled Frame", "bytes")
-- Fields of the sample. Other dissectors would report the truncated packet as malformed.
local sample_type = fields("cnm.sample.", { { "ethertype", "Type", 0, 2, "hex", values = TYPE_NAMES } })
local sample_v4 = fields("cnm.sample.", {
  { "src", "Source", 12, 4, "ipv4" },
  { "dst", "Destination", 16, 4, "ipv4" },
  { "protocol", "Protocol", 9, 1, "dec", values = PROTOCOL_NAMES },
})
local sample_v6 = fields("cnm.sample.", {
  { "src6", "Source", 8, 16, "ipv6" },
  { "dst6", "Destination", 24, 16, "ipv6" },
  { "protocol", "Protocol", 6, 1, "dec", values = PROTOCOL_NAMES },
})
local sample_ports = fields("cnm.sample.", {
  { "src_port", "Source Port", 0, 2, "dec" },
  { "dst_port", "Destination Port", 2, 2, "dec" },
})
local sample_bth = bth_fields("cnm.sample.")

local function add_sample(tree, sample)
  local item = tree:add(msdu, sample)
  if sample:len() < 2 then return end
  add(item, sample, sample_type)
  local kind, bytes = sample(0, 2):uint(), sample:len() - 2
  local ip = bytes > 0 and sample(2)
  local protocol, l4
  if kind == IPV4 and bytes >= 20 and ip(0, 1):bitfield(0, 4) == 4 and ip(0, 1):bitfield(4, 4) >= 5 then
    add(item, ip, sample_v4)
    protocol = ip(9, 1):uint()
    l4 = ip(6, 2):bitfield(2, 14) == 0 and 4 * ip(0, 1):bitfield(4, 4) -- fragments have no ports
  elseif kind == IPV6 and bytes >= 40 and ip(0, 1):bitfield(0, 4) == 6 then
    add(item, ip, sample_v6)
    protocol, l4 = ip(6, 1):uint(), 40
  end
  if not l4 or (protocol ~= UDP and protocol ~= TCP) or bytes < l4 + 4 then return end
  add(item, ip(l4), sample_ports)
  if protocol == UDP and ip(l4 + 2, 2):uint() == ROCE_PORT and bytes >= l4 + 8 + BTH then
    add(item, ip(l4 + 8), sample_bth)
  end
end

-- Adds the PDU at the start of `tvb`; `space`: bytes on the wire. Returns its length if it is valid.
local function add_pdu(tree, tvb, space)
  local item = add_start(tree, cnm, tvb, PDU)
  if not has(item, tvb, PDU, "CNM", "truncated", space) then return end
  add(item, tvb, pdu_fields)
  local first, length = tvb(0, 2), tvb(22, 2):uint()
  item:append_text(string.format(", feedback %d of 63", first:bitfield(10, 6)))
  if first:bitfield(0, 4) ~= 0 then return refuse(item, "CNM", "bad version") end
  if first:bitfield(4, 6) ~= 0 then return refuse(item, "CNM", "reserved bits") end
  if length > MOST_MSDU then return refuse(item, "CNM", "MSDU too long") end
  if not has(item, tvb, PDU + length, "CNM", "MSDU beyond end", space) then return end
  item:set_len(PDU + length)
  if length > 0 then add_sample(item, tvb(PDU, length)) end
  return PDU + length
end
local function pdu_text(pdu)
  local beyond = pdu(10, 2):int() * 64
  return string.format("feedback %d, queue %s bytes %s its set point", pdu(0, 2):bitfield(10, 6),
    grouped(math.abs(beyond)), beyond < 0 and "below" or "beyond")
end

function cnm.dissector(tvb, pinfo, tree)
  enter(pinfo)
  pinfo.cols.protocol:set("CNM")
  pinfo.cols.info:set("Congestion notification")
  if add_pdu(tree, tvb, tvb:reported_len()) then pinfo.cols.info:append(": " .. pdu_text(tvb)) end
  return tvb:len()
end

-- The self-defined CNM of L3QCN (l3_congestion_notification.hpp) -----------------------------------------------------

local l3_fields = fields("l3cnm.", {
  { "version", "Version", 0, 1, "dec", mask = 0xf0 },
  { "type", "Type", 0, 1, "dec", mask = 0x0f, values = { "CNM" } },
  { "flags", "Flags", 1, 1, "hex" },
  { "ipv6", "Addresses Are IPv6", 1, 1, "flag", mask = 0x80 },
  { "tlvs", "With TLVs", 1, 1, "flag", mask = 0x40 },
  { "protocol", "Protocol of the Flow", 2, 1, "dec", values = PROTOCOL_NAMES },
  { "reserved", "Reserved", 3, 1, "hex" },
})
local function flow_fields(form, suffix, size)
  return fields("l3cnm.", {
    { "src" .. suffix, "Source of the Flow", 4, size, form },
    { "dst" .. suffix, "Destination of the Flow", 4 + size, size, form },
    { "src_port", "Source Port of the Flow", 4 + 2 * size, 2, "dec" },
    { "dst_port", "Destination Port of the Flow", 6 + 2 * size, 2, "dec" },
  })
end
local flow_v4, flow_v6 = flow_fields("ipv4", "", 4), flow_fields("ipv6", "6", 16)

local TLV_NAMES = { "available bandwidth", "rate change", "port", "ECN", "AUTH" }
local PORT_TLV, AUTH_TLV = 3, 5
local tlv_fields = fields("l3cnm.tlv.", {
  { "type", "Type", 0, 1, "dec", values = TLV_NAMES },
  { "length", "Length", 1, 1, "dec", unit = " bytes" },
})
local tlv_heading = field("l3cnm.tlv", "TLV", "none")
local tlv_value = field("l3cnm.tlv.value", "Value", "bytes")
local TLVS = { -- bytes of the value, fields
  { 4, fields("l3cnm.", {
    { "available_bandwidth", "Available Bandwidth", 0, 4, "dec", unit = " kb/s", as = 8, value = times(100) },
  }) },
  { 4, fields("l3cnm.", {
    { "rate_change", "Rate Change", 0, 4, "signed", unit = " kb/s", as = 8, value = signed_times(100) },
  }) },
  { HOP, (hop_fields("l3cnm.port.")) },
  { 8, fields("l3cnm.ecn.", {
    { "packets", "Packets", 0, 4, "dec" },
    { "marked", "Packets Marked CE", 4, 4, "dec" },
  }) },
  { 12, fields("l3cnm.auth.", {
    { "sequence", "Sequence", 0, 4, "dec" },
    { "mac", "MAC (SipHash-2-4)", 4, 8, "hex" },
  }) },
}

-- Adds the TLV at `at`. Returns its length, or nil and the reason if it is rejected; `seen`: types of earlier TLVs.
local function add_tlv(tree, tvb, at, seen)
  local space, captured = tvb:reported_len() - at, have(tvb) - at
  if seen[AUTH_TLV] then return nil, "AUTH not last" end
  local bytes = captured >= 2 and 2 + tvb(at + 1, 1):uint() or 2
  if space < bytes then return nil, "TLV beyond packet" end
  if captured < bytes then return is_cut(tree, "TLV") end
  local kind, range = tvb(at, 1):uint(), tvb(at, bytes)
  local known, value = TLVS[kind], bytes > 2 and range(2)
  local item = tree:add(tlv_heading, range):append_text(": " .. (TLV_NAMES[kind] or "of unknown type " .. kind))
  add(item, range, tlv_fields)
  if known and bytes ~= 2 + known[1] then return nil, "bad TLV length" end
  if known and seen[kind] then return nil, "repeated TLV" end
  seen[kind] = true
  if kind == PORT_TLV then
    add_hop(item, value, known[2])
  elseif known then
    add(item, value, known[2])
  elseif value then
    item:add(tlv_value, value)
  end
  return bytes
end

local function add_l3cnm(item, tvb, pinfo)
  local what = "self-defined CNM"
  if not has(item, tvb, 4, what, "too short") then return end
  add(item, tvb, l3_fields)
  local flags = tvb(1, 1):uint()
  if flags % 0x40 ~= 0 or tvb(3, 1):uint() ~= 0 then return refuse(item, what, "reserved bits") end
  local ipv6 = has_bit(flags, 7)
  local size, flow = ipv6 and 16 or 4, ipv6 and 40 or 16
  if not has(item, tvb, flow, what, "too short") then return end
  add(item, tvb, ipv6 and flow_v6 or flow_v4)
  local function address(at) return ipv6 and tvb(at, size):ipv6() or tvb(at, size):ipv4() end
  local function is_mapped(at) return is_all(tvb(at, 10), "0") and tvb(at + 10, 2):uint() == 0xffff end
  if ipv6 and (is_mapped(4) or is_mapped(20)) then return refuse(item, what, "bad flow") end
  if address(4) ~= pinfo.net_dst then return refuse(item, what, "not to the sender") end
  local text = string.format(" for %s port %d to %s port %d", address(4), tvb(flow - 4, 2):uint(), address(4 + size),
    tvb(flow - 2, 2):uint())
  item:append_text(text)
  pinfo.cols.info:append(text)
  if have(tvb) == flow then
    has(item, tvb, flow + PDU, "CNM", "truncated")
    return
  end
  local bytes = add_pdu(item, tvb(flow):tvb(), tvb:reported_len() - flow)
  if not bytes then return end
  pinfo.cols.info:append(": " .. pdu_text(tvb(flow)))
  local at, seen, why = flow + bytes, {}, nil
  if not has_bit(flags, 6) then
    if at < tvb:reported_len() then refuse(item, what, "trailing bytes") end
    return
  end
  if at == tvb:reported_len() then return refuse(item, what, "no TLVs") end
  while at and at < tvb:reported_len() do
    bytes, why = add_tlv(item, tvb, at, seen)
    at = bytes and at + bytes
  end
  if why then refuse(item, what, why) end
end

function l3cnm.dissector(tvb, pinfo, tree)
  enter(pinfo)
  if have(tvb) == 0 or tvb(0, 1):uint() ~= 0x11 then return 0 end -- another version or type: of another protocol
  pinfo.cols.protocol:set("CNM")
  pinfo.cols.info:set("Self-defined congestion notification")
  add_l3cnm(tree:add(l3cnm, tvb()), tvb, pinfo)
  return tvb:len()
end

-- Registration -------------------------------------------------------------------------------------------------------

roci.fields = every_field

local listening = {} -- registered ports
local function listen(name, proto)
  local port = roci.prefs[name]
  if listening[name] == port then return end
  if listening[name] then udp_ports:remove(listening[name], proto) end
  listening[name] = port ~= 0 and port or nil
  if listening[name] then udp_ports:add(port, proto) end
end
local function listen_to_both()
  listen("int_port", int)
  listen("cnm_port", l3cnm)
end
roci.prefs_changed = listen_to_both
listen_to_both()

udp_ports:add(ROCE_PORT, roci)
ether_types:add(CN_TAG_TYPE, cn_tag)
ether_types:add(CNM_TYPE, cnm)
