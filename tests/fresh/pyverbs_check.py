"""Sends a message between two queue pairs of a process with pyverbs, rdma-core's Python interface. Run by programs.sh."""

import pyverbs.enums as e
from pyverbs.addr import AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context, get_device_list
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

MESSAGE = b"a message of pyverbs"


def connected(context, qp, peer):
    gid = context.query_gid(1, 1)
    attributes = QPAttr(port_num=1)
    attributes.dest_qp_num = peer.qp_num
    attributes.path_mtu = e.IBV_MTU_1024
    attributes.max_rd_atomic = attributes.max_dest_rd_atomic = 1
    attributes.min_rnr_timer = 12
    attributes.timeout = 14
    attributes.retry_cnt = attributes.rnr_retry = 7
    attributes.qp_access_flags = e.IBV_ACCESS_LOCAL_WRITE
    attributes.ah_attr = AHAttr(gr=GlobalRoute(dgid=gid, sgid_index=1), is_global=1, port_num=1)
    qp.to_rts(attributes)


def wait_for_completion(queue):
    while True:
        count, completions = queue.poll()
        if count:
            assert completions[0].status == e.IBV_WC_SUCCESS, completions[0]
            return completions[0]


def main():
    names = [device.name.decode() for device in get_device_list()]
    assert names == ["roci0"], names
    context = Context(name="roci0")
    domain = PD(context)
    memory = MR(domain, 4096, e.IBV_ACCESS_LOCAL_WRITE)
    queues = [CQ(context, 16) for _ in range(2)]
    sender, receiver = (QP(domain, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=queue, rcq=queue, cap=QPCap(4, 4, 1, 1)))
                        for queue in queues)
    connected(context, sender, receiver)
    connected(context, receiver, sender)
    memory.write(MESSAGE, len(MESSAGE))
    receiver.post_recv(RecvWR(num_sge=1, sg=[SGE(memory.buf + 2048, 1024, memory.lkey)]))
    sender.post_send(SendWR(num_sge=1, sg=[SGE(memory.buf, len(MESSAGE), memory.lkey)]))
    wait_for_completion(queues[0])
    assert wait_for_completion(queues[1]).byte_len == len(MESSAGE)
    received = memory.read(len(MESSAGE), 2048)
    assert received == MESSAGE, received
    print(f"pyverbs: received '{received.decode()}'")


main()
