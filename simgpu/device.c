/* SPDX-License-Identifier: Apache-2.0 */
/* device.c - the shared file of the cards: making it, mapping it, taking a slot in it */
#include "device.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FIRST_NS 1000000000000 /* a virtual clock's beginning */
#define DEFAULT_PATH "/run/simgpu/device"

static struct sim_card *own_card;
static struct sim_client *own_client;
static bool is_child; /* after fork: what the parent had is not ours */
static int own_fd = -1;
static pthread_mutex_t attach_lock = PTHREAD_MUTEX_INITIALIZER;

static void device_name(struct sim_device *device, uint32_t number,
                        const struct sim_options *options)
{
    static const unsigned char uuid[16] = { 0x51, 0x3a, 0x5f, 0x0e, 0x77, 0x21, 0x4b, 0x6c,
                                            0x9d, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00 };

    memcpy(device->uuid, uuid, sizeof(uuid));
    device->uuid[15] = (unsigned char)number;
    (void)snprintf(device->name, sizeof(device->name), "Simulated GPU");
    device->memory = options->memory;
    device->processors = options->processors;
}

int sim_create(const char *path, const struct sim_options *options)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    pthread_mutexattr_t shared;
    struct sim_card *card;

    if (fd < 0)
        return -errno;
    (void)fchmod(fd, 0666); /* containers of any user use it */
    if (options->devices < 1 || options->devices > SIM_DEVICES_MAX || !options->processors
        || ftruncate(fd, sizeof(*card)) < 0
        || (card = mmap(NULL, sizeof(*card), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0))
               == MAP_FAILED) {
        (void)close(fd);
        (void)unlink(path);
        return -EINVAL;
    }
    (void)pthread_mutexattr_init(&shared);
    (void)pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    (void)pthread_mutexattr_setrobust(&shared, PTHREAD_MUTEX_ROBUST);
    (void)pthread_mutex_init(&card->lock, &shared);
    (void)pthread_mutex_init(&card->time.lock, &shared);
    card->time.expected = options->expected;
    card->time.now_ns = FIRST_NS;
    card->context_bytes = options->context_bytes;
    card->module_bytes = options->module_bytes;
    card->slice_ns = options->slice_ns;
    card->device_count = options->devices;
    card->shared_serial = ((uint64_t)time(NULL) << 16 | ((uint64_t)getpid() & 0xffff))
                          & 0xfffffffff;
    for (uint32_t i = 0; i < options->devices; i++)
        device_name(&card->devices[i], i, options);
    __atomic_store_n(&card->magic, SIM_MAGIC, __ATOMIC_RELEASE);
    (void)munmap(card, sizeof(*card));
    (void)close(fd);
    return 0;
}

struct sim_card *sim_open(const char *path, int *ret_fd)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    struct sim_card *card;

    if (fd < 0)
        return NULL;
    card = lseek(fd, 0, SEEK_END) < (off_t)sizeof(*card)
               ? MAP_FAILED
               : mmap(NULL, sizeof(*card), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (card == MAP_FAILED || card->magic != SIM_MAGIC) {
        (void)close(fd);
        errno = EINVAL;
        return NULL;
    }
    *ret_fd = fd;
    return card;
}

void sim_lock(struct sim_card *card)
{
    /* a holder that was killed leaves numbers that sim_reclaim puts right */
    if (pthread_mutex_lock(&card->lock) == EOWNERDEAD)
        (void)pthread_mutex_consistent(&card->lock);
}

void sim_unlock(struct sim_card *card)
{
    (void)pthread_mutex_unlock(&card->lock);
}

static struct flock device_slot_lock(uint32_t client)
{
    return (struct flock){ .l_type = F_WRLCK,
                           .l_whence = SEEK_SET,
                           .l_start = (off_t)offsetof(struct sim_card, clients[client]),
                           .l_len = 1 };
}

/* Another number for each program that was started: containers have the same pids, and one after the
 * other also the same number of a namespace.
 */
static uint64_t device_program_mark(void)
{
    uint64_t mark;

    memcpy(&mark, (const void *)getauxval(AT_RANDOM), sizeof(mark));
    return mark;
}

