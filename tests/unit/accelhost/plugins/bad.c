/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin that misbehaves as the name of its settings file says. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "aliquot/accelerator.h"

static char mode[64], file[4096];

static bool is(const char *word)
{
    return strcmp(mode, word) == 0;
}

static void misbehave(const char *call)
{
    char word[64];

    (void)snprintf(word, sizeof(word), "crash-%s", call);
    if (is(word)) {
        (void)signal(SIGSEGV, SIG_DFL); /* a sanitizer would make an exit of it */
        (void)raise(SIGSEGV);
    }
    (void)snprintf(word, sizeof(word), "hang-%s", call);
    while (is(word))
        (void)pause();
    (void)snprintf(word, sizeof(word), "exit-%s", call);
    if (is(word))
        _exit(7);
    (void)snprintf(word, sizeof(word), "garbage-%s", call);
    if (is(word))
        (void)!write(3, "no JSON\n", 8);
    (void)snprintf(word, sizeof(word), "endless-%s", call);
    while (is(word)) {
        static char noise[65536];

        memset(noise, 'x', sizeof(noise));
        if (write(3, noise, sizeof(noise)) < 0)
            (void)pause();
    }
    (void)snprintf(word, sizeof(word), "unasked-%s", call);
    if (is(word))
        (void)!write(3, "{\"id\":77,\"result\":{}}\n", 22);
}

static int open_it(const struct aq_accelerator_host *host, const struct aq_accelerator_out *out,
                   void **ret)
{
    const char *slash = host->config ? strrchr(host->config, '/') : NULL;

    (void)snprintf(file, sizeof(file), "%s", host->config ? host->config : "");
    (void)snprintf(mode, sizeof(mode), "%s", slash ? slash + 1 : "");
    misbehave("open");
    if (is("fail-open")) {
        out->error(out->data, "bad.toml:3: no such key");
        return -EINVAL;
    }
    *ret = mode;
    return 0;
}

static void close_it(void *self)
{
    (void)self;
}

static void tell_device(const struct aq_accelerator_out *out, const char *id, const char *slot,
                        int64_t amount)
{
    out->device(out->data,
                &(struct aq_accelerator_device){ .id = id,
                                                 .slot = slot,
                                                 .amount = amount,
                                                 .numa_node = -1,
                                                 .quantum = is("whole-quantum")  ? 250000
                                                            : is("much-quantum") ? 3000000
                                                                                 : 0 });
}

static void tell_many(const struct aq_accelerator_out *out, int count)
{
    char id[16];

    for (int i = 0; i < count; i++) {
        (void)snprintf(id, sizeof(id), "d%d", i);
        tell_device(out, id, "bad.device", 1000000);
    }
}

static int describe(void *self, const struct aq_accelerator_out *out)
{
    static int calls;

    (void)self;
    calls++;
    misbehave("describe");
    if (is("fail-describe"))
        return -EIO;
    if (is("crash-later") && access(file, F_OK) == 0 && unlink(file) == 0)
        (void)raise(SIGABRT);
    if (!is("no-identity"))
        out->identity(out->data, &(struct aq_accelerator_identity){
                                     .key = is("bad-key")   ? "Bad Key"
                                            : is("cpu-key") ? "cpu"
                                                            : "bad",
                                     .name = is("bad-text") ? "\xff\x01\xfe" : "Bad" });
    if (is("two-identities"))
        out->identity(out->data, &(struct aq_accelerator_identity){ .key = "bad2" });
    out->slot(out->data,
              &(struct aq_accelerator_slot){ .name = is("foreign-slot") ? "cuda.device"
                                                     : is("bad-slot")   ? "bad.x y"
                                                                        : "bad.device",
                                             .type = is("bad-type") ? 9 : AQ_ACCELERATOR_COUNT,
                                             .quantum = is("much-quantum") ? 250000 : 0 });
    if (is("slot-twice"))
        out->slot(out->data, &(struct aq_accelerator_slot){ .name = "bad.device" });
    if (is("thousands"))
        tell_many(out, 4000);
    else if (is("too-many"))
        tell_many(out, 9000);
    else
        tell_device(out,
                    is("bad-id")  ? "a:b"
                    : is("no-id") ? NULL
                                  : "one",
                    is("unknown-slot") ? "bad.other" : "bad.device",
                    is("negative")   ? -1
                    : is("fraction") ? 1500000
                                     : 1000000);
    if (is("duplicate"))
        tell_device(out, "one", "bad.device", 1000000);
    if (is("vanish") && calls == 1)
        tell_device(out, "two", "bad.device", 1000000);
    return 0;
}

static void need(const struct aq_accelerator_out *out, uint32_t kind, const char *name,
                 const char *value)
{
    out->need(out->data,
              &(struct aq_accelerator_need){ .kind = kind, .name = name, .value = value });
}

static int attach(void *self, const struct aq_accelerator_grant *grants, size_t count,
                  const struct aq_accelerator_out *out)
{
    (void)self;
    (void)grants;
    (void)count;
    misbehave("attach");
    if (is("fail-attach")) {
        out->error(out->data, "device one is on fire");
        return -EIO;
    }
    need(out, is("bad-kind") ? 99 : AQ_ACCELERATOR_NODE,
         is("bad-path") ? "/dev/../etc/shadow" : "/dev/bad0", NULL);
    need(out, AQ_ACCELERATOR_ENVIRON, is("bad-variable") ? "A=B" : "BAD", "1\n2");
    return 0;
}

static int measure(void *self, const struct aq_accelerator_target *targets, size_t count,
                   const struct aq_accelerator_out *out)
{
    (void)self;
    misbehave("measure");
    if (is("measure-target")) {
        for (uint32_t i = 0; i <= count; i++)
            out->metric(out->data, &(struct aq_accelerator_metric){
                                       .key = "bad_mem",
                                       .target = i,
                                       .capacity = -1,
                                       .value = i < count ? (double)targets[i].pid_count : 0 });
        return 0;
    }
    out->metric(out->data,
                &(struct aq_accelerator_metric){
                    .key = is("foreign-metric") ? "cuda_util" : "bad_util",
                    .device = "one",
                    .target = AQ_ACCELERATOR_NO_TARGET,
                    .unit = is("bytes") ? AQ_ACCELERATOR_UNIT_BYTES : AQ_ACCELERATOR_UNIT_COUNT,
                    .value = is("nan")     ? NAN
                             : is("bytes") ? 5.7
                                           : 5,
                    .capacity = is("bytes") ? 100.25 : 100 });
    return 0;
}

AQ_ACCELERATOR_EXPORT extern const struct aq_accelerator aq_accelerator;
const struct aq_accelerator aq_accelerator = {
    .abi = AQ_ACCELERATOR_ABI,
    .size = sizeof(struct aq_accelerator),
    .name = "bad",
    .open = open_it,
    .close = close_it,
    .describe = describe,
    .attach = attach,
    .measure = measure,
};
