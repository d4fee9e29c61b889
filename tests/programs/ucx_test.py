"""UCX, and Open MPI over UCX, in a network without losses."""

import sys
import unittest

from programs import Programs
from ucx_programs import DATAGRAMS, MPI, RELIABLE, MpiOver, UcxOver

Programs.run_program = sys.argv.pop(1)
MpiOver.mpi_check = sys.argv.pop(1)


class UcxOverReliable(UcxOver, Programs):
    environment_more = RELIABLE


class UcxOverDatagrams(UcxOver, Programs):
    environment_more = DATAGRAMS


class MpiOverReliable(MpiOver, Programs):
    environment_more = {**MPI, **RELIABLE}


class MpiOverDatagrams(MpiOver, Programs):
    environment_more = {**MPI, **DATAGRAMS}


if __name__ == "__main__":
    unittest.main(verbosity=2)
