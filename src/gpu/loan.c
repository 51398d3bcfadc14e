#include "gpu/loan.h"

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
#define UNSETTLED_MAX 64 /* that the agent is told of at once */
#define AGAIN_NS 1000000000 /* after it did not take all of them */

/* In 'link' of a loan that this process pays for: the agent may not know it. */
#define UNTOLD UINT64_MAX

bool loan_is_unsettled;

/* Held while the agent is asked, so that two threads do not join or leave at once. */
static struct gpu_lock lock;
static uint64_t borrowed[AQ_GPU_DEVICES_MAX];

/* ---- tokens ---- */

static uint64_t mix(uint64_t value)
{
    value = (value ^ value >> 31) * UINT64_C(0x9e3779b97f4a7c15);
    return value ^ value >> 29;
}

uint64_t loan_token_of(const void *handle, size_t len)
{
    const unsigned char *bytes = handle;
    uint64_t token = len;

    for (size_t i = 0; i < len; i++)
        token = mix(token ^ bytes[i]);
    return (token & (TOKEN_BIT - 1)) | TOKEN_BIT;
}

uint64_t loan_token_new(uint64_t bytes)
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
           | loan_token_of(&seed, sizeof(seed)) >> (64 - SIZE_SHIFT);
}

uint64_t loan_bytes_of(uint64_t token)
{
    return (token >> SIZE_SHIFT & SIZE_MASK) << AQ_GPU_GRANULE_SHIFT;
}

bool loan_tag(int fd, uint64_t token)
{
    struct flock place = { .l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = (off_t)token,
                           .l_len = 1 };
    int saved = errno;
    bool tagged = fcntl(fd, F_OFD_SETLK, &place) == 0;

    errno = saved;
    return tagged;
}

/* "lock:	1: OFDLCK ADVISORY  READ -1 00:05:9 4611686018427387905 4611686018427387905" */
static uint64_t read_lock(const char *line)
{
    const char *end = strchr(line, '\n'), *at = strstr(line, "OFDLCK");
    unsigned long long first, last;

    if (!at || (end && at > end) || !(at = strstr(at, " READ ")))
        return 0;
    if (sscanf(at, " READ %*s %*s %llu %llu", &first, &last) != 2 || first != last)
        return 0;
    return first & TOKEN_BIT && first <= INT64_MAX ? first : 0;
}

uint64_t loan_read_tag(int fd)
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
        token = read_lock(line);
    errno = saved;
    return token;
}

/* ---- the agent's books ---- */

/* 0, or an errno; EAGAIN = nobody answers, and it may have been done or not. */
static int ask(uint32_t kind, uint64_t token, uint32_t device, uint64_t bytes,
               struct aq_gpu_loan_reply *ret)
{
    const struct aq_gpu_loan_order order = { .magic = AQ_GPU_MAGIC, .version = AQ_GPU_VERSION,
                                             .kind = kind, .device = device, .token = token,
                                             .granules = charge_granules(bytes) };

    return gpu_region_order(&order, ret) ? ret->error : EAGAIN;
}

static bool say_leave(uint64_t token)
{
    struct aq_gpu_loan_reply reply;

    return ask(AQ_GPU_LOAN_LEAVE, token, 0, 0, &reply) != EAGAIN;
}

static void end(const struct ledger_entry *loan)
{
    if (loan->bytes)
        ledger_release(loan->device, loan->bytes);
}

static void unsettle(void)
{
    __atomic_store_n(&loan_is_unsettled, true, __ATOMIC_RELAXED);
}

/* The agent may count this process as a holder, which it is not. What stands in
 * 'gone' stays charged until the agent knows.
 */
static void owe(uint64_t token, const struct ledger_entry *gone)
{
    if (!ledger_get(LEDGER_OWED, token, &(struct ledger_entry){ 0 }))
        (void)ledger_add(LEDGER_OWED, token, gone->device, gone->bytes, 0);
    unsettle();
}

/* True = nothing is owed of it any more. */
static bool pay_back(uint64_t token)
{
    struct ledger_entry gone;

    if (!ledger_get(LEDGER_OWED, token, &gone))
        return true;
    if (!say_leave(token))
        return false;
    if (ledger_take(LEDGER_OWED, token, &gone))
        end(&gone);
    return true;
}

/* Say to the agent that this process has and pays for its loan. False = it is no loan. */
static bool say_offer(uint64_t token, uint32_t device, uint64_t bytes)
{
    struct aq_gpu_loan_reply reply;

    switch (ask(AQ_GPU_LOAN_OFFER, token, device, bytes, &reply)) {
    case 0:
        (void)ledger_set(LEDGER_LOAN, token, bytes, 0);
        return true;
    case EEXIST: /* others pay */
        (void)ledger_set(LEDGER_LOAN, token, 0, bytes);
        (void)__atomic_add_fetch(&borrowed[device], bytes, __ATOMIC_RELAXED);
        ledger_release(device, bytes);
        return true;
    case EINVAL:
        return false;
    default:
        unsettle();
        return true;
    }
}

/* ---- what the agent has not been told ---- */

struct unsettled {
    struct ledger_entry list[UNSETTLED_MAX];
    int count;
};

static void collect(const struct ledger_entry *entry, void *data)
{
    struct unsettled *found = data;

    if ((entry->kind == LEDGER_OWED || entry->link == UNTOLD) && found->count < UNSETTLED_MAX)
        found->list[found->count++] = *entry;
}

