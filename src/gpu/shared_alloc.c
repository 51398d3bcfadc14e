/* SPDX-License-Identifier: Apache-2.0 */
/* shared_alloc.c - tokens of shared device memory, and what this process is charged for it */
#include "gpu/shared_alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gpu/charge.h"
#include "gpu/lock.h"
#include "gpu/region.h"

#ifndef F_OFD_SETLK
#define F_OFD_SETLK 37
#endif

/* No program locks bytes out here. Below it, of descriptors: size and a random number. */
#define TOKEN_BIT ((uint64_t)1 << 62)
#define SIZE_SHIFT 38
#define SIZE_MASK (((uint64_t)1 << AQ_GPU_CHARGE_GRANULE_BITS) - 1)
#define PENDING_MAX 64      /* that the agent is told of at once */
#define RETRY_NS 1000000000 /* after it did not take all of them */

/* In 'link' of a shared allocation charged to this process: the agent may not know of it. */
#define UNACKNOWLEDGED UINT64_MAX

bool shared_alloc_has_pending;

/* Held while the agent is asked, so that two threads do not join or leave at once. */
static struct gpu_lock lock;
static uint64_t uncharged[AQ_GPU_DEVICES_MAX];

/* ---- tokens ---- */

static uint64_t shared_alloc_mix(uint64_t value)
{
    value = (value ^ value >> 31) * UINT64_C(0x9e3779b97f4a7c15);
    return value ^ value >> 29;
}

uint64_t shared_alloc_hash_token(const void *handle, size_t len)
{
    const unsigned char *bytes = handle;
    uint64_t token = len;

    for (size_t i = 0; i < len; i++)
        token = shared_alloc_mix(token ^ bytes[i]);
    return (token & (TOKEN_BIT - 1)) | TOKEN_BIT;
}

uint64_t shared_alloc_new_token(uint64_t bytes)
{
    static uint64_t count;
    struct {
        uint64_t random, number;
        int64_t now_ns;
        uint64_t slot;
    } seed = { 0, __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED), gpu_now_ns(), gpu_region.slot };
    int saved = errno;

    (void)syscall(SYS_getrandom, &seed.random, sizeof(seed.random), 0);
    errno = saved;
    return TOKEN_BIT | (charge_granules(bytes) & SIZE_MASK) << SIZE_SHIFT
           | shared_alloc_hash_token(&seed, sizeof(seed)) >> (64 - SIZE_SHIFT);
}

uint64_t shared_alloc_token_bytes(uint64_t token)
{
    return (token >> SIZE_SHIFT & SIZE_MASK) << AQ_GPU_GRANULE_SHIFT;
}

bool shared_alloc_tag_fd(int fd, uint64_t token)
{
    struct flock place = {
        .l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = (off_t)token, .l_len = 1
    };
    int saved = errno;
    bool tagged = fcntl(fd, F_OFD_SETLK, &place) == 0;

    errno = saved;
    return tagged;
}

/* A number after blanks. Without strtoull() and sscanf(): compiled against glibc 2.38 and later
 * they need that one where the library is loaded.
 */
static uint64_t shared_alloc_parse_number(const char **at)
{
    uint64_t value = 0;

    *at += strspn(*at, " ");
    for (; **at >= '0' && **at <= '9'; (*at)++)
        value = value * 10 + (uint64_t)(**at - '0');
    return value;
}

static void shared_alloc_skip_word(const char **at)
{
    *at += strspn(*at, " ");
    *at += strcspn(*at, " ");
}

/* "lock:	1: OFDLCK ADVISORY  READ -1 00:05:9 4611686018427387905 4611686018427387905" */
static uint64_t shared_alloc_parse_lock(const char *line)
{
    const char *end = strchr(line, '\n'), *at = strstr(line, "OFDLCK");
    uint64_t first;

    if (!at || (end && at > end) || !(at = strstr(at, " READ ")))
        return 0;
    for (int i = 0; i < 3; i++) /* READ, process, file */
        shared_alloc_skip_word(&at);
    first = shared_alloc_parse_number(&at);
    if (shared_alloc_parse_number(&at) != first)
        return 0;
    return first & TOKEN_BIT && first <= INT64_MAX ? first : 0;
}

uint64_t shared_alloc_read_fd_tag(int fd)
{
    int saved = errno, info;
    uint64_t token = 0;
    char text[4096];
    ssize_t len;

    (void)snprintf(text, sizeof(text), "/proc/self/fdinfo/%d", fd);
    info = open(text, O_RDONLY | O_CLOEXEC);
    len = info < 0 ? -1 : read(info, text, sizeof(text) - 1);
    if (info >= 0)
        (void)close(info);
    text[len > 0 ? len : 0] = '\0';
    for (const char *line = text; !token && (line = strstr(line, "lock:")); line++)
        token = shared_alloc_parse_lock(line);
    errno = saved;
    return token;
}

