/* SPDX-License-Identifier: Apache-2.0 */
/* keep_message.h - what the plugin and `aliquot-k8s keep` say to each other
 *
 * Over a SOCK_SEQPACKET socket in a folder of root's, a message in each packet. The plugin puts the
 * memory files of a slice beside a text of its own and drops those of slices that have ended; who
 * lists gets an entry for each, with its files, then the end. Nothing else is answered. Numbers are
 * in the machine's byte order.
 */
#ifndef AQ_K8S_KEEP_KEEP_MESSAGE_H
#define AQ_K8S_KEEP_KEEP_MESSAGE_H

#include <assert.h>

#include "k8s/pods.h"

#define KEEP_FOLDER "keep" /* in the folder plugin.run, 0700 */
#define KEEP_SOCKET "keep.sock"
#define KEEP_FILES 2  /* of a slice: limits and usage */
#define KEEP_MAX 4096 /* slices */
#define KEEP_KEY_SIZE 104
#define KEEP_TEXT_SIZE 504

#define KEEP_MAGIC 0x6b656570u
#define KEEP_VERSION 1u

enum keep_kind {
    KEEP_PUT = 1, /* with files; what was there under the key goes */
    KEEP_DROP,
    KEEP_LIST,
    KEEP_ENTRY, /* with files */
    KEEP_END,
};

struct keep_message {
    uint32_t magic, version;
    uint32_t kind;
    uint32_t reserved;
    char key[KEEP_KEY_SIZE]; /* both end with a NUL */
    char text[KEEP_TEXT_SIZE];
};
static_assert(sizeof(struct keep_message) == 624, "goes over a socket");
static_assert(KEEP_KEY_SIZE > POD_UID_MAX + 1 + CONTAINER_NAME_MAX, "pod and container");

/* 0, or -errno: -EAGAIN if the peer does not take it, at once or in the socket's time. 'files' NULL
 * = none.
 */
int keep_message_send(int socket, enum keep_kind kind, const char *key, const char *text,
                      const int files[KEEP_FILES]);

/* The next message: 1, with the files that came in 'files', the caller's, else -1 each; 0 = there
 * is none now; -ECONNRESET: the peer is gone; -EPROTO for what is none.
 */
int keep_message_receive(int socket, struct keep_message *ret, int files[KEEP_FILES]) AQ_UNTRUSTED;

/* FOLDER/keep/keep.sock as an address. -ENAMETOOLONG. */
struct sockaddr_un;
int keep_address(const char *folder, struct sockaddr_un *ret, struct aq_error *err);

#endif
