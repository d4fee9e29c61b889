// A program with an EAL of its own, of the distribution's DPDK, that opens a device of the archive's libibverbs.so.1, for
// portable_test.py. Neither of the two DPDKs may use functions or objects of the other one.
#include <errno.h>
#include <infiniband/verbs.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_mbuf.h>
#include <stdio.h>

enum { kBuffers = 255 };

static int failed(const char* what) {
  fprintf(stderr, "own-eal: %s failed: errno %d, rte_errno %d\n", what, errno, rte_errno);
  return 1;
}

static void count(struct rte_mempool* pool, void* pools) {
  (void)pool;
  ++*(int*)pools;
}

int main(void) {
  char* arguments[] = {"own-eal", "--no-huge", "--no-shconf", "--no-pci", "--no-telemetry", "-m", "64", NULL};
  if (rte_eal_init(sizeof arguments / sizeof *arguments - 1, arguments) < 0) return failed("rte_eal_init");
  struct rte_mempool* pool =
      rte_pktmbuf_pool_create("own", kBuffers, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
  if (pool == NULL) return failed("rte_pktmbuf_pool_create");

  int devices = 0;
  struct ibv_device** list = ibv_get_device_list(&devices);
  if (list == NULL || devices != 1) return failed("ibv_get_device_list");
  struct ibv_context* context = ibv_open_device(list[0]);
  if (context == NULL) return failed("ibv_open_device");
  struct ibv_cq* queue = ibv_create_cq(context, 16, NULL, NULL, 0);
  if (queue == NULL) return failed("ibv_create_cq");

  // The buffers of the device belong to the other EAL.
  int pools = 0;
  rte_mempool_walk(count, &pools);
  if (pools != 1 || rte_mempool_lookup("own") != pool) return failed("rte_mempool_walk");
  struct rte_mbuf* buffers[kBuffers];
  if (rte_pktmbuf_alloc_bulk(pool, buffers, kBuffers) != 0) return failed("rte_pktmbuf_alloc_bulk");
  rte_pktmbuf_free_bulk(buffers, kBuffers);

  if (ibv_destroy_cq(queue) != 0 || ibv_close_device(context) != 0) return failed("ibv_close_device");
  printf("%s opened", ibv_get_device_name(list[0]));
  ibv_free_device_list(list);
  if (rte_eal_cleanup() != 0) return failed("rte_eal_cleanup");
  printf(", %d pool in the EAL of the program\n", pools);
  return 0;
}