/* ---- requests to the agent ---- */

/* 0, or an errno; EAGAIN = nobody answers, and it may have been done or not. */
static int shared_alloc_request(uint32_t kind, uint64_t token, uint32_t device, uint64_t bytes,
                                struct aq_gpu_loan_reply *ret)
{
    const struct aq_gpu_loan_order request = { .magic = AQ_GPU_MAGIC,
                                               .version = AQ_GPU_VERSION,
                                               .kind = kind,
                                               .device = device,
                                               .token = token,
                                               .granules = charge_granules(bytes) };

    return gpu_region_request(&request, ret) ? ret->error : EAGAIN;
}

static bool shared_alloc_send_leave(uint64_t token)
{
    struct aq_gpu_loan_reply reply;

    return shared_alloc_request(AQ_GPU_LOAN_LEAVE, token, 0, 0, &reply) != EAGAIN;
}

static void shared_alloc_uncharge(const struct ledger_entry *entry)
{
    if (entry->bytes)
        ledger_release(entry->device, entry->bytes);
}

static void shared_alloc_mark_pending(void)
{
    __atomic_store_n(&shared_alloc_has_pending, true, __ATOMIC_RELAXED);
}

/* The agent may count this process as a holder, which it is not. What 'freed' is charged
 * stays charged until the agent has acknowledged the leave.
 */
static void shared_alloc_add_pending_release(uint64_t token, const struct ledger_entry *freed)
{
    if (!ledger_get(LEDGER_PENDING_RELEASE, token, &(struct ledger_entry){ 0 }))
        (void)ledger_add(LEDGER_PENDING_RELEASE, token, freed->device, freed->bytes, 0);
    shared_alloc_mark_pending();
}

/* True = no release of it is pending any more. */
static bool shared_alloc_retry_release(uint64_t token)
{
    struct ledger_entry freed;

    if (!ledger_get(LEDGER_PENDING_RELEASE, token, &freed))
        return true;
    if (!shared_alloc_send_leave(token))
        return false;
    if (ledger_take(LEDGER_PENDING_RELEASE, token, &freed))
        shared_alloc_uncharge(&freed);
    return true;
}

/* Tell the agent that this process holds the memory and is charged for it. False = it cannot be
 * shared.
 */
static bool shared_alloc_send_export(uint64_t token, uint32_t device, uint64_t bytes)
{
    struct aq_gpu_loan_reply reply;

    switch (shared_alloc_request(AQ_GPU_LOAN_OFFER, token, device, bytes, &reply)) {
    case 0:
        (void)ledger_set(LEDGER_SHARED, token, bytes, 0);
        return true;
    case EEXIST: /* others pay */
        (void)ledger_set(LEDGER_SHARED, token, 0, bytes);
        (void)__atomic_add_fetch(&uncharged[device], bytes, __ATOMIC_RELAXED);
        ledger_release(device, bytes);
        return true;
    case EINVAL:
        return false;
    default:
        shared_alloc_mark_pending();
        return true;
    }
}

/* ---- what the agent has not acknowledged ---- */

struct shared_alloc_pending {
    struct ledger_entry list[PENDING_MAX];
    int count;
};

static void shared_alloc_collect_pending(const struct ledger_entry *entry, void *data)
{
    struct shared_alloc_pending *found = data;

    if ((entry->kind == LEDGER_PENDING_RELEASE || entry->link == UNACKNOWLEDGED)
        && found->count < PENDING_MAX)
        found->list[found->count++] = *entry;
}

/* False = nobody answers. */
static bool shared_alloc_sync_one(const struct ledger_entry *entry)
{
    struct ledger_entry now;

    if (entry->kind == LEDGER_PENDING_RELEASE)
        return shared_alloc_retry_release(entry->key);
    /* what the agent rejects stays charged here */
    if (!shared_alloc_send_export(entry->key, entry->device, entry->bytes))
        (void)ledger_set(LEDGER_SHARED, entry->key, entry->bytes, 0);
    return ledger_get(LEDGER_SHARED, entry->key, &now) && now.link != UNACKNOWLEDGED;
}

/* Under the lock. */
static void shared_alloc_sync_pending(void)
{
    static int64_t tried_ns;
    struct shared_alloc_pending found = { .count = 0 };
    bool done = true;

    if (!__atomic_load_n(&shared_alloc_has_pending, __ATOMIC_RELAXED)
        || (tried_ns && gpu_now_ns() - tried_ns < RETRY_NS))
        return;
    ledger_each(LEDGER_PENDING_RELEASE, shared_alloc_collect_pending, &found);
    ledger_each(LEDGER_SHARED, shared_alloc_collect_pending, &found);
    __atomic_store_n(&shared_alloc_has_pending, found.count == PENDING_MAX, __ATOMIC_RELAXED);
    for (int i = 0; done && i < found.count; i++)
        done = shared_alloc_sync_one(&found.list[i]);
    tried_ns = done ? 0 : gpu_now_ns();
    if (!done)
        shared_alloc_mark_pending();
}

