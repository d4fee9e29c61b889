#include <gtest/gtest.h>

#include "switch/config_text.hpp"

namespace roci {
namespace {

auto read(const std::string& text) { return test::read_switch_text(text); }
auto error_of(const std::string& text) { return test::switch_text_error(text); }

constexpr const char* kTwoPorts = "ports: [{name: a, rate: 10Gbps}, {name: b, rate: 100Gbps}]\n";

TEST(ClassConfig, queue_lengths_are_bytes_or_times_at_the_rate_of_each_port) {
  const auto config = read(std::string(kTwoPorts) +
                           "classes:\n"
                           "  - {class: 3, mark: {kmin: 20us, kmax: 80us, pmax: 0.1}, drop: {kmin: 150KiB}, "
                           "mark_at: dequeue, average: 0.5, weight: 4}\n"
                           "  - {class: 6, strict: true}\n");
  ASSERT_TRUE(config) << config.error().message;
  const ClassConfig& a = config->ports[0].classes[3];
  const ClassConfig& b = config->ports[1].classes[3];
  EXPECT_EQ(a.aqm.mark.kmin, Bytes{25'000});
  EXPECT_EQ(a.aqm.mark.kmax, Bytes{100'000});
  EXPECT_EQ(a.aqm.mark.pmax, 0.1);
  EXPECT_EQ(a.aqm.drop.kmin, 150_KiB);
  EXPECT_EQ(a.aqm.drop.kmax, 150_KiB) << "a step";
  EXPECT_EQ(a.aqm.drop.pmax, 1);
  EXPECT_EQ(a.aqm.mark_at, AqmConfig::MarkAt::kDequeue);
  EXPECT_EQ(a.aqm.weight, 0.5);
  EXPECT_EQ(a.weight, 4U);
  EXPECT_EQ(b.aqm.mark.kmin, Bytes{250'000});
  EXPECT_TRUE(config->ports[1].classes[6].strict);
  EXPECT_TRUE(config->ports[0].classes[0].aqm.mark.never());
}

TEST(ClassConfig, port_settings_override_switch_settings) {
  const auto config = read(
      "classes: [{class: 1, weight: 7, mark: {kmin: 1KiB}}]\n"
      "ports:\n"
      "  - {name: a, classes: [{class: 1, weight: 2}], pause_watchdog: {detect: 5ms, restore: 7ms}}\n"
      "  - {name: b}\n");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->ports[0].classes[1].weight, 2U);
  EXPECT_EQ(config->ports[0].classes[1].aqm.mark.kmin, 1_KiB) << "what it does not name stays";
  EXPECT_EQ(config->ports[0].watchdog.detect, 5ms);
  EXPECT_EQ(config->ports[0].watchdog.restore, 7ms);
  EXPECT_EQ(config->ports[1].classes[1].weight, 7U);
  EXPECT_EQ(config->ports[1].watchdog.detect, 200ms) << "the default";
}

TEST(ClassConfig, pause_watchdog_can_be_disabled) {
  const auto config = read("ports: [{name: a, pause_watchdog: {detect: never}}]\n");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->ports[0].watchdog.detect, kNever);
}

TEST(ClassConfig, reads_classifier_buffer_and_seed) {
  const auto config =
      read(std::string(kTwoPorts) +
           "classify: {trust: pcp, untagged: 2, dscp: [{dscp: 26, class: 3}], pcp: [{pcp: 1, class: 0}]}\n"
           "buffer: {size: 16MiB, alpha: 0.5}\n"
           "seed: 99\n");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->classifier.trust, ClassifierConfig::Trust::kPcp);
  EXPECT_EQ(config->classifier.untagged, 2);
  EXPECT_EQ(config->classifier.by_dscp[26], 3);
  EXPECT_EQ(config->classifier.by_dscp[27], 3) << "the class selector";
  EXPECT_EQ(config->classifier.by_pcp[1], 0);
  EXPECT_EQ(config->buffer.size, 16_MiB);
  EXPECT_EQ(config->buffer.alpha, 0.5);
  EXPECT_EQ(config->seed, 99U);
}

TEST(ClassConfig, invalid_lossless_classes_are_rejected) {
  const auto with = [](const std::string& more) {
    return error_of("classes: [{class: 3, " + more + "}]\nports: [{name: a, queue: 100KiB}]\n");
  };
  EXPECT_EQ(with("lossless: {xoff: 60KiB, xon: 50KiB, headroom: 400KiB}, mark: {kmin: 59KiB}"), "");
  EXPECT_NE(with("lossless: {xoff: 60KiB, xon: 50KiB, headroom: 1025GiB}")
                .find("class 3: xoff and headroom must be at most 1 TiB"),
            std::string::npos);
  EXPECT_NE(with("lossless: {xoff: 60KiB, xon: 60KiB, headroom: 1KiB}").find("must be below xoff"),
            std::string::npos);
  EXPECT_NE(with("lossless: {xoff: 60KiB, xon: 50KiB}").find("headroom"), std::string::npos);
}

TEST(ClassConfig, warns_of_a_class_that_pauses_before_it_marks) {
  const auto config = read(
      "classes: [{class: 3, lossless: {xoff: 60KiB, xon: 50KiB, headroom: 1KiB}, mark: {kmin: 60KiB}}]\n"
      "ports: [{name: a}, {name: b}]\n");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(warnings(*config),
            std::vector<std::string>{
                "switch 'switch': port 'a': class 3 pauses at 61440 bytes, before it marks at 61440 "
                "bytes; congestion control that reacts to marks requires kmin below xoff"});
  const auto other = read(
      "classes: [{class: 3, lossless: {xoff: 60KiB, xon: 50KiB, headroom: 1KiB}, mark: {kmin: 59KiB}}]\n"
      "ports: [{name: a}]\n");
  EXPECT_TRUE(warnings(*other).empty());
}

TEST(ClassConfig, warns_of_a_buffer_below_the_static_thresholds_of_all_ports) {
  const auto text = [](const std::string& size) {
    return "buffer: {size: " + size + "}\n" +
           "classes: [{class: 3, lossless: {xoff: 60KB, xon: 50KB, headroom: 40KB}}]\n"
           "ports: [{name: a}, {name: b}]\n";
  };
  const auto small = read(text("199KB"));
  ASSERT_TRUE(small) << small.error().message;
  EXPECT_EQ(
      warnings(*small),
      std::vector<std::string>{
          "switch 'switch': xoff and headroom of the lossless classes of all ports are 200000 bytes, more "
          "than the buffer's size of 199000 bytes; a full buffer drops frames of lossless classes"});
  EXPECT_TRUE(warnings(*read(text("200KB"))).empty());
}

TEST(ClassConfig, reads_and_validates_dynamic_thresholds_of_lossless_classes) {
  const auto text = [](const std::string& lossless, const std::string& buffer) {
    return buffer + "classes: [{class: 3, lossless: {" + lossless + "}}]\nports: [{name: a}, {name: b}]\n";
  };
  const auto config = read(text("alpha: 0.125, hysteresis: 3KB, headroom: 100KB", "buffer: {size: 4MiB}\n"));
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->ports[0].classes[3].lossless,
            (LosslessConfig{.headroom = Bytes{100'000}, .alpha = 0.125, .hysteresis = Bytes{3'000}}));
  EXPECT_NE(error_of(text("alpha: 0.125, headroom: 100KB", ""))
                .find("alpha of a lossless class requires buffer: size"),
            std::string::npos);
  EXPECT_NE(error_of(text("alpha: 0.125, headroom: 100KB", "buffer: {size: 200KB}\n"))
                .find("the headroom of the lossless classes of all ports is 200000 bytes, which exceeds the "
                      "size of 200000"),
            std::string::npos);
  EXPECT_NE(error_of(text("alpha: 0, headroom: 100KB", "buffer: {size: 4MiB}\n")).find("alpha"),
            std::string::npos);
  EXPECT_NE(error_of(text("alpha: 0.1, xoff: 1KB, headroom: 1KB", "buffer: {size: 4MiB}\n")).find("xoff"),
            std::string::npos);
}

TEST(ClassConfig, reads_and_validates_telemetry_of_switch_and_ports) {
  const auto config = read(
      "telemetry: {udp_port: 5201, switch_id: 9, domain: 3, full: true, hops: 5, when: interval, interval: "
      "10us, "
      "dscp: [26, 27]}\n"
      "ports: [{name: a, telemetry: edge}, {name: b}, {name: c, telemetry: sink}]\n");
  ASSERT_TRUE(config) << config.error().message;
  const TelemetryConfig& telemetry = config->telemetry;
  EXPECT_TRUE(telemetry.enabled && telemetry.full);
  EXPECT_EQ(telemetry.udp_port, 5201);
  EXPECT_EQ(telemetry.switch_id, 9U);
  EXPECT_EQ(telemetry.domain, 3);
  EXPECT_EQ(telemetry.hops, 5);
  EXPECT_EQ(telemetry.when, TelemetryConfig::When::kInterval);
  EXPECT_EQ(telemetry.interval, 10us);
  EXPECT_EQ(telemetry.dscp.count(), 2U);
  EXPECT_EQ(config->ports[0].telemetry, TelemetryRole::kEdge);
  EXPECT_EQ(config->ports[1].telemetry, TelemetryRole::kTransit);
  EXPECT_EQ(config->ports[2].telemetry, TelemetryRole::kSink);
  const auto error = [](const std::string& more) {
    return error_of("telemetry: {" + more + "}\nports: [{name: a}]\n");
  };
  EXPECT_NE(error("udp_port: 4791, switch_id: 1").find("UDP port 4791"), std::string::npos);
  EXPECT_NE(error("udp_port: 5201").find("switch_id"), std::string::npos);
  EXPECT_NE(error("udp_port: 5201, switch_id: 1048576").find("switch_id"), std::string::npos);
  EXPECT_NE(error("udp_port: 5201, switch_id: 1, when: interval").find("requires interval"),
            std::string::npos);
}

TEST(ClassConfig, warns_when_an_ldcp_class_is_shared) {
  const std::string curves = "classes: [{class: 3, mark: {kmin: 60KiB}, drop: {kmin: 30KiB}}]\n";
  const auto shared = read(kTwoPorts + curves);
  ASSERT_TRUE(shared) << shared.error().message;
  EXPECT_EQ(warnings(*shared),
            std::vector<std::string>{"switch 'switch': port 'a': class 3 has curves for ECN-capable and "
                                     "other packets, as LDCP requires, and 8 DSCPs share it; LDCP requires a "
                                     "separate class: classify: {other: 0, dscp: [{dscp: 26, class: 3}]}"});
  const auto alone = read(kTwoPorts + curves + "classify: {other: 0, dscp: [{dscp: 26, class: 3}]}\n");
  ASSERT_TRUE(alone) << alone.error().message;
  EXPECT_EQ(alone->classifier.by_dscp[26], 3);
  EXPECT_EQ(alone->classifier.by_dscp[24], 0);
  EXPECT_TRUE(warnings(*alone).empty());
  const auto untagged =
      read(kTwoPorts + curves + "classify: {other: 0, untagged: 3, dscp: [{dscp: 26, class: 3}]}\n");
  ASSERT_TRUE(untagged) << untagged.error().message;
  EXPECT_EQ(warnings(*untagged).size(), 1U);
  const auto wred = read(std::string(kTwoPorts) + "classes: [{class: 3, mark: {kmin: 60KiB}}]\n");
  ASSERT_TRUE(wred) << wred.error().message;
  EXPECT_TRUE(warnings(*wred).empty()) << "one curve is no LDCP";
}

TEST(ClassConfig, l3qcn_sets_notification_defaults_of_classes_5_and_7) {
  using Notify = ClassConfig::Notify;
  const auto config = read(std::string(kTwoPorts) +
                           "l3qcn: true\n"
                           "cnm_port: 4999\n"
                           "interfaces: [{name: i, addresses: [10.0.0.1/24]}]\n"
                           "classes: [{class: 7, notify: none}, {class: 5, qcn: {qeq: 1MiB}}]\n");
  ASSERT_TRUE(config) << config.error().message;
  const ClassConfigs& classes = config->ports[1].classes;
  EXPECT_EQ(classes[5].notify, Notify::kQcn);
  EXPECT_TRUE(classes[5].qcn.l3);
  EXPECT_EQ(classes[5].qcn.qeq, 1_MiB);
  EXPECT_EQ(classes[7].notify, Notify::kNone) << "said otherwise";
  EXPECT_EQ(classes[6].notify, Notify::kNone);
  EXPECT_EQ(read(std::string(kTwoPorts) +
                 "cnm_port: 1\ninterfaces: [{name: i, addresses: [10.0.0.1/24]}]\nl3qcn: true\n")
                ->ports[0]
                .classes[7]
                .notify,
            Notify::kCnp);
  EXPECT_NE(error_of(std::string(kTwoPorts) + "l3qcn: true\n").find("l3 requires cnm_port"),
            std::string::npos);
}

TEST(ClassConfig, reads_and_validates_shapers) {
  const std::string shaper =
      std::string(kTwoPorts) + "cnm_port: 4999\nshapers: [{prefix: 10.2.0.0/16, class: 5, ";
  const auto config =
      read(shaper +
           "rate: 10Gbps, queue: 2MiB, queue_frames: 100, mark: {kmin: 20us}, qcn: {qeq: 40us}, "
           "reaction: {gd: 0.01, time_reset: 1ms}}]\n");
  ASSERT_TRUE(config) << config.error().message;
  const SwitchShaperConfig& read_shaper = config->shapers.at(0);
  EXPECT_EQ(read_shaper.prefix.to_string(), "10.2.0.0/16");
  EXPECT_EQ(read_shaper.traffic_class, 5);
  EXPECT_EQ(read_shaper.queue, 2_MiB);
  EXPECT_EQ(read_shaper.queue_frames, 100U);
  EXPECT_EQ(read_shaper.aqm.mark.kmin, Bytes{25'000});
  ASSERT_TRUE(read_shaper.qcn);
  EXPECT_EQ(read_shaper.qcn->qeq, Bytes{50'000});
  EXPECT_EQ(read_shaper.reaction.gd, 0.01);
  EXPECT_EQ(read_shaper.reaction.time_reset, 1ms);
  EXPECT_FALSE(read(shaper + "rate: 10Gbps}]\n")->shapers[0].qcn) << "hosts are not told by default";
  EXPECT_EQ(error_of(shaper + "rate: 10Gbps, weight: 3}]\n"),
            "s.yaml:3: shapers[0].weight is an unknown key (allowed: prefix, class, rate, queue, "
            "queue_frames, mark, "
            "drop, mark_at, average, qcn, reaction)");
  EXPECT_NE(error_of(std::string(kTwoPorts) + "cnm_keys: 00\n").find("did you mean 'cnm_key'?"),
            std::string::npos);
}

TEST(ClassConfig, invalid_settings_are_rejected_with_the_reason) {
  const auto with = [](const std::string& more) {
    return error_of("classes: [{class: 3, " + more + "}]\nports: [{name: a}]\n");
  };
  EXPECT_NE(with("mark: {kmin: 20us}").find("kmin is a time, which requires a rate"), std::string::npos);
  EXPECT_NE(with("mark: {kmin: 20 frames}").find("'20 frames' is not a queue length"), std::string::npos);
  EXPECT_NE(with("mark: {kmin: 20KiB, kmax: 10KiB}").find("must not be below kmin"), std::string::npos);
  EXPECT_NE(with("mark: {kmin: 20KiB, pmax: 1.5}").find("pmax"), std::string::npos);
  EXPECT_NE(with("mark: {kmin: 20KiB, Pmax: 0.5}").find("Pmax"), std::string::npos);
  EXPECT_NE(with("strict: true, weight: 3").find("not allowed for a strict class"), std::string::npos);
  EXPECT_NE(with("weight: 0").find("weight"), std::string::npos);
  EXPECT_NE(with("average: 0").find("average"), std::string::npos);
  EXPECT_NE(error_of("classes: [{class: 8}]\nports: [{name: a}]\n").find("class"), std::string::npos);
  EXPECT_NE(error_of("ports: [{name: a}]\nclassify: {dscp: [{dscp: 64, class: 0}]}\n").find("dscp"),
            std::string::npos);
}

}  // namespace
}  // namespace roci