/* False = nobody answers. */
static bool settle_one(const struct ledger_entry *entry)
{
    struct ledger_entry now;

    if (entry->kind == LEDGER_OWED)
        return pay_back(entry->key);
    /* what the agent does not take stays ours to pay */
    if (!say_offer(entry->key, entry->device, entry->bytes))
        (void)ledger_set(LEDGER_LOAN, entry->key, entry->bytes, 0);
    return ledger_get(LEDGER_LOAN, entry->key, &now) && now.link != UNTOLD;
}

/* Under the lock. */
static void settle(void)
{
    static int64_t tried_ns;
    struct unsettled found = { .count = 0 };
    bool done = true;

    if (!__atomic_load_n(&loan_is_unsettled, __ATOMIC_RELAXED)
        || (tried_ns && gpu_now_ns() - tried_ns < AGAIN_NS))
        return;
    ledger_each(LEDGER_OWED, collect, &found);
    ledger_each(LEDGER_LOAN, collect, &found);
    __atomic_store_n(&loan_is_unsettled, found.count == UNSETTLED_MAX, __ATOMIC_RELAXED);
    for (int i = 0; done && i < found.count; i++)
        done = settle_one(&found.list[i]);
    tried_ns = done ? 0 : gpu_now_ns();
    if (!done)
        unsettle();
}

void loan_settle_now(void)
{
    gpu_region_renew();
    if (!gpu_region_is_alive())
        return;
    gpu_lock_take(&lock);
    settle();
    gpu_lock_give(&lock);
}

/* ---- what this process has of it ---- */

/* Under the lock. */
static bool offer(uint64_t token, uint32_t device, uint64_t bytes)
{
    struct ledger_entry gone;

    if (device >= AQ_GPU_DEVICES_MAX || !ledger_add(LEDGER_LOAN, token, device, bytes, UNTOLD))
        return false;
    if (!say_offer(token, device, bytes)) {
        (void)ledger_take(LEDGER_LOAN, token, &gone);
        return false;
    }
    if (ledger_take(LEDGER_OWED, token, &gone)) /* of before: it holds it again */
        end(&gone);
    return true;
}

uint64_t loan_lend(enum ledger_kind kind, uint64_t key, uint64_t token)
{
    struct ledger_entry entry = { .bytes = 0 };
    uint64_t lent = 0;

    gpu_lock_take(&lock);
    settle();
    if (ledger_get(kind, key, &entry) && entry.link)
        lent = entry.link;
    else if (entry.bytes && offer(token, entry.device, entry.bytes)
             && ledger_set(kind, key, entry.bytes, token))
        lent = token;
    gpu_lock_give(&lock);
    return lent;
}

/* Others pay. Under the lock. */
static bool join(uint64_t token)
{
    struct aq_gpu_loan_reply reply;
    uint64_t bytes;
    int answer = pay_back(token) ? ask(AQ_GPU_LOAN_JOIN, token, 0, 0, &reply) : EAGAIN;

    if (answer == EAGAIN)
        owe(token, &(struct ledger_entry){ .bytes = 0 });
    if (answer)
        return false;
    bytes = reply.granules << AQ_GPU_GRANULE_SHIFT;
    if (reply.device < AQ_GPU_DEVICES_MAX
        && ledger_add(LEDGER_LOAN, token, reply.device, 0, bytes)) {
        (void)__atomic_add_fetch(&borrowed[reply.device], bytes, __ATOMIC_RELAXED);
        return true;
    }
    (void)say_leave(token);
    return false;
}

bool loan_join(uint64_t token)
{
    bool joined;

    gpu_lock_take(&lock);
    joined = ledger_ref(LEDGER_LOAN, token);
    if (!joined) {
        settle();
        joined = join(token);
    }
    gpu_lock_give(&lock);
    return joined;
}

bool loan_pay(uint64_t token, uint32_t device, uint64_t bytes, struct ledger_entry *ret)
{
    bool paid = true;

    *ret = (struct ledger_entry){ .bytes = bytes, .device = (uint8_t)device };
    gpu_lock_take(&lock);
    if (token && ledger_ref(LEDGER_LOAN, token)) /* another thread was quicker */
        *ret = (struct ledger_entry){ .device = (uint8_t)device, .link = token };
    else if (bytes && !ledger_reserve(device, bytes))
        paid = false;
    else if (token && bytes && offer(token, device, bytes))
        ret->link = token;
    gpu_lock_give(&lock);
    return paid;
}

/* Who cannot tell the agent keeps the charge until he can: too long, never too short. */
void loan_leave(uint64_t token)
{
    struct ledger_entry gone;

    gpu_lock_take(&lock);
    if (ledger_unref(LEDGER_LOAN, token, &gone)) {
        if (!gone.bytes)
            (void)__atomic_sub_fetch(&borrowed[gone.device], gone.link, __ATOMIC_RELAXED);
        if (say_leave(token))
            end(&gone);
        else
            owe(token, &gone);
    }
    gpu_lock_give(&lock);
}

void loan_release(const struct ledger_entry *gone)
{
    if (gone->link)
        loan_leave(gone->link);
    else if (gone->bytes)
        ledger_release(gone->device, gone->bytes);
}

uint64_t loan_borrowed(uint32_t device)
{
    return __atomic_load_n(&borrowed[device], __ATOMIC_RELAXED);
}

void loan_forget(void)
{
    memset(borrowed, 0, sizeof(borrowed));
    loan_is_unsettled = false;
    lock.taken = 0;
}