void shared_alloc_sync_now(void)
{
    gpu_region_renew();
    if (!gpu_region_is_alive())
        return;
    gpu_lock_take(&lock);
    shared_alloc_sync_pending();
    gpu_lock_give(&lock);
}

/* ---- what this process holds ---- */

/* Under the lock. */
static bool shared_alloc_register(uint64_t token, uint32_t device, uint64_t bytes)
{
    struct ledger_entry freed;

    if (device >= AQ_GPU_DEVICES_MAX
        || !ledger_add(LEDGER_SHARED, token, device, bytes, UNACKNOWLEDGED))
        return false;
    if (!shared_alloc_send_export(token, device, bytes)) {
        (void)ledger_take(LEDGER_SHARED, token, &freed);
        return false;
    }
    if (ledger_take(LEDGER_PENDING_RELEASE, token, &freed)) /* of before: it holds it again */
        shared_alloc_uncharge(&freed);
    return true;
}

uint64_t shared_alloc_export(enum ledger_kind kind, uint64_t key, uint64_t token)
{
    struct ledger_entry entry = { .bytes = 0 };
    uint64_t ret = 0;

    gpu_lock_take(&lock);
    shared_alloc_sync_pending();
    if (ledger_get(kind, key, &entry) && entry.link)
        ret = entry.link;
    else if (entry.bytes && shared_alloc_register(token, entry.device, entry.bytes)
             && ledger_set(kind, key, entry.bytes, token))
        ret = token;
    gpu_lock_give(&lock);
    return ret;
}

/* The first object here of memory that others are charged for. Under the lock. */
static bool shared_alloc_join_first(uint64_t token)
{
    struct aq_gpu_loan_reply reply;
    uint64_t bytes;
    int answer = shared_alloc_retry_release(token)
                     ? shared_alloc_request(AQ_GPU_LOAN_JOIN, token, 0, 0, &reply)
                     : EAGAIN;

    if (answer == EAGAIN)
        shared_alloc_add_pending_release(token, &(struct ledger_entry){ .bytes = 0 });
    if (answer)
        return false;
    bytes = reply.granules << AQ_GPU_GRANULE_SHIFT;
    if (reply.device < AQ_GPU_DEVICES_MAX
        && ledger_add(LEDGER_SHARED, token, reply.device, 0, bytes)) {
        (void)__atomic_add_fetch(&uncharged[reply.device], bytes, __ATOMIC_RELAXED);
        return true;
    }
    (void)shared_alloc_send_leave(token);
    return false;
}

bool shared_alloc_join(uint64_t token)
{
    bool joined;

    gpu_lock_take(&lock);
    joined = ledger_ref(LEDGER_SHARED, token);
    if (!joined) {
        shared_alloc_sync_pending();
        joined = shared_alloc_join_first(token);
    }
    gpu_lock_give(&lock);
    return joined;
}

bool shared_alloc_charge(uint64_t token, uint32_t device, uint64_t bytes, struct ledger_entry *ret)
{
    bool paid = true;

    *ret = (struct ledger_entry){ .bytes = bytes, .device = (uint8_t)device };
    gpu_lock_take(&lock);
    if (token && ledger_ref(LEDGER_SHARED, token)) /* another thread was quicker */
        *ret = (struct ledger_entry){ .device = (uint8_t)device, .link = token };
    else if (bytes && !ledger_reserve(device, bytes))
        paid = false;
    else if (token && bytes && shared_alloc_register(token, device, bytes))
        ret->link = token;
    gpu_lock_give(&lock);
    return paid;
}

/* Who cannot tell the agent keeps the charge until he can: too long, never too short. */
void shared_alloc_leave(uint64_t token)
{
    struct ledger_entry freed;

    gpu_lock_take(&lock);
    if (ledger_unref(LEDGER_SHARED, token, &freed)) {
        if (!freed.bytes)
            (void)__atomic_sub_fetch(&uncharged[freed.device], freed.link, __ATOMIC_RELAXED);
        if (shared_alloc_send_leave(token))
            shared_alloc_uncharge(&freed);
        else
            shared_alloc_add_pending_release(token, &freed);
    }
    gpu_lock_give(&lock);
}

void shared_alloc_release(const struct ledger_entry *freed)
{
    if (freed->link)
        shared_alloc_leave(freed->link);
    else if (freed->bytes)
        ledger_release(freed->device, freed->bytes);
}

uint64_t shared_alloc_uncharged(uint32_t device)
{
    return __atomic_load_n(&uncharged[device], __ATOMIC_RELAXED);
}

void shared_alloc_after_fork(void)
{
    memset(uncharged, 0, sizeof(uncharged));
    shared_alloc_has_pending = false;
    lock.taken = 0;
}
