"""Tests of the per-packet cost breakdown: output of perf, readelf and addr2line, and the stage of a code address."""

import pathlib
import unittest

import stage_table
import stages
from harness import programs
from harness.case import Output, Unreadable
from harness.groups.stages import GROUP
from stage_table import of_frames, of_library

SAMPLES = pathlib.Path(__file__).parent / "samples"
PROGRAM = "/home/user/roci/build/release/bin/roci-perf"


def sample(name):
    return (SAMPLES / name).read_text()


class Parsing(unittest.TestCase):
    def setUp(self):
        self.process, self.segments, self.samples = stages.read_script(sample("perf_script.txt"), PROGRAM)
        self.loads = stages.read_loads(sample("readelf_segments.txt"))
        self.frames = stages.read_frames(sample("addr2line.txt"))

    def test_reads_every_line_of_perf_script(self):
        text = sample("perf_script.txt")
        self.assertEqual(len(self.samples) + text.count("PERF_RECORD_"), len(text.splitlines()))
        self.assertEqual(self.process, 10153)
        self.assertEqual(self.segments, [(0x55a656d29000, 0x149000, 0xf000)])
        self.assertEqual(self.samples[0], (10153, 41077.451016, 0x7fd4cce664d8, "strcmp",
                                           "/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"))

    def test_accepts_symbols_with_blanks_and_parentheses(self):
        line = "  7 1.5:  abc roci::(anonymous namespace)::sum(int) const (/usr/lib/libx.so.1)"
        found = stages.SAMPLE.match(line)
        self.assertEqual(found.groups()[3:], ("roci::(anonymous namespace)::sum(int) const", "/usr/lib/libx.so.1"))

    def test_maps_program_addresses_to_frames(self):
        own = [one for one in self.samples if one.binary == PROGRAM]
        self.assertGreater(len(own), 30)
        for one in own:
            place = stages.in_file(one.address, self.segments, self.loads)
            self.assertIn(place, self.frames)
            self.assertNotEqual(self.frames[place], [])

    def test_converts_file_offset_to_virtual_address(self):
        segments, loads = [stages.Segment(0x7000, 0x1000, 0x2000)], [(0x2000, 0x12000, 0x1000)]
        self.assertEqual(stages.in_file(0x7010, segments, loads), 0x12010)
        self.assertIsNone(stages.in_file(0x8000, segments, loads))

    def test_returns_inlined_frames_innermost_first_without_line_numbers(self):
        text = ("0x0000000000000010\ninner()\n/x/lib/wire/icrc/icrc.cpp:12 (discriminator 3)\n"
                "outer()\n/x/lib/wire/roce/frame.cpp:?\n")
        self.assertEqual(stages.read_frames(text),
                         {0x10: [("inner()", "/x/lib/wire/icrc/icrc.cpp"), ("outer()", "/x/lib/wire/roce/frame.cpp")]})

    def test_captured_samples_cover_every_stage(self):
        places = {one.address: stages.in_file(one.address, self.segments, self.loads) for one in self.samples}
        found = {stages.stage_of(one, PROGRAM, places, self.frames) for one in self.samples}
        self.assertEqual(set(stage_table.STAGES) - found, set())

    def test_rejects_output_of_other_programs(self):
        for text in ("", "no such thing", sample("addr2line.txt")):
            with self.assertRaises(stages.Unmeasured):
                stages.read_script(text, PROGRAM)
        with self.assertRaises(stages.Unmeasured):
            stages.read_frames("roci::f()\nlib/x.cpp:1\n")
        for text in ("", "{}", "null", "[]", '{"counters": {}}'):
            with self.assertRaises(stages.Unmeasured):
                stages.packets_sent(text)
        self.assertEqual(stages.packets_sent(sample("roci_perf_bw.json")), 761860)


