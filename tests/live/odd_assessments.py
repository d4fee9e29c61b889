"""Assessments of differences: which stack conforms to the IBTA specification, and why. Keys are the full names of
entries of odd_table.py."""

KERNELS = ("6.12", "6.1")
ROCINANTE, LINUX, BOTH = "Rocinante", "Linux", "both"


class Assessment:
    """Assessment of a difference. If the clause is None, that of the entry applies."""

    def __init__(self, right, why, clause=None, kernels=KERNELS):
        self.right, self.why, self.clause, self.kernels = right, why, clause, kernels


class Crash(Assessment):
    """Assessment of packets that crash a kernel. They are not sent to it."""

    def __init__(self, kernels, why):
        super().__init__(ROCINANTE, why, kernels=kernels)


class Habit:
    """Recurring difference. It is listed once and removed from the differences of each packet."""

    def __init__(self, name, clause, right, why, aspect, applies):
        self.name, self.clause, self.right, self.why, self.aspect, self.applies = name, clause, right, why, aspect, applies

    def explains(self, found, linux, rocinante):
        if self.aspect not in found or not self.applies(linux, rocinante):
            return False
        del found[self.aspect]
        return True


def without(names, text):
    return ", ".join(part for part in text.split(", ") if part not in names)


HABITS = [
    Habit("Rocinante raises QP_REQ_ERR or QP_ACCESS_ERR when it refuses a request; Linux raises nothing", "11.6.3.2", ROCINANTE,
          "they are the affiliated asynchronous errors of a responder", "events",
          lambda linux, rocinante: linux["events"] == without(("QP_REQ_ERR", "QP_ACCESS_ERR"), rocinante["events"])),
    Habit("Rocinante notifies a completion queue that is armed for solicited completions of a receive that completes with an error; "
          "Linux does not", "11.4.2.2", ROCINANTE, "a completion with an error counts as solicited", "solicited event",
          lambda linux, rocinante: not linux["solicited event"] and any("_ERR" in text for aspect, text in rocinante.items() if aspect.startswith("completions"))),
    Habit("Linux raises SQ_DRAINED in SQD although modify_qp did not request the event", "11.2.5.2", ROCINANTE,
          "the event must be enabled by a modifier of modify_qp", "events",
          lambda linux, rocinante: without(("SQ_DRAINED",), linux["events"]) == rocinante["events"]),
]

BAD_RESPONSE = "a response that does not fit the request is a Bad Response Error (11.6.2)"
HANGS = f"{BAD_RESPONSE}. Linux neither completes the READ nor repeats the request before the timeout"
PARTIAL = "both stacks complete the current receive request with an error. Rocinante reports the reason with the event QP_REQ_ERR"
STRICT_PSN = "no requester sends such a duplicate, so a responder may drop it"
OLD_MSN = "a duplicate does not change the MSN. Linux sends the current MSN, Rocinante that of the first response"
SEQUENCE_OF_READ = "the responder may start the response to a repeated READ with FIRST or MIDDLE, as long as payload and PSN stay the same"
EARLY = "both stacks detect the wrong length. Rocinante detects it in the packet that no LAST can follow, Linux one packet later"
EXECUTED = "a wrong length is an invalid request. Linux 6.1 executes the packet"
MEANS_NOTHING = "an RC responder does not send this syndrome. The packet acknowledges nothing and does not fail the request"

GHOST = "no request has that PSN, so the packet is dropped. Linux completes the request with success"

NO_FLUSH = "the operation is optional. A device that does not support it drops the opcode as a reserved one, and so do both kernels"

