// roci-pcap: checks and prints the RoCEv2 packets of pcap and pcapng files.
#include <CLI/CLI.hpp>
#include <exception>

#include "base/os/standard_output.hpp"
#include "common/command_line.hpp"
#include "roci-pcap/check.hpp"
#include "roci-pcap/show.hpp"
#include "roci/version.h"

namespace {

constexpr const char* kCheckHelp =
    R"(Checks every RoCEv2 packet of pcap and pcapng files (Ethernet, IPv4 or IPv6, up to two VLAN tags):
the packet can be decoded, its ICRC, UDP checksum (if present) and pad count are correct, and the
re-encoded packet has the same bytes. Prints one line per file, each difference with its packet number
and field, and the number of packets per opcode.

A bad ICRC is a difference unless an index declares it. The index is the file INDEX.md in the folder of
the capture (or --index FILE), a Markdown table with a row per capture:
  | corrupt.pcap | a comment | 9 RoCEv2, ICRC good 8, bad 1, other frames 0: RC_ACK 2, RC_WRITE_ONLY 7 |
Every count in the row must be equal to that of the capture; declared bad ICRCs are still counted and
reported. Packets that the capture has truncated (snap length) are counted and not checked.

Exit status: 0 without differences, 1 with differences, 2 if a file cannot be read or an option is
invalid.)";

constexpr const char* kShowHelp =
    R"(Shows one line per packet: number, seconds since the first, addresses, opcode, destination QP, PSN,
payload bytes, ECN, flags (S solicited, M MigReq, A AckReq, F FECN, B BECN), the result of the ICRC check,
and the extended headers. Other frames (ARP, ICMP, …) are shown with their type.

Exit status: 0, or 2 if the file cannot be read or an option is invalid.)";

int run(int argc, char** argv) {
  CLI::App app{"Checks and shows RoCEv2 packets in pcap and pcapng files.", "roci-pcap"};
  app.require_subcommand(1);
  app.set_version_flag("--version", "roci-pcap " ROCI_VERSION, "print the version and exit");
  roci::pcap_tool::CheckOptions check;
  CLI::App* check_command = app.add_subcommand("check", kCheckHelp);
  check_command->add_option("FILE", check.files, "capture files; - for standard input")->required();
  auto* index = check_command->add_option("--index", check.index,
                                          "read expectations from this file instead of INDEX.md");
  check_command->add_flag("--no-index", check.no_index, "use no index: every bad ICRC is a difference")
      ->excludes(index);
  check_command->add_flag("-v,--verbose", check.verbose, "print the opcode counts of each file");

  roci::pcap_tool::ShowOptions show;
  CLI::App* show_command = app.add_subcommand("show", kShowHelp);
  show_command->add_option("FILE", show.file, "capture file; - for standard input")->required();
  auto* json = show_command->add_flag("--json", show.json, "print one JSON object per line with all fields");
  show_command->add_flag("--payload", show.payload, "with --json: include the payload bytes")->needs(json);

  if (const auto done = roci::parse_command_line(app, "roci-pcap", argc, argv)) return *done;
  return check_command->parsed() ? run_check(check) : run_show(show);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return roci::checked_exit_status("roci-pcap", run(argc, argv), 2);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "roci-pcap: %s\n", error.what());
    return 2;
  }
}
