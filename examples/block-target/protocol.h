/* What the two sides say to each other. As in NVMe over Fabrics a command carries no data: it names a buffer of the
 * initiator, and the target moves the data by RDMA.
 *
 *   initiator                                            target
 *      SEND    command (id, LBA, blocks, buffer)  --->
 *              read:                              <---  RDMA WRITE of the blocks into the buffer
 *              write:                             <---  RDMA READ of the blocks out of the buffer
 *                                                 <---  SEND response (id, status)
 *
 * Credits: at most `depth` commands of an initiator may be without a response. Both sides have a receive posted for each that
 * may come. Responses come in any order. Numbers are little-endian on every machine that we know to run this; a product
 * converts them. */
#ifndef BLOCK_TARGET_PROTOCOL_H
#define BLOCK_TARGET_PROTOCOL_H

#include <infiniband/verbs.h>
#include <stdint.h>

enum {
  BT_MAGIC = 0x62743031, /* "bt01": one version of everything here */
  BT_BLOCK = 512,        /* bytes */
  BT_MAX_BLOCKS = 256,   /* of one command */
  BT_MAX_DEPTH = 64,
};

enum bt_opcode {
  BT_IDENTIFY = 1, /* writes a struct bt_identity into the buffer */
  BT_READ,
  BT_WRITE,
  BT_FLUSH, /* what was answered before is safe; no buffer, no LBA */
};

enum bt_status {
  BT_OK,
  BT_BAD_OPCODE,
  BT_BAD_FIELD,    /* something is set that has to be 0, or the other way round */
  BT_OUT_OF_RANGE, /* beyond the end of the disk */
  BT_TOO_LONG,     /* more than BT_MAX_BLOCKS */
  BT_SHORT_BUFFER,
  BT_IO_ERROR, /* of the disk behind the target */
};

struct bt_command {
  uint8_t opcode;
  uint8_t zero;
  uint16_t id; /* comes back in the response; of no command that is under way */
  uint32_t blocks;
  uint64_t lba;
  uint64_t address; /* the buffer, its length and key */
  uint32_t length;
  uint32_t rkey;
};
_Static_assert(sizeof(struct bt_command) == 32, "a command has no holes");

struct bt_response {
  uint16_t id;
  uint16_t status;
  uint32_t zero;
};

struct bt_identity {
  uint64_t blocks;
  uint32_t block_size;
  uint32_t max_blocks;
  uint32_t depth;
  uint32_t is_file; /* 0: what it holds is gone with it */
};

/* What each side says of itself over TCP, the initiator first. */
struct bt_hello {
  uint32_t magic;
  uint32_t refused; /* by the target, an errno */
  uint32_t depth;   /* the smaller one holds */
  uint32_t qp_num;
  uint32_t psn;
  uint32_t mtu; /* enum ibv_mtu; the smaller one holds */
  union ibv_gid gid;
};

#endif
