/* The protocol between initiator and target. As in NVMe over Fabrics, a command contains no data: it specifies a
 * buffer of the initiator, and the target transfers the data by RDMA.
 *
 *   initiator                                            target
 *      SEND    command (id, LBA, blocks, buffer)  --->
 *              read:                              <---  RDMA WRITE of the blocks into the buffer
 *              write:                             <---  RDMA READ of the blocks out of the buffer
 *                                                 <---  SEND response (id, status)
 *
 * Credits: an initiator may have at most `depth` commands without a response. Both sides have a receive posted for
 * each possible message. Responses arrive in any order. Numbers are in host byte order, assumed to be little-endian;
 * a product would convert them. */
#ifndef BLOCK_TARGET_PROTOCOL_H
#define BLOCK_TARGET_PROTOCOL_H

#include <infiniband/verbs.h>
#include <stdint.h>

enum {
  BT_MAGIC = 0x62743031, /* "bt01": version of all definitions in this file */
  BT_BLOCK = 512,        /* bytes */
  BT_MAX_BLOCKS = 256,   /* per command */
  BT_MAX_DEPTH = 64,
};

enum bt_opcode {
  BT_IDENTIFY = 1, /* writes a struct bt_identity into the buffer */
  BT_READ,
  BT_WRITE,
  BT_FLUSH, /* makes all completed writes durable; no buffer, no LBA */
};

enum bt_status {
  BT_OK,
  BT_BAD_OPCODE,
  BT_BAD_FIELD,    /* a field is set that must be 0, or 0 where a value is required */
  BT_OUT_OF_RANGE, /* beyond the end of the disk */
  BT_TOO_LONG,     /* more than BT_MAX_BLOCKS */
  BT_SHORT_BUFFER,
  BT_IO_ERROR, /* of the target's disk */
};

struct bt_command {
  uint8_t opcode;
  uint8_t zero;
  uint16_t id; /* returned in the response; must not be that of another command in progress */
  uint32_t blocks;
  uint64_t lba;
  uint64_t address; /* address, length and key of the buffer */
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
  uint32_t is_file; /* 0: contents are lost when the target exits */
};

/* Exchanged over TCP; the initiator sends first. */
struct bt_hello {
  uint32_t magic;
  uint32_t refused; /* errno, set by the target */
  uint32_t depth;   /* the smaller value applies */
  uint32_t qp_num;
  uint32_t psn;
  uint32_t mtu; /* enum ibv_mtu; the smaller value applies */
  union ibv_gid gid;
};

#endif
