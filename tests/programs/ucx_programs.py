"""Mixins with UCX and MPI jobs, using the path shim instead of files in /dev and /sys."""

import pathlib

TESTS = (("tag_lat", 8), ("tag_bw", 65536), ("ucp_am_lat", 64), ("ucp_am_bw", 4096), ("ucp_put_lat", 8), ("ucp_put_bw", 65536),
         ("ucp_get", 65536), ("ucp_fadd", 8), ("stream_bw", 4096))
# In its default fence mode, UCX 1.18 flushes the memory of the peer, which its transport rc_v supports for no device
# ("flush(remote) is not supported"). UCX 1.13 has no such mode and ignores the variable.
RELIABLE = {"UCX_TLS": "rc_v,self", "UCX_NET_DEVICES": "roci0:1", "UCX_FENCE_MODE": "weak"}
DATAGRAMS = {"UCX_TLS": "ud_v,self", "UCX_NET_DEVICES": "roci0:1", "UCX_FENCE_MODE": "weak"}
# Debian 13's ucx_perftest calls MPI_Init unless its input is a terminal.
UCX_PERFTEST = ("python3", pathlib.Path(__file__).resolve().parent.parent / "tools/with_terminal.py", "ucx_perftest")
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def mpi_command(ranks, program, launcher=("mpirun",)):
    """A job with more ranks than processors. All of its traffic uses UCX."""
    return (*launcher, "-n", ranks, "--oversubscribe", "--mca", "pml", "ucx", "--mca", "osc", "ucx",
            "--mca", "opal_common_ucx_tls", "any", "--mca", "opal_common_ucx_devices", "any",
            "--mca", "mpi_yield_when_idle", "1", program)


class UcxTransfers:
    def test_completes_tag_am_put_get_atomic_and_stream_tests(self):
        for name, size in TESTS:
            with self.subTest(name):
                server, client = self.pair(*UCX_PERFTEST, "-t", name, "-s", size, "-n", 200, "-w", 10)
                self.assertIn("Final:", client.text)
                self.assertNotIn("ERROR", server.text + client.text)


class ShmemJobs:
    """Open MPI's OpenSHMEM maps its heap at 0xff000000 and replaces mappings there."""

    shmem_check = None  # path of the program

    def test_two_and_four_elements_exchange_correct_data(self):
        for elements in (2, 4):
            with self.subTest(elements):
                job = self.wait(self.start(*mpi_command(elements, self.shmem_check, ("oshrun", "--mca", "spml", "ucx"))), limit=240)
                self.assertEqual(job.status, 0, job.text)
                self.assertIn(f"{elements} elements: all data correct", job.text)


class MpiJobs:
    mpi_check = None  # path of the program

    def command(self, ranks, program):
        return mpi_command(ranks, program)

    def check(self, ranks, options=()):
        job = self.wait(self.start(*self.command(ranks, self.mpi_check), options=options), limit=240)
        self.assertEqual(job.status, 0, job.text)
        self.assertIn(f"{ranks} ranks: all bytes as they should be", job.text)
        return job

    def test_two_ranks_exchange_correct_data(self):
        self.check(2)

    def test_four_ranks_exchange_correct_data(self):
        self.check(4)