# Code locations (functions with files, innermost first), and the stage that their time belongs to.
PLACES = (
    ((("roci::crc_piece(long, unsigned)", "/home/user/roci/lib/wire/icrc/crc_sum.hpp"),
      ("roci::RoceWriter::finish()", "lib/wire/roce/roce_writer.cpp")), stage_table.ICRC),
    ((("_mm_or_si128", "/usr/lib/gcc/x86_64-linux-gnu/12/include/emmintrin.h"),
      ("roci::RoceWriter::begin(unsigned char*)", "lib/wire/roce/roce_writer.cpp")), stage_table.HEADERS),
    ((("roci::RoceWriter::copy_payload(roci::RoceFrame const&)", "lib/wire/roce/roce_writer.cpp"),),
     stage_table.COPYING),
    ((("roci::copy_and_sum(void*, void const*)", "lib/wire/icrc/copy_crc.cpp"),), stage_table.ICRC),
    ((("crc32_gzip_refl_by16_10", "??"),), stage_table.ICRC),
    ((("roci::IdTable<roci::MemoryEntry>::find(unsigned)", "lib/base/containers/id_table.hpp"),
      ("roci::MemoryTable::check(unsigned)", "lib/memory/memory_table.cpp"),
      ("roci::gather()", "lib/transport/messages/scatter.hpp")), stage_table.CHECKS),
    # The requester reads a work queue, post_send() writes it.
    ((("roci::WorkRing<roci::SendWqe>::at(unsigned)", "lib/transport/queues/work_queue.hpp"),
      ("roci::Requester::send_at()", "lib/transport/rc/requester.cpp")), stage_table.REQUESTER),
    ((("roci::WorkRing<roci::SendWqe>::next_free()", "lib/transport/queues/work_queue.hpp"),
      ("roci::QueuePairCore::post_send(ibv_send_wr*)", "lib/transport/queue_pair/queue_pair_core.cpp")),
     stage_table.POSTING),
    ((("roci::Counters::add(roci::Counter)", "lib/telemetry/counters.hpp"),
      ("roci::TransmitStage::send(rte_mbuf*)", "lib/engine/transmit/transmit_stage.cpp")), stage_table.ENGINE),
    ((("roci::Worker::poll(roci::Nanos)", "lib/engine/worker/worker.cpp"),), stage_table.WAITING),
    ((("roci::TimingWheel::advance()", "lib/base/time/timing_wheel.hpp"),
      ("roci::Worker::poll(roci::Nanos)", "lib/engine/worker/worker.cpp")), stage_table.TIMERS),
    ((("rte_mempool_get_priv", "/usr/include/dpdk/rte_mempool.h"),
      ("roci::TxBuffers::take()", "lib/engine/transmit/tx_buffers.hpp")), stage_table.BUFFERS),
    ((("__rte_raw_cksum", "/usr/include/dpdk/rte_ip.h"),
      ("roci::parse_ipv4()", "lib/wire/roce/frame.cpp")), stage_table.PARSING),
    ((("rte_eth_rx_burst", "/usr/include/dpdk/rte_ethdev.h"),), stage_table.PORT),
    ((("roci::Responder::take()", "/a/build/release/../../lib/transport/rc/responder.cpp"),), stage_table.RESPONDER),
    ((("roci::Requester::complete_oldest()", "lib/transport/rc/requester_receive.cpp"),), stage_table.COMPLETIONS),
    ((("roci::perf::Traffic::post()", "/a/build/release/../../apps/roci-perf/measurement/traffic.cpp"),),
     stage_table.APPLICATION),
    ((("roci::perf::Control::round()", "/a/build/release/../../apps/roci-perf/connection/control.cpp"),),
     stage_table.WAITING),
    ((("roci::monotonic_now()", "lib/port/realtime_runner.cpp"), ("roci::Host::drive()", "lib/device/host/host.cpp")),
     stage_table.CLOCK),
    ((("roci::TickClock::now() const", "lib/base/time/tick_clock.hpp"),
      ("roci::RealtimeRunner::run()", "lib/port/realtime_runner.cpp")), stage_table.CLOCK),
    ((("nlohmann::destroy()", "/usr/include/nlohmann/json.hpp"),), stage_table.REST),
    ((("??", "??"),), stage_table.REST),
    ((), stage_table.REST),
)
LIBRARIES = {
    ("[vdso]", "__vdso_clock_gettime"): stage_table.CLOCK,
    ("/usr/lib/x86_64-linux-gnu/libc.so.6", "__memmove_avx512_unaligned_erms"): stage_table.COPYING,
    ("/usr/lib/x86_64-linux-gnu/libc.so.6", "__sched_yield"): stage_table.WAITING,
    ("/usr/lib/x86_64-linux-gnu/libc.so.6", "clock_gettime@@GLIBC_2.17"): stage_table.CLOCK,
    ("/usr/lib/x86_64-linux-gnu/libc.so.6", "malloc"): stage_table.REST,
    ("/usr/lib/x86_64-linux-gnu/dpdk/pmds-23.0/librte_net_ring.so.23.0", "[unknown]"): stage_table.PORT,
    ("/usr/lib/x86_64-linux-gnu/dpdk/pmds-23.0/librte_mempool_ring.so.23.0", "[unknown]"): stage_table.BUFFERS,
    ("/usr/lib/x86_64-linux-gnu/librte_mbuf.so.23.0", "rte_pktmbuf_free_bulk"): stage_table.BUFFERS,
    ("/usr/lib/x86_64-linux-gnu/libisal.so.2", "crc32_gzip_refl_by8"): stage_table.ICRC,
    ("[kernel.kallsyms]", "do_sched_yield"): stage_table.KERNEL,
    ("/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", "strcmp"): stage_table.REST,
}


