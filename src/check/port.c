/* SPDX-License-Identifier: Apache-2.0 */
/* port.c - can a daemon listen here, and if not, who does? */
#include "check/port.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/host_port.h"

#define TABLE_MAX (64u << 20)
#define STATE_LISTEN 0x0a

/* ---- who listens ---- */

/* The inode of the socket that listens at the port, in the text of
 * /proc/net/tcp ("  0: 0100007F:1F91 00000000:0000 0A ..."); 0 = none.
 */
static unsigned long port_find_inode(const char *text, uint16_t port)
{
    for (; text; text = strchr(text, '\n') ? strchr(text, '\n') + 1 : NULL) {
        unsigned local, state;
        unsigned long inode;

        if (sscanf(text, " %*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*s %*s %*s %*s %*s %lu",
                   &local, &state, &inode)
                == 3
            && local == port && state == STATE_LISTEN)
            return inode;
    }
    return 0;
}

static unsigned long port_find_listener(uint16_t port)
{
    static const char *const tables[] = { "/proc/net/tcp", "/proc/net/tcp6" };
    unsigned long inode = 0;

    for (size_t i = 0; !inode && i < AQ_COUNT(tables); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

        if (fs_read(AT_FDCWD, tables[i], TABLE_MAX, &text, NULL) == 0)
            inode = port_find_inode(text.data, port);
    }
    return inode;
}

static bool port_has_socket(const char *pid, unsigned long inode)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("/proc/%s/fd", pid);
    AQ_CLEANUP(aq_freep) char *wanted = aq_format("socket:[%lu]", inode);
    DIR *dir = opendir(path);
    struct dirent *entry;
    bool is_found = false;

    while (dir && !is_found && (entry = readdir(dir))) {
        char target[64];
        ssize_t len = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);

        target[len > 0 ? len : 0] = '\0';
        is_found = strcmp(target, wanted) == 0;
    }
    if (dir)
        (void)closedir(dir);
    return is_found;
}

/* From the command line: the kernel's own name of a process ends after 15 characters. */
static void port_read_name(const char *pid, char ret_name[32])
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("/proc/%s/cmdline", pid);
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    const char *slash;

    (void)fs_read(AT_FDCWD, path, 1 << 20, &text, NULL);
    slash = strrchr(text.data, '/');
    (void)snprintf(ret_name, 32, "%s", slash ? slash + 1 : text.data);
}

int port_find_owner(uint16_t port, pid_t *ret_pid, char ret_name[32])
{
    unsigned long inode = port_find_listener(port);
    DIR *dir = inode ? opendir("/proc") : NULL;
    struct dirent *entry;
    int r = -ENOENT;

    while (dir && r < 0 && (entry = readdir(dir))) {
        if (!isdigit((unsigned char)entry->d_name[0]) || !port_has_socket(entry->d_name, inode))
            continue;
        *ret_pid = (pid_t)strtol(entry->d_name, NULL, 10);
        port_read_name(entry->d_name, ret_name);
        r = 0;
    }
    if (dir)
        (void)closedir(dir);
    return r;
}

/* ---- can it be had ---- */

static int port_try_bind(const struct addrinfo *address)
{
    AQ_CLEANUP(aq_closep) int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int on = 1;

    if (fd < 0)
        return -errno;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    return bind(fd, address->ai_addr, address->ai_addrlen) < 0 || listen(fd, 1) < 0 ? -errno : 0;
}

static void port_say_used(const char *address, uint16_t port, const char *owner, const char *option,
                          struct finding *ret)
{
    char name[32];
    pid_t pid;
    bool is_known = port_find_owner(port, &pid, name) == 0;

    if (is_known && strcmp(name, owner) == 0) {
        finding_say(ret, CHECK_OK, "%s is served by %s, process %d", address, name, (int)pid);
        return;
    }
    if (is_known)
        finding_say(ret, CHECK_MISSING, "%s is in use by %s, process %d", address, name, (int)pid);
    else
        finding_say(ret, CHECK_MISSING, "%s is in use by a program of another user", address);
    finding_mean(ret, "%s does not start, unless that is it", owner);
    finding_mend(ret, "%sss -ltnp 'sport = :%u', or another address: %s", is_known ? "" : "sudo ",
                 port, option);
}

void port_check(const char *host, uint16_t port, const char *owner, const char *option,
                struct finding *ret)
{
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
                                    .ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV };
    struct addrinfo *found = NULL;
    char service[8], address[HOST_PORT_MAX];
    int r;

    (void)host_port_write(host, port, address);
    (void)snprintf(service, sizeof(service), "%u", port);
    if (getaddrinfo(strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, service, &hints, &found)) {
        finding_say(ret, CHECK_WARNING, "'%s' is no address, so it was not tried", host);
        return;
    }
    r = port ? port_try_bind(found) : 0;
    freeaddrinfo(found);
    if (r == 0) {
        finding_say(ret, CHECK_OK, "%s is free", address);
    } else if (r == -EADDRINUSE) {
        port_say_used(address, port, owner, option, ret);
    } else {
        finding_say(ret, CHECK_MISSING, "%s cannot be had: %s", address, strerror(-r));
        finding_mean(ret, "%s does not start", owner);
        finding_mend(ret, "%s, or another address: %s", r == -EACCES ? "sudo" : "ip address",
                     option);
    }
}