ASSESSMENTS = {
    "RC responder: WRITE LAST within a SEND": [Assessment(BOTH, PARTIAL, "9.9.3")],
    "RC responder: ADD within a SEND": [Assessment(BOTH, PARTIAL, "9.9.3")],
    "RC responder: opcode 1c (FLUSH) of no placement type": [Assessment(BOTH, NO_FLUSH)],
    "RC responder: opcode 1c (FLUSH), not permitted": [Assessment(BOTH, NO_FLUSH)],
    "RC responder: opcode 1d (ATOMIC WRITE)": [
        Assessment(BOTH, "the duplicate is acknowledged with the PSN before that of the atomic write, whose response is a READ response", kernels=("6.12",)),
        Assessment(BOTH, "the operation is optional. A device that does not support it drops the opcode as a reserved one", kernels=("6.1",))],
    "RC responder: WRITE in RTR": [Assessment(ROCINANTE, "the first packet in RTR raises Communication Established", "11.6.3.1")],
    "RC responder: duplicate before anything was executed": [
        Assessment(ROCINANTE, "Linux acknowledges PSN ffffff, which is not the PSN before the expected one")],
    "RC responder: duplicate ADD after a later WRITE": [Assessment(BOTH, OLD_MSN, "9.7.7.1")],
    "RC responder: SWAP at the PSN of an ADD": [Assessment(BOTH, STRICT_PSN)],
    "RC responder: WRITE at the PSN of a READ": [
        Assessment(ROCINANTE, "the ACK of a duplicate has the PSN before the READ. Linux sends ffffff until it has executed "
                             "a SEND or WRITE")],
    "RC responder: duplicate READ, from its second packet": [Assessment(BOTH, SEQUENCE_OF_READ)],
    "RC responder: duplicate READ, last packet alone": [Assessment(BOTH, SEQUENCE_OF_READ)],
    "RC responder: duplicate READ, ends within a packet": [
        Assessment(ROCINANTE, "a PSN must carry the same payload as the first time. Linux sends 1000 bytes instead of 1024")],
    "RC responder: duplicate READ, address not advanced with the PSN": [
        Assessment(ROCINANTE, "a PSN must carry the same payload as the first time. Linux sends the data of another address")],
    "RC responder: duplicate READ of 0 bytes in place of 2500": [
        Assessment(ROCINANTE, "a PSN must carry the same payload as the first time. Linux sends no payload instead of 1024 bytes")],
    "RC responder: duplicate READ after a WRITE to the same memory": [Assessment(BOTH, OLD_MSN, "9.7.7.1")],
    "RC responder: ADD, misaligned and over the end of the region": [
        Assessment(BOTH, "the packet has two errors, and the order of the checks is not specified", "9.7.4.1")],
    "RC responder: SEND with Invalidate of an unknown key": [
        Assessment(ROCINANTE, "Linux acknowledges the request and then fails it, so the requester completes with success")],
    "RC responder: SEND with Invalidate of a region": [
        Assessment(ROCINANTE, "Linux acknowledges the request and then fails it, so the requester completes with success")],
    "RC responder: WRITE ONLY, RETH of 0 bytes with payload": [
        Assessment(ROCINANTE, "a wrong length is an invalid request; the key was not wrong", kernels=("6.12",)),
        Crash(("6.1",), "the kernel dereferences a null pointer: rxe_mr_copy() accesses the region of a request whose RETH length is 0")],
    "RC responder: WRITE MIDDLE that ends the announced bytes": [Assessment(BOTH, EARLY)],
    "RC responder: WRITE FIRST that announces a single packet": [Assessment(BOTH, EARLY)],
    "RC responder: WRITE LAST without payload": [
        Assessment(BOTH, EARLY, kernels=("6.12",)), Assessment(ROCINANTE, EXECUTED, kernels=("6.1",))],
    "RC responder: WRITE FIRST of 2^31 + 1 bytes": [
        Assessment(ROCINANTE, "a length error is an invalid request", kernels=("6.1",))],
    "RC responder: READ of 2^31 + 1 bytes": [Assessment(ROCINANTE, "a length error is an invalid request", kernels=("6.1",))],
    "RC responder: SEND ONLY longer than the path MTU": [Assessment(BOTH, PARTIAL, "9.9.3", ("6.12",)), Assessment(ROCINANTE, EXECUTED, kernels=("6.1",))],
    "RC responder: SEND ONLY longer than a path MTU of 256": [
        Assessment(BOTH, PARTIAL, "9.9.3", ("6.12",)), Assessment(ROCINANTE, EXECUTED, kernels=("6.1",))],
    "RC responder: SEND FIRST without payload": [
        Assessment(BOTH, PARTIAL, "9.9.3", ("6.12",)), Assessment(ROCINANTE, EXECUTED, kernels=("6.1",))],
    "RC responder: SEND LAST without payload": [
        Assessment(BOTH, PARTIAL, "9.9.3", ("6.12",)),
        Assessment(ROCINANTE, EXECUTED, kernels=("6.1",))],
    "RC responder: SEND LAST longer than the path MTU": [
        Assessment(BOTH, PARTIAL, "9.9.3", ("6.12",)), Assessment(ROCINANTE, EXECUTED, kernels=("6.1",))],
    "RC responder: SEND FIRST with a pad count": [
        Assessment(BOTH, PARTIAL, "9.9.3", ("6.12",)), Assessment(ROCINANTE, EXECUTED, kernels=("6.1",))],
    "RC responder: READ with payload": [Assessment(ROCINANTE, "a READ request has no payload; a wrong length is an invalid request", "9.7.4.1.6")],
    "RC responder: ADD with payload": [Assessment(ROCINANTE, "an atomic request has no payload; a wrong length is an invalid request", "9.7.4.1.6")],
    "RC responder: packets after an RNR NAK": [
        Assessment(ROCINANTE, "packets after a refused one are dropped without a response; the RNR NAK has reported the PSN")],
    "RC responder: SEND longer than the receive buffer": [
        Assessment(ROCINANTE, "a length error is an invalid request. The receive completes with Local Length Error", "9.9.3")],
    "RC responder: SEND whose second packet does not fit": [
        Assessment(ROCINANTE, "a length error is an invalid request. The receive completes with Local Length Error", "9.9.3")],
    "headers: IPv4 options": [
        Assessment(BOTH, "the annex does not specify IPv4 options. Linux computes the ICRC over the first 20 bytes of the header only, and drops the packet")],
    "headers: CE": [Assessment(BOTH, "congestion notification is optional. Rocinante sends a CNP and sets BECN in the ACK; Linux "
                                    "does not support it", "A17.9.3")],
    "UC responder: MIDDLE is lost": [
        Assessment(ROCINANTE, "a lost packet ends its message, and the next FIRST or ONLY starts a new one. Linux also drops the new one")],
    "UC responder: SEND LAST is lost, then SEND ONLY": [
        Assessment(ROCINANTE, "a lost packet ends its message, and the next FIRST or ONLY starts a new one. Linux also drops the new one")],
    "UC responder: SEND FIRST within a SEND, PSN in order": [
        Assessment(ROCINANTE, "a FIRST starts a message, and the earlier message without LAST is dropped. Linux drops both")],
    "UC responder: SEND LAST within a WRITE": [
        Assessment(ROCINANTE, "a packet out of sequence ends its message, and the next FIRST or ONLY starts a new one. Linux also drops the new one")],
    "UC responder: SEND longer than the receive buffer": [
        Assessment(ROCINANTE, "class D error: the message is dropped, and the receive request remains for the next one. Linux fails the queue pair")],
    "UC responder: SEND ONLY longer than the path MTU": [Assessment(ROCINANTE, "a packet with a wrong length is dropped", kernels=("6.1",))],
    "UC responder: SEND FIRST shorter than the path MTU": [Assessment(ROCINANTE, "a packet with a wrong length is dropped", kernels=("6.1",))],
    "UD receiver: 13 bytes with pad count 0": [
        Assessment(ROCINANTE, "payload and pad must be a multiple of 4 bytes. Linux delivers the packet")],
    "UD receiver: receive buffer too small": [
        Assessment(ROCINANTE, "class D error: the datagram is dropped, and the receive request remains for the next one. Linux 6.1 fails the queue pair",
                  kernels=("6.1",))],
    "UD receiver: receive buffer too small for the network header": [
        Assessment(ROCINANTE, "class D error: the datagram is dropped, and the receive request remains for the next one. Linux 6.1 fails the queue pair",
                  kernels=("6.1",))],
    "RC requester: no response, retry count 1, timeout of 134 ms": [
        Assessment(BOTH, "the number of packets retransmitted after a timeout is not specified. Linux retransmits all, Rocinante the oldest")],
    "RC requester: ACK of a PSN that was never sent": [Assessment(ROCINANTE, GHOST)],
    "RC requester: ACK of the next PSN to be sent": [Assessment(ROCINANTE, GHOST)],
    "RC requester: ACK 2^22 ahead": [Assessment(ROCINANTE, GHOST)],
    "RC requester: NAK sequence error of the next PSN to be sent": [Assessment(ROCINANTE, GHOST)],
    "RC requester: NAK sequence error of a PSN that was never sent": [Assessment(ROCINANTE, GHOST)],
    "RC requester: NAK remote access error of a PSN that was never sent": [Assessment(ROCINANTE, GHOST)],
    "RC requester: RNR NAK of a PSN that was never sent": [Assessment(ROCINANTE, GHOST)],
    "RC requester: NAK sequence error twice": [
        Assessment(BOTH, "Rocinante retransmits again, since the second NAK arrived more than a round trip later. Linux retransmits only once "
                        "before the next ACK",
                  "9.7.6.1")],
    "RC requester: NAK invalid RD request": [Assessment(ROCINANTE, MEANS_NOTHING)],
    "RC requester: NAK of reserved code 5": [Assessment(ROCINANTE, MEANS_NOTHING)],
    "RC requester: NAK of reserved code 31": [Assessment(ROCINANTE, MEANS_NOTHING)],
    "RC requester: syndrome of the reserved kind (40)": [
        Assessment(ROCINANTE, f"{MEANS_NOTHING}. Linux completes the first request with success, and fails the queue pair")],
    "RC requester: syndrome with the reserved upper bit (9f)": [
        Assessment(ROCINANTE, "a reserved bit is ignored. Linux completes the request with success, and fails the queue pair")],
    "RC requester: syndrome e1": [
        Assessment(ROCINANTE, "a reserved bit is ignored. Linux completes the refused request with success, and fails the queue pair")],
    "RC requester: RNR NAK within a message": [
        Assessment(ROCINANTE, "a NAK acknowledges the packets before its PSN. Linux retransmits them", "9.7.5.1.2")],
    "RC requester: request posted in SQD": [
        Assessment(ROCINANTE, "a request posted in SQD starts with the transition to RTS. Linux waits for another event, on 6.1 without limit")],
    "RC requester: ACK at the PSN of a READ": [
        Assessment(ROCINANTE, "an ACK without data shows that the response was lost. Linux completes the READ with success and without data")],
    "RC requester: ACK of a later WRITE in place of a READ's response": [
        Assessment(BOTH, "an ACK after a READ shows that the response to the READ was lost. Linux also retransmits the WRITE, and waits for its ACK")],
    "RC requester: ACK to an ADD": [
        Assessment(ROCINANTE, "an ACK without data shows that the response was lost. Linux completes the ADD with success and without data")],
    "RC requester: READ ONLY in place of FIRST": [Assessment(ROCINANTE, HANGS)],
    "RC requester: READ FIRST in place of ONLY": [Assessment(ROCINANTE, f"{BAD_RESPONSE}. Linux reports a Local Protection Error")],
    "RC requester: READ LAST in place of FIRST": [
        Assessment(ROCINANTE, f"{BAD_RESPONSE}. Linux completes the READ with success, and fails the queue pair")],
    "RC requester: READ MIDDLE in place of FIRST": [
        Assessment(ROCINANTE, f"{BAD_RESPONSE}. Linux completes the READ with success, and fails the queue pair")],
    "RC requester: READ FIRST in place of MIDDLE": [
        Assessment(BOTH, "FIRST starts the response to a repeated request, so Rocinante accepts it. Linux completes the READ with success, and "
                        "fails the queue pair")],
    "RC requester: READ LAST in place of MIDDLE": [Assessment(ROCINANTE, HANGS)],
    "RC requester: READ MIDDLE in place of LAST": [Assessment(ROCINANTE, f"{BAD_RESPONSE}. Linux reports a Local Protection Error")],
    "RC requester: READ ONLY longer than requested": [Assessment(ROCINANTE, f"{BAD_RESPONSE}. Linux reports a Local Protection Error")],
    "RC requester: READ ONLY shorter than requested": [Assessment(ROCINANTE, HANGS)],
    "RC requester: READ ONLY without payload": [Assessment(ROCINANTE, HANGS)],
    "RC requester: READ FIRST shorter than the path MTU": [Assessment(ROCINANTE, HANGS)],
    "RC requester: READ LAST longer than requested": [Assessment(ROCINANTE, f"{BAD_RESPONSE}. Linux reports a Local Protection Error")],
    "RC requester: READ LAST shorter than requested": [Assessment(ROCINANTE, HANGS)],
    "RC requester: READ response with a wrong pad count": [Assessment(ROCINANTE, HANGS)],
    "RC requester: READ response with the syndrome of a NAK": [
        Assessment(ROCINANTE, f"{BAD_RESPONSE}. Linux completes the READ with success, and fails the queue pair")],
    "RC requester: READ response with the syndrome of an RNR NAK": [
        Assessment(ROCINANTE, f"{BAD_RESPONSE}. Linux completes the READ with success, and fails the queue pair")],
    "RC requester: READ response missing, LAST arrives": [
        Assessment(BOTH, "the gap shows the loss. Rocinante requests the rest at once, Linux after the timeout. This test sends the rest to both, "
                        "although Linux has not requested it")],
    "RC requester: READ response missing, response of the next READ arrives": [
        Assessment(BOTH, "the gap shows the loss. Linux repeats both READs at once. Rocinante repeats the second after the response to the first")],
    "RC requester: READ response beyond the request": [
        Assessment(ROCINANTE, "no request has that PSN, so the response shows no loss. Linux repeats the READ")],
    "RC requester: READ response to an ADD": [Assessment(ROCINANTE, f"{BAD_RESPONSE}. Linux reports a Fatal Error")],
    "RC requester: READ response to a WRITE": [Assessment(ROCINANTE, f"{BAD_RESPONSE}. Linux reports a Fatal Error")],
    "RC requester: ATOMIC ACK to a WRITE": [
        Assessment(ROCINANTE, f"{BAD_RESPONSE}. Linux completes the WRITE with success, and fails the queue pair")],
    "RC requester: ATOMIC ACK to a READ": [
        Assessment(ROCINANTE, f"{BAD_RESPONSE}. Linux completes the READ with success, and fails the queue pair")],
    "RC requester: ATOMIC ACK with the syndrome of a NAK": [
        Assessment(ROCINANTE, f"{BAD_RESPONSE}. Linux completes the ADD with success, and fails the queue pair")],
    "RC requester: NAK remote access error within a READ": [
        Assessment(ROCINANTE, "the NAK refuses the READ. Linux 6.1 completes it with success, and fails the queue pair", kernels=("6.1",))],
    "RC requester: NAK remote access error of a WRITE after an open READ": [
        Assessment(BOTH, "the responder is in the error state and does not answer the READ. Rocinante flushes the READ and fails the WRITE at once. "
                        "Linux retransmits both until the retries are exhausted")],
    "RC requester: NAK sequence error within a READ": [
        Assessment(BOTH, "a responder sends the PSN of a request, not one within the responses to a READ. Rocinante repeats the READ at once, "
                        "Linux after the timeout")],
}
