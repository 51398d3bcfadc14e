/* SPDX-License-Identifier: Apache-2.0 */
/* ipc.c - at random: allocate, export to others, import, free; gpu-ipc FOLDER
 *
 * Processes find each other in FOLDER. Once FOLDER/hold is there they do nothing any
 * more, close what they were sent, and make FOLDER/held.PID.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "client.h"

#define HELD 16

enum kind { NOTHING, PLAIN, HANDLE, OPENED };

static struct {
    enum kind kind;
    unsigned long long value, place; /* of a mapping, or 0 */
    size_t bytes;
} held[HELD];

struct letter {
    CUipcMemHandle handle;
    unsigned long long bytes; /* of a handle that comes as a descriptor */
};

static unsigned int seed;
static int own_socket;
static const char *folder;

static unsigned int pick(unsigned int below)
{
    return (unsigned int)rand_r(&seed) % below;
}

static bool is_known(CUresult result)
{
    CHECK(result == CUDA_SUCCESS || result == CUDA_ERROR_OUT_OF_MEMORY
          || result == CUDA_ERROR_INVALID_VALUE /* its maker has died */
          || result == CUDA_ERROR_INVALID_CONTEXT /* our own */);
    return result == CUDA_SUCCESS;
}

static void take(int at)
{
    const CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
    };

    held[at].bytes = (1 + pick(4)) * 2 * MIB;
    if (pick(2))
        held[at].kind = is_known(FN(cuMemAlloc_v2)(&held[at].value, held[at].bytes)) ? PLAIN
                                                                                     : NOTHING;
    else
        held[at].kind = is_known(FN(cuMemCreate)(&held[at].value, held[at].bytes, &prop, 0))
                            ? HANDLE
                            : NOTHING;
}

static void give(int at)
{
    if (held[at].place)
        MUST(FN(cuMemUnmap)(held[at].place, held[at].bytes));
    if (held[at].kind == PLAIN)
        MUST(FN(cuMemFree_v2)(held[at].value));
    if (held[at].kind == HANDLE)
        MUST(FN(cuMemRelease)(held[at].value));
    if (held[at].kind == OPENED)
        MUST(FN(cuIpcCloseMemHandle)(held[at].value));
    memset(&held[at], 0, sizeof(held[at]));
}

static void map(int at)
{
    unsigned long long place = 0;

    if (held[at].kind != HANDLE || held[at].place)
        return;
    MUST(FN(cuMemAddressReserve)(&place, held[at].bytes, 0, 0, 0));
    if (is_known(FN(cuMemMap)(place, held[at].bytes, 0, held[at].value, 0)))
        held[at].place = place;
}

static struct sockaddr_un address_of(const char *name)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };

    CHECK((size_t)snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", folder, name)
          < sizeof(address.sun_path));
    return address;
}

/* Somebody's socket; the others' names do not begin with a digit. */
static bool find_peer(struct sockaddr_un *ret)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    unsigned int seen = 0;

    CHECK(dir);
    while ((entry = readdir(dir)))
        if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9' && pick(++seen) == 0)
            *ret = address_of(entry->d_name);
    (void)closedir(dir);
    return seen > 0;
}

static void send_letter(const struct sockaddr_un *to, const struct letter *letter, int fd)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = { .align = { .cmsg_len = CMSG_LEN(sizeof(int)),
                             .cmsg_level = SOL_SOCKET,
                             .cmsg_type = SCM_RIGHTS } };
    struct iovec part = { (void *)letter, sizeof(*letter) };
    struct msghdr message = {
        .msg_name = (void *)to, .msg_namelen = sizeof(*to), .msg_iov = &part, .msg_iovlen = 1
    };

    if (fd >= 0) {
        memcpy(CMSG_DATA(&control.align), &fd, sizeof(fd));
        message.msg_control = &control;
        message.msg_controllen = sizeof(control);
    }
    (void)sendmsg(own_socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL); /* it may have died */
}

static void export(int at)
{
    struct letter letter = { .bytes = held[at].bytes };
    struct sockaddr_un peer;
    int fd = -1;

    if (!find_peer(&peer))
        return;
    if (held[at].kind == PLAIN && is_known(FN(cuIpcGetMemHandle)(&letter.handle, held[at].value))) {
        letter.bytes = 0;
        send_letter(&peer, &letter, -1);
    }
    if (held[at].kind == HANDLE
        && is_known(FN(cuMemExportToShareableHandle)(
            &fd, held[at].value, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0))) {
        send_letter(&peer, &letter, fd);
        (void)close(fd);
    }
}

/* What somebody sent, at 'at' if that is free; -1 = only taken out of the queue. False = none. */
static bool import(int at)
{
    struct letter letter;
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec part = { &letter, sizeof(letter) };
    struct msghdr message = { .msg_iov = &part,
                              .msg_iovlen = 1,
                              .msg_control = &control,
                              .msg_controllen = sizeof(control) };
    int fd = -1;

    if (recvmsg(own_socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != sizeof(letter))
        return false;
    if (CMSG_FIRSTHDR(&message))
        memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
    if (at >= 0 && held[at].kind == NOTHING) {
        held[at].bytes = letter.bytes;
        if (letter.bytes)
            held[at].kind = is_known(FN(cuMemImportFromShareableHandle)(
                                &held[at].value, (void *)(intptr_t)fd,
                                CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))
                                ? HANDLE
                                : NOTHING;
        else
            held[at].kind = is_known(FN(cuIpcOpenMemHandle_v2)(&held[at].value, letter.handle, 1))
                                ? OPENED
                                : NOTHING;
        if (held[at].kind == HANDLE)
            map(at); /* as everybody does: what is only imported is charged when it is mapped */
        if (held[at].kind == HANDLE && !held[at].place)
            give(at);
    }
    if (fd >= 0)
        (void)close(fd);
    return true;
}

static bool is_over(void)
{
    char path[256];

    (void)snprintf(path, sizeof(path), "%s/hold", folder);
    return access(path, F_OK) == 0;
}

static void hold_still(void)
{
    char path[256];

    (void)snprintf(path, sizeof(path), "%s/held.%d", folder, (int)getpid());
    for (;; usleep(20000)) {
        while (import(-1))
            ;
        (void)close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    }
}

int main(int argc, char **argv)
{
    struct sockaddr_un own;
    char name[16];

    CHECK(argc == 2);
    folder = argv[1];
    seed = (unsigned int)getpid();
    (void)snprintf(name, sizeof(name), "%d", (int)getpid());
    own = address_of(name);
    own_socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    (void)start_cuda();
    CHECK(bind(own_socket, (const struct sockaddr *)&own, sizeof(own)) == 0);
    for (; !is_over(); usleep(2000)) {
        int at = (int)pick(HELD);

        switch (pick(5)) {
        case 0:
        case 1:
            (void)import(at);
            break;
        case 2:
            export(at);
            break;
        case 3:
            map(at);
            break;
        default:
            held[at].kind == NOTHING ? take(at) : give(at);
        }
    }
    hold_still();
}
