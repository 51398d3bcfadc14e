/* SPDX-License-Identifier: Apache-2.0 */
/* host.c - the machines: whose code runs, their end and their new beginning */
#include <arpa/inet.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/vec.h"
#include "simuv/simuv_internal.h"

#define FIRST_PORT 32768

#define SYNC_MIN_USEC 50
#define SYNC_MAX_USEC 500

static struct simuv_machine **hosts;
static size_t host_count, host_cap;
static struct map hosts_by_address = MAP_INIT;

static struct simuv_machine *host_add(struct in_addr address)
{
    struct simuv_machine *machine = aq_alloc(sizeof(*machine));

    machine->id = (simuv_host)host_count;
    machine->address = address;
    machine->next_port = FIRST_PORT;
    machine->sync_min_usec = SYNC_MIN_USEC;
    machine->sync_max_usec = SYNC_MAX_USEC;
    list_init(&machine->loops);
    list_init(&machine->abandoned);
    list_init(&machine->sockets);
    list_init(&machine->listeners);
    list_init(&machine->works);
    list_init(&machine->paths);
    vec_grow(&hosts, &host_cap, host_count + 1, sizeof(struct simuv_machine *));
    hosts[host_count++] = machine;
    return machine;
}

void simuv_hosts_begin(void)
{
    (void)host_add((struct in_addr){ htonl(INADDR_LOOPBACK) });
}

simuv_host simuv_add_host(const char *ip)
{
    struct in_addr address;

    if (inet_pton(AF_INET, ip, &address) != 1
        || map_get(&hosts_by_address, &address, sizeof(address)))
        simuv_cannot("simuv_add_host() with an address that is wrong or taken");
    (void)map_set(&hosts_by_address, &address, sizeof(address), host_add(address));
    return (simuv_host)host_count - 1;
}

struct simuv_machine *simuv_machine_of(simuv_host host)
{
    if (host >= host_count)
        simuv_cannot("a host that simuv_add_host() has not made");
    return hosts[host];
}

struct simuv_machine *simuv_machine_find(simuv_host from, struct in_addr address)
{
    if (ntohl(address.s_addr) >> 24 == IN_LOOPBACKNET || address.s_addr == INADDR_ANY)
        return simuv_machine_of(from);
    return map_get(&hosts_by_address, &address, sizeof(address));
}

/* ---- whose code runs ---- */

simuv_host simuv_current_host(void)
{
    const struct simuv_task *task = simuv_task_now;

    return task->depth ? task->hosts[task->depth - 1] : 0;
}

struct simuv_machine *simuv_machine_here(void)
{
    return simuv_machine_of(simuv_current_host());
}

/* Timers that this code starts count from now, as they would within a turn of the loop. */
static void host_update_loops(struct simuv_machine *machine)
{
    LIST_FOREACH(it, &machine->loops)
        LIST_ENTRY(it, struct simuv_loop, link)->uv->time = (uint64_t)(simuv_now / 1000);
}

void simuv_enter(simuv_host host)
{
    struct simuv_machine *machine = simuv_machine_of(host);
    struct simuv_task *task = simuv_task_now;

    if (machine->is_crashed)
        simuv_cannot("simuv_enter() of a host that has crashed and was not booted");
    if (task->depth == SIMUV_ENTER_MAX)
        simuv_cannot("simuv_enter() without simuv_leave()");
    task->hosts[task->depth++] = host;
    if (task->is_driver)
        host_update_loops(machine);
}

void simuv_leave(void)
{
    if (!simuv_task_now->depth)
        simuv_cannot("simuv_leave() without simuv_enter()");
    simuv_task_now->depth--;
}

void simuv_set_wall_offset(simuv_host host, int64_t usec)
{
    simuv_machine_of(host)->wall_offset = usec;
}

/* ---- the end of a process, and a new one ---- */

static void host_abandon_loop(struct simuv_machine *machine, struct simuv_loop *loop)
{
    simuv_event_cancel(&loop->event);
    list_remove(&loop->link);
    list_add(&machine->abandoned, &loop->link);
    loop->is_dead = true;
}

void simuv_crash(simuv_host host, bool is_silent)
{
    struct simuv_machine *machine = simuv_machine_of(host);

    for (int i = 0; i < simuv_task_now->depth; i++)
        if (simuv_task_now->hosts[i] == host)
            simuv_cannot("simuv_crash() within the code of this host");
    if (machine->is_crashed)
        simuv_cannot("simuv_crash() of a host that has crashed already");
    simuv_note("crash", host, is_silent);
    machine->is_crashed = true;
    if (is_silent)
        machine->down_since = simuv_now;
    LIST_FOREACH(it, &machine->loops)
        host_abandon_loop(machine, LIST_ENTRY(it, struct simuv_loop, link));
    simuv_tasks_crash(host);
    simuv_works_crash(machine);
    simuv_files_crash(host);
    simuv_sockets_crash(machine, is_silent);
}

void simuv_boot(simuv_host host)
{
    struct simuv_machine *machine = simuv_machine_of(host);

    if (!machine->is_crashed)
        simuv_cannot("simuv_boot() of a host that has not crashed");
    simuv_note("boot", host, 0);
    machine->is_crashed = false;
    machine->down_since = 0;
    machine->boots++;
    LIST_FOREACH(it, &machine->paths)
        simuv_way_flush(simuv_way_of_link(it));
}