int sim_pid_of(const struct sim_card *card, int fd, uint32_t client)
{
    struct flock lock = device_slot_lock(client);

    if (!card->clients[client].pid)
        return 0;
    if (card->clients[client].pid == getpid()
        && card->clients[client].program_mark == device_program_mark())
        return getpid(); /* a process's own lock, taken through either library, is no obstacle */
    if (fcntl(fd, F_GETLK, &lock) < 0 || lock.l_type == F_UNLCK)
        return 0;
    return lock.l_pid > 0 ? lock.l_pid : -1;
}

/* Only what was used is touched: most pages of the file never exist. */
static void device_clear(struct sim_client *client)
{
    client->pid = 0;
    memset(client->events, 0, sizeof(client->events));
    for (uint32_t i = 0; i < SIM_DEVICES_MAX; i++) {
        struct sim_use *use = &client->uses[i];

        memset(use, 0, use->launches ? sizeof(*use) : offsetof(struct sim_use, queues));
    }
}

void sim_reclaim(struct sim_card *card, int fd)
{
    for (uint32_t i = 0; i < SIM_CLIENTS_MAX; i++)
        if (card->clients[i].pid && !sim_pid_of(card, fd, i))
            device_clear(&card->clients[i]);
    sim_shared_reclaim(card);
}

static struct sim_client *device_take_slot(struct sim_card *card, int fd)
{
    struct sim_client *client = NULL;

    sim_lock(card);
    sim_reclaim(card, fd);
    for (uint32_t i = 0; i < SIM_CLIENTS_MAX && !client; i++) {
        struct flock lock = device_slot_lock(i);

        if (card->clients[i].pid || fcntl(fd, F_SETLK, &lock) < 0)
            continue;
        client = &card->clients[i];
        client->pid = getpid();
        client->program_mark = device_program_mark();
    }
    sim_unlock(card);
    return client;
}

static const char *device_path(void)
{
    const char *path = getenv("SIMGPU_DEVICE");

    return path && *path ? path : DEFAULT_PATH;
}

struct sim_card *sim_card_to_look(int *ret_fd)
{
    (void)pthread_mutex_lock(&attach_lock);
    if (!own_card)
        own_card = sim_open(device_path(), &own_fd);
    *ret_fd = own_fd;
    (void)pthread_mutex_unlock(&attach_lock);
    return own_card;
}

static void device_on_child(void)
{
    is_child = own_client != NULL;
}

bool sim_is_parent(void)
{
    return !is_child;
}

struct sim_card *sim_card(void)
{
    int fd;

    if (__builtin_expect(own_client != NULL, 1))
        return is_child ? NULL : own_card;
    if (!sim_card_to_look(&fd))
        return NULL;
    (void)pthread_mutex_lock(&attach_lock);
    if (!own_client) {
        (void)pthread_atfork(NULL, NULL, device_on_child);
        own_client = device_take_slot(own_card, fd);
    }
    (void)pthread_mutex_unlock(&attach_lock);
    return own_client ? own_card : NULL;
}

struct sim_client *sim_self(void)
{
    return own_client;
}

uint64_t sim_memory_used(const struct sim_card *card, uint32_t device)
{
    uint64_t sum = sim_shared_used(card, device);

    for (uint32_t i = 0; i < SIM_CLIENTS_MAX; i++)
        if (card->clients[i].pid)
            sum += card->clients[i].uses[device].memory + card->clients[i].uses[device].contexts;
    return sum;
}

bool sim_memory_take(uint32_t device, uint64_t bytes)
{
    struct sim_faults *faults = &own_card->faults;
    bool taken;

    if (bytes > own_card->devices[device].memory)
        return false;
    sim_lock(own_card);
    taken = sim_memory_used(own_card, device) + bytes <= own_card->devices[device].memory;
    if (!taken) {
        sim_reclaim(own_card, own_fd);
        taken = sim_memory_used(own_card, device) + bytes <= own_card->devices[device].memory;
    }
    if (taken && faults->alloc_every && ++faults->alloc_count % faults->alloc_every == 0)
        taken = false;
    if (taken)
        own_client->uses[device].memory += bytes;
    sim_unlock(own_card);
    return taken;
}

void sim_memory_give(uint32_t device, uint64_t bytes)
{
    uint64_t *memory = &own_client->uses[device].memory;

    sim_lock(own_card);
    *memory = *memory > bytes ? *memory - bytes : 0;
    sim_unlock(own_card);
}
