"""MPI job in Python: collective operations on objects and on arrays, and one-sided writes. Every result is compared."""

import array

from mpi4py import MPI

LENGTH = 200000
world = MPI.COMM_WORLD
rank, ranks = world.Get_rank(), world.Get_size()
others = range(ranks)

assert world.bcast({"from": 0, "data": b"x" * LENGTH} if rank == 0 else None) == {"from": 0, "data": b"x" * LENGTH}
assert world.gather((rank, "a" * rank), root=1) == ([(one, "a" * one) for one in others] if rank == 1 else None)
assert world.allreduce(rank + 1) == ranks * (ranks + 1) // 2
assert world.alltoall([(rank, to) for to in others]) == [(sender, rank) for sender in others]

numbers, sums = array.array("q", (rank * at for at in range(LENGTH))), array.array("q", bytes(8 * LENGTH))
world.Allreduce(numbers, sums)
assert sums == array.array("q", (sum(others) * at for at in range(LENGTH)))

pieces, received = array.array("q", [rank] * (1000 * ranks)), array.array("q", bytes(8000 * ranks))
world.Alltoall(pieces, received)
assert received == array.array("q", (sender for sender in others for _ in range(1000)))

memory = array.array("q", bytes(8 * ranks))
window = MPI.Win.Create(memory, disp_unit=8, comm=world)
window.Fence()
for to in others:
    window.Put(array.array("q", [100 * rank + to]), to, target=rank)
window.Fence()
assert memory == array.array("q", (100 * sender + rank for sender in others)), memory
window.Free()

world.Barrier()
if rank == 0:
    print(f"{ranks} ranks: all data correct")
