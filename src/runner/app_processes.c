/* SPDX-License-Identifier: Apache-2.0 */
/* What /proc says of apps. */
#include "runner/app_processes.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/strbuf.h"
#include "runner/app_launch.h"

#define ENVIRON_MAX (4 << 20)
#define LISTENS 0x0A /* a socket's state */

static bool app_processes_is_marked(pid_t pid, const char *name)
{
    static const char mark[] = APP_MARK "=";
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    char path[32];

    (void)snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    if (fs_read(AT_FDCWD, path, ENVIRON_MAX, &text, NULL) < 0 || !text.len)
        return false;
    for (size_t at = 0; at < text.len; at += strlen(text.data + at) + 1)
        if (strncmp(text.data + at, mark, sizeof(mark) - 1) == 0
            && (!name || strcmp(text.data + at + sizeof(mark) - 1, name) == 0))
            return true;
    return false;
}

size_t app_processes_signal(const char *name, int signum)
{
    DIR *dir = opendir("/proc");
    struct dirent *entry;
    size_t count = 0;

    while (dir && (entry = readdir(dir))) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

        if (pid > 1 && pid != getpid() && app_processes_is_marked(pid, name)
            && kill(pid, signum) == 0)
            count++;
    }
    if (dir)
        (void)closedir(dir);
    return count;
}

/* Every 127.0.0.1, 0.0.0.0, :: and ::ffff: of one of these, as the Linux kernel writes them. */
static bool app_ports_is_reached(const char *address)
{
    static const char *const reached[] = { "00000000", "0100007F",
                                           "00000000000000000000000000000000",
                                           "0000000000000000FFFF00000100007F",
                                           "0000000000000000FFFF000000000000" };

    for (size_t i = 0; i < AQ_COUNT(reached); i++)
        if (strcmp(address, reached[i]) == 0)
            return true;
    return false;
}

static void app_ports_add(const char *path, struct app_ports *ret)
{
    FILE *file = fopen(path, "re");
    char line[512], address[40];
    unsigned port, state;

    while (file && fgets(line, sizeof(line), file))
        if (sscanf(line, "%*u: %39[0-9A-F]:%4X %*39[0-9A-F]:%*4X %2X", address, &port, &state) == 3
            && state == LISTENS && app_ports_is_reached(address))
            ret->bits[port / 8] |= (uint8_t)(1u << port % 8);
    if (file)
        (void)fclose(file);
}

void app_ports_read(struct app_ports *ret)
{
    memset(ret, 0, sizeof(*ret));
    app_ports_add("/proc/net/tcp", ret);
    app_ports_add("/proc/net/tcp6", ret);
}