class StageMapping(unittest.TestCase):
    def test_first_frame_with_rule_determines_stage(self):
        for frames, stage in PLACES:
            with self.subTest(frames[:1]):
                self.assertEqual(of_frames(frames), stage)

    def test_maps_libraries_by_name_and_symbol(self):
        for (library, symbol), stage in LIBRARIES.items():
            with self.subTest(library, symbol=symbol):
                self.assertEqual(of_library(library, symbol), stage)

    def test_every_rule_refers_to_listed_stage(self):
        for stage, _ in stage_table.SOURCES + stage_table.LIBRARIES:
            self.assertIn(stage, stage_table.STAGES)

    def test_ignores_build_folder_of_source_paths(self):
        for path in ("lib/wire/icrc/icrc.cpp", "/a/b/lib/wire/icrc/icrc.cpp",
                     "/a/build/release/../../lib/wire/icrc/icrc.cpp", "/var/lib/ci/roci/lib/wire/icrc/icrc.cpp",
                     "/usr/src/roci/lib/wire/icrc/icrc.cpp"):
            self.assertEqual(stage_table.within_the_tree(path), "lib/wire/icrc/icrc.cpp")
        intrinsics = "/usr/lib/gcc/x86_64-linux-gnu/12/include/emmintrin.h"
        self.assertEqual(stage_table.within_the_tree(intrinsics), intrinsics)


def at(thread, stage, count, since=1.0):
    """Returns `count` samples of a thread in one stage, 1 ms apart."""
    return [(stages.Sample(thread, since + number / 1000, 0, "", ""), stage) for number in range(count)]


class StageTimes(unittest.TestCase):
    def test_computes_cpu_time_per_packet_and_stage(self):
        samples = (at(1, stage_table.REQUESTER, 800) + at(1, stage_table.ICRC, 200) + at(2, stage_table.RESPONDER, 600)
                   + at(3, stage_table.WAITING, 10))
        table = stages.add_up(samples, 1, 1000)
        self.assertEqual(table["requester"]["all"], 1000 * stages.PERIOD / 1000)
        self.assertEqual(table["requester"]["ICRC"], 200 * stages.PERIOD / 1000)
        self.assertEqual(table["responder"]["responder"], 600 * stages.PERIOD / 1000)
        self.assertEqual(table["responder"]["waiting"], 0)  # This sample belongs to a helper thread.

    def test_ignores_samples_before_first_and_after_last_packet(self):
        samples = (at(1, stage_table.REST, 900, since=0) + at(1, stage_table.HEADERS, 500) + at(2, stage_table.PARSING, 500)
                   + at(1, stage_table.KERNEL, 100, since=3))
        table = stages.add_up(samples, 1, 1000)
        self.assertEqual(table["requester"]["all"], 500 * stages.PERIOD / 1000)

    def test_rejects_large_share_without_stage(self):
        def with_rest(count):
            samples = at(1, stage_table.REQUESTER, 1000) + at(2, stage_table.RESPONDER, 1000 - count)
            return stages.add_up(samples + at(2, stage_table.REST, count), 1, 1000)
        self.assertEqual(with_rest(150)["responder"]["rest"], 150 * stages.PERIOD / 1000)
        with self.assertRaisesRegex(stages.Unmeasured, "no stage is known for 16% of the responder"):
            with_rest(160)

    def test_rejects_too_few_samples_or_packets(self):
        enough, few = (at(1, stage_table.REQUESTER, count) for count in (1000, 100))
        for samples, packets in ((enough, 1000), (few + at(2, stage_table.RESPONDER, 1000), 1000), ([], 1000),
                                 (at(2, stage_table.RESPONDER, 1000), 1000),
                                 (enough + at(2, stage_table.RESPONDER, 1000), 0)):
            with self.assertRaises(stages.Unmeasured):
                stages.add_up(samples, 1, packets)


class StageTable(unittest.TestCase):
    def test_harness_reads_every_printed_line(self):
        samples = at(1, stage_table.REQUESTER, 1000) + at(2, stage_table.RESPONDER, 1000)
        text = "\n".join(stages.lines(stages.add_up(samples, 1, 4))) + "\n"
        for case in GROUP.cases:
            for figure in case.figures:
                self.assertGreaterEqual(figure.take(Output(text)), 0)
        self.assertEqual(programs.stage_row("requester", "requester")(Output(text)), 62_500_000)
        with self.assertRaises(Unreadable):
            programs.stage_row("requester", "thinking")(Output(text))


if __name__ == "__main__":
    unittest.main()
