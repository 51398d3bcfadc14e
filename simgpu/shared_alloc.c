/* SPDX-License-Identifier: Apache-2.0 */
/* shared_alloc.c - memory that several processes hold
 *
 * As the driver has it: physical memory of cuMemCreate lives until its last
 * mapping and its last handle are gone, "including its shareable counterparts"
 * (cuMemRelease), which are file descriptors; memory that cuIpcOpenMemHandle
 * opened is undefined once its maker has freed it, and lives here until the
 * last process has closed it, which is the worst that may be expected.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device.h"

/* The name: serial above, number below. */
#define NUMBER_BITS 10

static struct sim_card *shared_alloc_card(int *ret_fd)
{
    return sim_card_to_look(ret_fd);
}

static uint32_t shared_alloc_client_number(const struct sim_card *card)
{
    return (uint32_t)(sim_self() - card->clients);
}

static bool shared_alloc_is_held_by(const struct sim_shared *one, uint32_t client)
{
    return one->holders[client / 64] >> (client % 64) & 1;
}

static bool shared_alloc_is_held(const struct sim_shared *one)
{
    uint64_t any = 0;

    for (size_t i = 0; i < sizeof(one->holders) / sizeof(one->holders[0]); i++)
        any |= one->holders[i];
    return any != 0;
}

/* Wherever its descriptors are: Linux lists the locks of all. */
static bool shared_alloc_is_open(uint64_t name)
{
    FILE *locks = fopen("/proc/locks", "re");
    char line[256], place[64];
    bool found = false;

    (void)snprintf(place, sizeof(place), " %llu %llu\n",
                   (unsigned long long)(SIM_SHARED_LOCKS + name),
                   (unsigned long long)(SIM_SHARED_LOCKS + name));
    while (locks && !found && fgets(line, sizeof(line), locks))
        found = strstr(line, place) != NULL;
    if (locks)
        (void)fclose(locks);
    return found;
}

static void shared_alloc_drop_if_unused(const struct sim_card *card, struct sim_shared *one)
{
    if (one->bytes && !one->maker && !shared_alloc_is_held(one)
        && !shared_alloc_is_open(one->serial << NUMBER_BITS | (uint64_t)(one - card->shared)))
        *one = (struct sim_shared){ 0 };
}

int sim_shared_make(uint32_t device, uint64_t bytes)
{
    int fd, number = -1;
    struct sim_card *card = shared_alloc_card(&fd);
    uint32_t self = shared_alloc_client_number(card);

    sim_lock(card);
    for (int i = 0; i < SIM_SHARED_MAX && number < 0; i++) {
        struct sim_shared *one = &card->shared[i];

        shared_alloc_drop_if_unused(card, one);
        if (one->bytes)
            continue;
        *one = (struct sim_shared){
            .serial = ++card->shared_serial, .bytes = bytes, .device = device, .maker = self + 1
        };
        one->holders[self / 64] |= (uint64_t)1 << (self % 64);
        number = i;
    }
    sim_unlock(card);
    return number;
}

uint64_t sim_shared_name(int number)
{
    int fd;

    return shared_alloc_card(&fd)->shared[number].serial << NUMBER_BITS | (uint64_t)number;
}

int sim_shared_find(uint64_t name)
{
    int fd, number = (int)(name & (SIM_SHARED_MAX - 1));
    const struct sim_card *card = shared_alloc_card(&fd);

    return card->shared[number].bytes && card->shared[number].serial == name >> NUMBER_BITS ? number
                                                                                            : -1;
}

bool sim_shared_hold(uint64_t name, uint32_t *ret_device, uint64_t *ret_bytes)
{
    int fd;
    struct sim_card *card = shared_alloc_card(&fd);
    struct sim_shared *one = &card->shared[name & (SIM_SHARED_MAX - 1)];
    uint32_t self = shared_alloc_client_number(card);
    bool is_there;

    sim_lock(card);
    is_there = one->bytes
               && one->serial == name >> NUMBER_BITS; /* its place may be another's by now */
    if (is_there)
        one->holders[self / 64] |= (uint64_t)1 << (self % 64);
    *ret_device = one->device;
    *ret_bytes = one->bytes;
    sim_unlock(card);
    return is_there;
}

void sim_shared_drop(int number)
{
    int fd;
    struct sim_card *card = shared_alloc_card(&fd);
    struct sim_shared *one = &card->shared[number];
    uint32_t self = shared_alloc_client_number(card);

    sim_lock(card);
    one->holders[self / 64] &= ~((uint64_t)1 << (self % 64));
    if (one->maker == self + 1)
        one->maker = 0;
    shared_alloc_drop_if_unused(card, one);
    sim_unlock(card);
}

int sim_shared_open_fd(int number)
{
    uint64_t name = sim_shared_name(number);
    struct flock lock = { .l_type = F_RDLCK,
                          .l_whence = SEEK_SET,
                          .l_start = SIM_SHARED_LOCKS + (int64_t)name,
                          .l_len = 1 };
    int fd = memfd_create("simgpu-memory", MFD_CLOEXEC);

    if (fd >= 0 && fcntl(fd, F_OFD_SETLK, &lock) == 0
        && pwrite(fd, &name, sizeof(name), 0) == sizeof(name))
        return fd;
    if (fd >= 0)
        (void)close(fd);
    return -1;
}

uint64_t sim_shared_read_fd(int fd)
{
    uint64_t name = 0;

    return pread(fd, &name, sizeof(name), 0) == sizeof(name) ? name : 0;
}

void sim_shared_reclaim(struct sim_card *card)
{
    for (uint32_t i = 0; i < SIM_SHARED_MAX; i++) {
        struct sim_shared *one = &card->shared[i];

        if (!one->bytes)
            continue;
        for (uint32_t client = 0; client < SIM_CLIENTS_MAX; client++)
            if (!card->clients[client].pid) {
                one->holders[client / 64] &= ~((uint64_t)1 << (client % 64));
                if (one->maker == client + 1)
                    one->maker = 0;
            }
        shared_alloc_drop_if_unused(card, one);
    }
}

uint64_t sim_shared_used(const struct sim_card *card, uint32_t device)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < SIM_SHARED_MAX; i++)
        if (card->shared[i].bytes && !card->shared[i].maker && card->shared[i].device == device)
            sum += card->shared[i].bytes;
    return sum;
}

uint64_t sim_shared_by_others(const struct sim_card *card, uint32_t device, uint32_t client)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < SIM_SHARED_MAX; i++)
        if (card->shared[i].bytes && card->shared[i].device == device
            && card->shared[i].maker != client + 1
            && shared_alloc_is_held_by(&card->shared[i], client))
            sum += card->shared[i].bytes;
    return sum;
}
