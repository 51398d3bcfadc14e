/* SPDX-License-Identifier: Apache-2.0 */
/* What comes by the socket of keep: texts end, and no descriptor stays. */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "k8s/keep/keep_message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct keep_message message = { .magic = KEEP_MAGIC, .version = KEEP_VERSION };
    int ends[2], files[KEEP_FILES];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return 0;
    memcpy(&message.kind, data, size < sizeof(message) - 8 ? size : sizeof(message) - 8);
    if ((send(ends[0], data, size, MSG_DONTWAIT) >= 0
         && keep_message_receive(ends[1], &message, files) > 0
         && strlen(message.key) >= KEEP_KEY_SIZE)
        || (send(ends[0], &message, sizeof(message), MSG_DONTWAIT) >= 0
            && keep_message_receive(ends[1], &message, files) > 0
            && strlen(message.text) >= KEEP_TEXT_SIZE))
        __builtin_trap();
    (void)close(ends[0]);
    (void)close(ends[1]);
    return 0;
}
