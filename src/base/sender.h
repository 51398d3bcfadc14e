/* SPDX-License-Identifier: Apache-2.0 */
/* sender.h - which process has sent a packet of a Unix socket
 *
 * SO_PEERCRED names who has called listen(2), which is not who has the socket by now. Only root of
 * the reader's process namespace can send with another process's number.
 */
#ifndef AQ_BASE_SENDER_H
#define AQ_BASE_SENDER_H

#include <sys/types.h>

/* Have what comes from now on say who sent it. -errno. */
int sender_ask(int fd);

/* As recv(2) with MSG_DONTWAIT; *ret is 0 if the sender is not known, or cannot be seen from here.
 */
ssize_t sender_receive(int fd, void *packet, size_t size, pid_t *ret);

#endif
