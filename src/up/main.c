/* SPDX-License-Identifier: Apache-2.0 */
/* aliquot-up: manager and agents on this machine, started and watched over.
 *
 *     aliquot-up [--dev] [--state DIR] [--port-offset N] [--port N] [--link-port N]
 *                [--proxy-port N] [--storage-port N] [--web-port N] [--static DIR]
 *                [--agent FILE]...
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/installed.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "up/node.h"
#include "up/up.h"

#define PORT_DEFAULT 8081
#define LINK_PORT_DEFAULT 8082
#define PROXY_PORT_DEFAULT 5050
#define STORAGE_PORT_DEFAULT 6021
#define WEB_PORT_DEFAULT 8090
#define OFFSET_MAX 50000 /* no port exceeds 65535 */

/* A port, or what is added to ports: a number from 1 to 'max'. */
static int up_parse_number(const char *text, long max, uint16_t *ret)
{
    char *end;
    long number = strtol(text, &end, 10);

    if (*text == '\0' || *end || number < 1 || number > max)
        return -EINVAL;
    *ret = (uint16_t)number;
    return 0;
}

static int up_usage(const char *text)
{
    (void)fprintf(
        stderr,
        "%s\nUsage: aliquot up [--dev] [--state DIR] [--port-offset N] [--port N] "
        "[--link-port N] [--proxy-port N] [--storage-port N] [--web-port N] [--static DIR] "
        "[--agent FILE]...\n",
        text);
    return 2;
}

static int up_find_static(const char *text, const char **ret)
{
    static char path[PATH_MAX];
    char page[PATH_MAX + sizeof("/index.html")];

    if (!realpath(text, path))
        return -errno;
    (void)snprintf(page, sizeof(page), "%s/index.html", path);
    *ret = path;
    return access(page, R_OK) < 0 ? -errno : 0;
}

static int up_parse(int argc, char **argv, struct up_options *o, const char **agents)
{
    static const struct option known[] = {
        { "dev", no_argument, NULL, 'd' },
        { "state", required_argument, NULL, 's' },
        { "port-offset", required_argument, NULL, 'o' },
        { "port", required_argument, NULL, 'p' },
        { "link-port", required_argument, NULL, 'l' },
        { "proxy-port", required_argument, NULL, 'x' },
        { "storage-port", required_argument, NULL, 'f' },
        { "web-port", required_argument, NULL, 'w' },
        { "static", required_argument, NULL, 't' },
        { "agent", required_argument, NULL, 'a' },
        { "version", no_argument, NULL, 'v' },
        { NULL, 0, NULL, 0 },
    };
    int letter;

    while ((letter = getopt_long(argc, argv, "", known, NULL)) != -1) {
        if (letter == 'd')
            o->is_dev = true;
        else if (letter == 's')
            o->state_dir = optarg;
        else if (letter == 'o' && up_parse_number(optarg, OFFSET_MAX, &o->offset) < 0)
            return up_usage("--port-offset is a number from 1 to 50000");
        else if (letter == 'p' && up_parse_number(optarg, UINT16_MAX, &o->port) < 0)
            return up_usage("--port is a number from 1 to 65535");
        else if (letter == 'l' && up_parse_number(optarg, UINT16_MAX, &o->link_port) < 0)
            return up_usage("--link-port is a number from 1 to 65535");
        else if (letter == 'x' && up_parse_number(optarg, UINT16_MAX, &o->proxy_port) < 0)
            return up_usage("--proxy-port is a number from 1 to 65535");
        else if (letter == 'f' && up_parse_number(optarg, UINT16_MAX, &o->storage_port) < 0)
            return up_usage("--storage-port is a number from 1 to 65535");
        else if (letter == 'w' && up_parse_number(optarg, UINT16_MAX, &o->web_port) < 0)
            return up_usage("--web-port is a number from 1 to 65535");
        else if (letter == 't' && up_find_static(optarg, &o->static_dir) < 0)
            return up_usage("--static is a directory with the files of Backend.AI's WebUI; "
                            "there is no index.html");
        else if (letter == 'a' && o->agent_count == NODES_MAX)
            return up_usage("--agent may be given 64 times at most");
        else if (letter == 'a')
            agents[o->agent_count++] = optarg;
        else if (letter == 'v')
            return puts("aliquot-up " ALIQUOT_VERSION) < 0;
        else if (letter == '?')
            return up_usage("");
    }
    return optind < argc ? up_usage("there are no arguments beside options") : -1;
}

/* --dev has a state of its own, so that it never touches a real cluster's. NULL with errno if a
 * path is relative to a directory that is not there.
 */
static char *up_choose_state(const struct up_options *o)
{
    AQ_CLEANUP(aq_freep) char *here = NULL;

    if (!o->state_dir) {
        here = fs_state_dir();
        return aq_format("%s/%s", here, o->is_dev ? "dev" : "up");
    }
    if (o->state_dir[0] == '/')
        return aq_strdup(o->state_dir);
    here = getcwd(NULL, 0);
    return here ? aq_format("%s/%s", here, o->state_dir) : NULL;
}

/* Each is a package of its own. */
static bool up_has(const char *name)
{
    AQ_CLEANUP(aq_freep) char *program = installed_find(name);

    return program;
}

/* A port that was not given is the default one, moved by the offset. A --port alone is that of a
 * cluster of which only the manager and the agents are wanted.
 */
static void up_choose_ports(struct up_options *o)
{
    bool has_fronts = !o->port || o->port == PORT_DEFAULT || o->offset;
    const struct {
        uint16_t *port, usual;
        const char *program; /* NULL = the manager */
    } ports[] = { { &o->link_port, LINK_PORT_DEFAULT, NULL },
                  { &o->proxy_port, PROXY_PORT_DEFAULT, "aliquot-proxy" },
                  { &o->storage_port, STORAGE_PORT_DEFAULT, "aliquot-storage" },
                  { &o->web_port, WEB_PORT_DEFAULT, "aliquot-web" } };

    if (!has_fronts && !o->link_port)
        o->link_port = (uint16_t)(o->port + 1);
    if (!o->port)
        o->port = (uint16_t)(PORT_DEFAULT + o->offset);
    for (size_t i = 0; i < AQ_COUNT(ports); i++)
        if (!*ports[i].port && has_fronts && (!ports[i].program || up_has(ports[i].program)))
            *ports[i].port = (uint16_t)(ports[i].usual + o->offset);
}

int main(int argc, char **argv)
{
    const char *agents[NODES_MAX];
    struct up_options options = { .agents = agents };
    AQ_CLEANUP(aq_freep) char *state = NULL;
    struct aq_error err = { 0 };
    int r = up_parse(argc, argv, &options, agents);

    if (r >= 0)
        return r;
    up_choose_ports(&options);
    state = up_choose_state(&options);
    log_init("up", LOG_LEVEL_INFO);
    if (state) {
        options.state_dir = state;
        r = up_run(&options, &err);
    } else {
        r = aq_fail_errno(&err, "find the folder '%s'", options.state_dir);
    }
    if (r < 0)
        log_error("%s", err.text);
    return r < 0 ? 1 : 0;
}
